"""Entry points: run-wide hooks on every one of them and however a run ends, threads, nested use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, closing
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.tools import tool
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from agentkit import Exit, Limits, Middleware, Outcome, Run, as_tool, create_agent, exit_of, thread
from agentkit.errors import NestedPause
from agentkit.testing import ENTRY_POINTS, EntryPoint, ScriptedModel, ai, run, tool_call

entries = pytest.mark.parametrize("entry", ENTRY_POINTS)
granularities = pytest.mark.parametrize("granularity", ["hook", "turn"])


class Watches(Middleware):
    """Notes what its run-wide hook is told."""

    def __init__(self, name: str = "w", order: list[str] | None = None) -> None:
        super().__init__()
        self.label, self.order = name, order if order is not None else []
        self.runs: list[Run] = []
        self.outcomes: list[Outcome] = []
        self.closed = 0

    def around_run(self, given: Run) -> Any:
        self.runs.append(given)
        self.order.append(f"{self.label} opens")
        try:
            self.outcomes.append((yield))
        finally:
            self.order.append(f"{self.label} closes")
            self.closed += 1


@tool
def look(x: int) -> str:
    """Look."""
    return "found"


@tool
def ask(x: int) -> str:
    """Ask a person."""
    return f"they said {interrupt('really?')}"


@tool
def fail(x: int) -> str:
    """Fail."""
    raise ZeroDivisionError("oops")


def calls(name: str) -> AIMessage:
    return ai("", tool_call(name, {"x": 1}, "c1"))


class HandsOver(AgentMiddleware[Any, Any, Any]):
    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> Any:
        return {"jump_to": "end", "exit": Exit("handoff", "a person takes over", "desk").record()}


OUTCOMES: list[tuple[str, str | None, Callable[[], dict[str, Any]]]] = [
    ("success", "answer", lambda: {"model": ScriptedModel(calls("look"), "done"), "tools": [look]}),
    ("interrupted", None, lambda: {"model": ScriptedModel(calls("ask"), "done"), "tools": [ask]}),
    ("error", None, lambda: {"model": ScriptedModel(calls("fail")), "tools": [fail]}),
    ("error", None, lambda: {"model": ScriptedModel(TimeoutError("slow"))}),
    (
        "limit",
        "step_budget",
        lambda: {"model": ScriptedModel(calls("look")), "tools": [look], "limits": Limits(model_calls=1)},
    ),
    ("handoff", "handoff", lambda: {"model": ScriptedModel(), "middleware": [HandsOver()]}),
]


@entries
@granularities
@pytest.mark.parametrize(
    ("status", "reason", "arguments"), OUTCOMES, ids=[f"{o[0]} {i}" for i, o in enumerate(OUTCOMES)]
)
def test_every_outcome_is_told_on_every_entry_point(
    status: str, reason: str | None, arguments: Any, entry: EntryPoint, granularity: Any
) -> None:
    watch, given = Watches(), arguments()
    given["middleware"] = [watch, *given.get("middleware", ())]
    agent = create_agent(**given, checkpointer=InMemorySaver(), granularity=granularity)
    result = run(agent, "hi", thread("t"), entry=entry, catch=True)
    (outcome,) = watch.outcomes
    assert outcome.status == status
    assert (outcome.exit and outcome.exit.reason) == reason
    assert outcome.error is result.error
    assert watch.closed == 1
    if result.error is None:
        assert [m.text for m in outcome.values["messages"]] == [m.text for m in result.messages]


@entries
def test_a_run_knows_its_input_and_config(entry: EntryPoint) -> None:
    watch = Watches()
    agent = create_agent(ScriptedModel("done"), middleware=[watch])
    given = {"messages": [("user", "hi")]}
    run(agent, given, thread("t-7", metadata={"who": "ann"}), entry=entry)
    (seen,) = watch.runs
    assert seen.input == given
    assert seen.config["configurable"]["thread_id"] == "t-7"
    assert seen.config["metadata"]["who"] == "ann"


@entries
@granularities
def test_a_pause_and_its_resumption_are_two_runs(entry: EntryPoint, granularity: Any) -> None:
    watch = Watches()
    agent = create_agent(
        ScriptedModel(calls("ask"), "done"),
        [ask],
        middleware=[watch],
        checkpointer=InMemorySaver(),
        granularity=granularity,
    )
    run(agent, "hi", thread("t"), entry=entry)
    run(agent, Command(resume="yes"), thread("t"), entry=entry)
    assert [outcome.status for outcome in watch.outcomes] == ["interrupted", "success"]
    assert watch.runs[1].input == Command(resume="yes")


@entries
def test_the_first_is_the_outermost_and_all_are_closed(entry: EntryPoint) -> None:
    order: list[str] = []
    agent = create_agent(ScriptedModel("done"), middleware=[Watches("a", order), Watches("b", order)])
    run(agent, "hi", entry=entry)
    assert order == ["a opens", "b opens", "b closes", "a closes"]


@entries
def test_a_hook_that_yields_twice_is_closed_all_the_same(entry: EntryPoint) -> None:
    seen: list[str] = []

    def twice() -> Any:
        try:
            yield
            seen.append("told")
            yield
            seen.append("never")
        finally:
            seen.append("closed")

    class Greedy(Middleware):
        def around_run(self, given: Run) -> Any:
            self.kept = twice()  # so that no garbage collector closes it
            return self.kept

    agent = create_agent(ScriptedModel("done"), middleware=[Greedy()])
    run(agent, "hi", entry=entry)
    assert seen == ["told", "closed"]


@entries
@pytest.mark.parametrize("when", ["opens", "closes"])
def test_a_hook_that_fails_does_not_keep_the_others_from_closing(when: str, entry: EntryPoint) -> None:
    class Fails(Middleware):
        def around_run(self, given: Run) -> Any:
            if when == "opens":
                raise ZeroDivisionError("oops")
            yield
            raise ZeroDivisionError("oops")

    outer = Watches("outer")
    agent = create_agent(ScriptedModel("done"), middleware=[outer, Fails()])
    error = run(agent, "hi", entry=entry, catch=True).error
    assert isinstance(error, ZeroDivisionError)
    assert outer.closed == 1
    assert [outcome.status for outcome in outer.outcomes] == ["error"]


@pytest.mark.parametrize("chunks", [0, 1, 2])
@granularities
def test_a_stream_that_is_left_early_is_cancelled(chunks: int, granularity: Any) -> None:
    """Not one that was never started: nothing happened then."""
    watch = Watches()
    agent = create_agent(ScriptedModel(calls("look"), "done"), [look], middleware=[watch], granularity=granularity)
    stream: Any = agent.stream({"messages": "hi"}, stream_mode="values")
    with closing(stream):
        for _ in range(chunks):
            next(stream)
    assert [outcome.status for outcome in watch.outcomes] == ["cancelled"] * bool(chunks)
    assert watch.closed == bool(chunks)


@pytest.mark.parametrize("chunks", [0, 1, 2])
@granularities
async def test_an_async_stream_that_is_left_early_is_cancelled(chunks: int, granularity: Any) -> None:
    watch = Watches()
    agent = create_agent(ScriptedModel(calls("look"), "done"), [look], middleware=[watch], granularity=granularity)
    stream: Any = agent.astream({"messages": "hi"}, stream_mode="values")
    async with aclosing(stream):
        for _ in range(chunks):
            await anext(stream)
    assert [outcome.status for outcome in watch.outcomes] == ["cancelled"] * bool(chunks)
    assert watch.closed == bool(chunks)


@pytest.mark.parametrize("entry", ["ainvoke", "astream"])
@granularities
async def test_a_cancelled_task_is_told_and_stays_cancelled(entry: EntryPoint, granularity: Any) -> None:
    watch, started = Watches(), asyncio.Event()

    async def hang(request: Any) -> Any:
        started.set()
        await asyncio.Event().wait()

    agent = create_agent(ScriptedModel(hang), middleware=[watch], granularity=granularity)

    async def main() -> None:
        if entry == "ainvoke":
            await agent.ainvoke({"messages": "hi"})
        else:
            async for _ in agent.astream({"messages": "hi"}):
                pass

    task = asyncio.create_task(main())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [outcome.status for outcome in watch.outcomes] == ["cancelled"]
    assert watch.closed == 1


@entries
def test_ctrl_c_is_a_cancellation(entry: EntryPoint) -> None:
    def stop(request: Any) -> Any:
        raise KeyboardInterrupt

    watch = Watches()
    agent = create_agent(ScriptedModel(stop), middleware=[watch])
    with pytest.raises(KeyboardInterrupt):
        run(agent, "hi", entry=entry)
    assert [outcome.status for outcome in watch.outcomes] == ["cancelled"]


async def test_runs_side_by_side_are_told_apart() -> None:
    watch = Watches()

    async def answer(request: Any) -> str:
        await asyncio.sleep(0)
        return f"to {request.messages[-1].text}"

    agent = create_agent(ScriptedModel(answer, repeat=True), middleware=[watch])
    await asyncio.gather(*(agent.ainvoke({"messages": f"m{i}"}) for i in range(10)))
    texts = {tuple(m.text for m in outcome.values["messages"]) for outcome in watch.outcomes}
    assert texts == {(f"m{i}", f"to m{i}") for i in range(10)}


def test_batch_is_watched_run_by_run() -> None:
    watch = Watches()
    agent = create_agent(ScriptedModel("done", repeat=True), middleware=[watch])
    results = agent.batch([{"messages": "a"}, {"messages": "b"}])
    assert [exit_of(result) for result in results] == [watch.outcomes[0].exit] * 2
    assert len(watch.outcomes) == 2


# ---- results


@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
def test_plain_options_of_the_engine_still_work(entry: EntryPoint) -> None:
    agent = create_agent(ScriptedModel("done", repeat=True))
    updates = run_raw(agent, entry, stream_mode="updates")
    assert [list(update) for update in updates] == [["model"]]
    only = run_raw(agent, entry, output_keys=["messages"])
    assert set(only) == {"messages"}
    assert [m.text for m in run_raw(agent, entry, output_keys="messages")] == ["hi", "done"]


def run_raw(agent: Any, entry: EntryPoint, **options: Any) -> Any:
    given = {"messages": "hi"}
    return agent.invoke(given, **options) if entry == "invoke" else asyncio.run(agent.ainvoke(given, **options))


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_both_versions_of_the_engines_result_carry_the_exit(version: Any) -> None:
    result: Any = create_agent(ScriptedModel("done")).invoke({"messages": "hi"}, version=version)
    values = getattr(result, "value", result)
    ended = exit_of(values)
    assert ended is not None
    assert ended.reason == "answer"


# ---- threads


def test_thread_names_a_thread_and_keeps_other_settings() -> None:
    config = thread("t-1", recursion_limit=50, tags=["a"], configurable={"tenant": "x"})
    assert config["configurable"] == {"thread_id": "t-1", "tenant": "x"}
    assert config["recursion_limit"] == 50
    assert config["tags"] == ["a"]


def test_thread_is_the_same_inside_a_run() -> None:
    """It takes over nothing of the run in which it is called."""
    made: list[Any] = []

    @tool
    def name_it() -> str:
        """Name a thread."""
        made.append(thread("own"))
        return "named"

    create_agent(ScriptedModel(ai("", tool_call("name_it")), "done"), [name_it]).invoke({"messages": "hi"}, thread("t"))
    assert made == [thread("own")]


@granularities
def test_a_thread_remembers_and_another_does_not(granularity: Any) -> None:
    def count(request: Any) -> str:
        return f"{sum(m.type == 'human' for m in request.messages)}"

    agent = create_agent(ScriptedModel(count, repeat=True), checkpointer=InMemorySaver(), granularity=granularity)
    answers = [agent.invoke({"messages": "hi"}, thread(name))["messages"][-1].text for name in ("a", "a", "b", "a")]
    assert answers == ["1", "2", "1", "3"]


@entries
@granularities
def test_a_failed_run_goes_on_after_its_last_step(entry: EntryPoint, granularity: Any) -> None:
    steps: list[Any] = [calls("look"), TimeoutError("slow"), "done"]
    model, watch = ScriptedModel(*steps), Watches()
    agent = create_agent(model, [look], middleware=[watch], checkpointer=InMemorySaver(), granularity=granularity)
    assert isinstance(run(agent, "hi", thread("t"), entry=entry, catch=True).error, TimeoutError)
    assert [m.type for m in agent.get_state(thread("t")).values["messages"]] == ["human", "ai", "tool"]
    assert run(agent, None, thread("t"), entry=entry).text == "done"
    assert model.calls == 3
    assert [outcome.status for outcome in watch.outcomes] == ["error", "success"]


# ---- nested use


class Outer(AgentState[Any]):
    pass


@entries
@granularities
def test_an_agent_is_a_node_of_another_graph(entry: EntryPoint, granularity: Any) -> None:
    watch = Watches()
    agent = create_agent(
        ScriptedModel(calls("look"), "done"), [look], middleware=[watch], name="inner", granularity=granularity
    )
    builder = StateGraph(Outer)
    builder.add_node("inner", agent)
    builder.add_edge(START, "inner")
    builder.add_edge("inner", END)
    result = run(builder.compile(), "hi", entry=entry)
    assert [m.type for m in result.messages] == ["human", "ai", "tool", "ai"]
    assert [outcome.status for outcome in watch.outcomes] == ["success"]
    assert not [key for key in result.values if key.startswith("agentkit") or key == "exit"]


@entries
@granularities
def test_an_agent_called_in_a_node_tells_why_it_ended(entry: EntryPoint, granularity: Any) -> None:
    agent = create_agent(ScriptedModel(calls("look")), [look], limits=Limits(model_calls=1), granularity=granularity)
    reasons: list[Any] = []

    def node(state: Any) -> Any:
        result = agent.invoke({"messages": state["messages"]})
        reasons.append(exit_of(result))
        return {"messages": result["messages"][-1:]}

    builder = StateGraph(Outer)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    run(builder.compile(), "hi", entry=entry)
    assert [reason.reason for reason in reasons] == ["step_budget"]


@granularities
def test_two_agents_side_by_side_do_not_clash_over_fields_neither_wrote(granularity: Any) -> None:
    class Tagged(AgentState[Any]):
        tag: str

    def agent(name: str) -> Any:
        return create_agent(ScriptedModel(f"from {name}"), name=name, state_schema=Tagged, granularity=granularity)

    builder = StateGraph(Tagged)
    for name in ("left", "right"):
        builder.add_node(name, agent(name))
        builder.add_edge(START, name)
    graph: Any = builder.compile()
    result = graph.invoke({"messages": [("user", "hi")], "tag": "x"})
    assert {m.text for m in result["messages"]} == {"hi", "from left", "from right"}
    assert result["tag"] == "x"


@entries
@granularities
def test_an_agent_as_a_tool_pauses_with_the_outer_run(entry: EntryPoint, granularity: Any) -> None:
    inner_watch, outer_watch = Watches(), Watches()
    inner = create_agent(
        ScriptedModel(calls("ask"), "inner done"),
        [ask],
        middleware=[inner_watch],
        name="helper",
        granularity=granularity,
    )
    outer = create_agent(
        ScriptedModel(ai("", tool_call("helper", {"request": "do it"}, "o1")), "outer done"),
        [as_tool(inner, description="Helps.")],
        middleware=[outer_watch],
        checkpointer=InMemorySaver(),
        granularity=granularity,
    )
    paused = run(outer, "hi", thread("t"), entry=entry)
    assert [pause.value for pause in paused.interrupts] == ["really?"]
    result = run(outer, Command(resume="yes"), thread("t"), entry=entry)
    assert [m.text for m in result.messages] == ["hi", "", "inner done", "outer done"]
    assert [outcome.status for outcome in outer_watch.outcomes] == ["interrupted", "success"]
    assert [outcome.status for outcome in inner_watch.outcomes][-1] == "success"


@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
@granularities
@pytest.mark.parametrize("config", [thread("own"), {"configurable": {"thread_id": "own"}}], ids=["thread", "dict"])
def test_an_inner_agent_with_a_thread_of_its_own_cannot_pause_unseen(
    config: Any, entry: EntryPoint, granularity: Any
) -> None:
    """Its caller would take the half-done result for an answer."""
    inner = create_agent(
        ScriptedModel(calls("ask")), [ask], checkpointer=InMemorySaver(), name="helper", granularity=granularity
    )

    @tool
    def delegate() -> str:
        """Delegate."""
        return str(inner.invoke({"messages": "do it"}, config)["messages"][-1].text)

    model = ScriptedModel(ai("", tool_call("delegate")), "outer done")
    outer = create_agent(model, [delegate], checkpointer=InMemorySaver(), granularity=granularity)
    error = run(outer, "hi", thread("t"), entry=entry, catch=True).error
    assert isinstance(error, NestedPause)
    assert "'helper'" in str(error)


def test_an_inner_agent_gets_no_more_model_calls_than_the_outer_run_has_steps() -> None:
    inner_model = ScriptedModel(
        lambda request: ai("", tool_call("look", {"x": len(request.messages)}, "c1")), repeat=True
    )
    inner = create_agent(inner_model, [look], name="helper")
    outer = create_agent(
        ScriptedModel(ai("", tool_call("helper", {"request": "x"}, "o1")), "done"),
        [as_tool(inner, description="Helps.")],
    )
    result = outer.invoke({"messages": "hi"}, {"recursion_limit": 10})
    assert inner_model.calls < 10
    assert result["messages"][2].status == "error"
    assert result["messages"][-1].text == "done"
