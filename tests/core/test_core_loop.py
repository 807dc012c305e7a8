"""What LangChain's own tests do not see: each item of the drop-in's contract that no test of theirs would miss."""

from __future__ import annotations

import operator
from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents.middleware import AgentMiddleware, AgentState, ExtendedModelResponse, ModelResponse, hook_config
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import ToolRuntime, tool
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command
from pydantic import BaseModel

from agentkit import create_agent, exit_of, thread
from agentkit.errors import HookError, UndeclaredJump
from agentkit.testing import ENTRY_POINTS, EntryPoint, ScriptedModel, ai, assert_paired, run, tool_call

granularities = pytest.mark.parametrize("granularity", ["hook", "turn"])
entries = pytest.mark.parametrize("entry", ENTRY_POINTS)


class Answer(BaseModel):
    value: int


@tool
def look(x: int) -> str:
    """Look something up."""
    return f"found {x}"


def looks(id: str = "c1", x: int = 1) -> AIMessage:
    return ai("", tool_call("look", {"x": x}, id))


def hooks(name: str, **phases: Any) -> Any:
    """A middleware of that name; each phase is a function of the state."""

    def made(function: Any) -> Any:
        def hook(self: Any, state: Any, runtime: Any) -> Any:
            return function(state)

        declared = getattr(function, "__can_jump_to__", None)
        return hook_config(can_jump_to=declared)(hook) if declared else hook

    return type(name, (AgentMiddleware,), {phase: made(function) for phase, function in phases.items()})()


# ---- jumps from after_model in an agent with tools


@entries
@granularities
@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "undeclared"])
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("end", ["human", "ai", "tool"]),
        ("model", ["human", "ai", "tool", "ai"]),
        ("tools", ["human", "ai", "tool", "ai"]),
    ],
)
def test_a_jump_from_after_model_is_obeyed_at_every_position(
    position: int, declared: bool, target: Any, expected: list[str], entry: EntryPoint, granularity: Any
) -> None:
    """The model asks for a tool; the jump ends the run or asks again, the call answered but not run, or runs it."""
    order: list[str] = []

    def at(index: int) -> Any:
        def function(state: Any) -> Any:
            order.append(f"{index}")
            calls = state["messages"][-1].tool_calls
            return {"jump_to": target} if index == position and calls else None

        return hook_config(can_jump_to=[target])(function) if declared else function

    middleware = [hooks(f"M{i}", after_model=at(i)) for i in range(3)]
    model = ScriptedModel(looks(), "done")
    result = run(create_agent(model, [look], middleware=middleware, granularity=granularity), "hi", entry=entry)
    assert [m.type for m in result.messages] == expected
    first = order[: 3 - position]
    assert first == [str(i) for i in (2, 1, 0)][: 3 - position], "the rest of the phase is skipped"
    assert_paired(model)
    found = [m.text for m in result.messages if isinstance(m, ToolMessage)]
    assert ("found 1" in found) is (target == "tools"), "only a jump to the tools runs the call"


@granularities
@pytest.mark.parametrize("phase", ["before_agent", "before_model", "after_agent"])
def test_an_undeclared_jump_elsewhere_is_an_error_with_names(phase: str, granularity: Any) -> None:
    middleware = hooks("Careless", **{phase: lambda state: {"jump_to": "end"}})
    agent = create_agent(ScriptedModel("done"), [look], middleware=[middleware], granularity=granularity)
    with pytest.raises(UndeclaredJump, match=rf"Careless\.{phase} returned jump_to='end'.*declares no jumps") as caught:
        agent.invoke({"messages": "hi"})
    assert (caught.value.middleware, caught.value.hook, caught.value.target) == ("Careless", phase, "end")


@granularities
def test_an_undeclared_jump_from_after_model_without_a_loop_is_an_error(granularity: Any) -> None:
    middleware = hooks("Careless", after_model=lambda state: {"jump_to": "model"})
    agent = create_agent(ScriptedModel("done"), middleware=[middleware], granularity=granularity)
    with pytest.raises(UndeclaredJump, match=r"Careless\.after_model"):
        agent.invoke({"messages": "hi"})


@granularities
def test_a_word_that_is_no_jump_is_an_error(granularity: Any) -> None:
    @hook_config(can_jump_to=["end"])
    def jumps(state: Any) -> Any:
        return {"jump_to": "the_end"}

    agent = create_agent(ScriptedModel("x"), middleware=[hooks("Odd", before_model=jumps)], granularity=granularity)
    with pytest.raises(UndeclaredJump, match=r"'the_end', but it may jump to 'end'"):
        agent.invoke({"messages": "hi"})


@granularities
@pytest.mark.parametrize("target", ["model", "end"])
def test_a_jump_is_gone_after_the_hook_it_leads_to(target: Any, granularity: Any) -> None:
    """As in LangChain: an ephemeral field is shown for one step, and never in the result or the stored state."""
    seen: list[Any] = []

    @hook_config(can_jump_to=["model", "end"])
    def jumps(state: Any) -> Any:
        return {"jump_to": target} if len(state["messages"]) == 2 else None

    def looks_on(state: Any) -> None:
        seen.append(state.get("jump_to"))

    middleware = [
        hooks("Second", before_model=lambda state: None, after_agent=looks_on),
        hooks("Jumps", before_model=looks_on, after_model=jumps, after_agent=lambda state: None),
    ]
    agent = create_agent(
        ScriptedModel("one", "two"), middleware=middleware, granularity=granularity, checkpointer=InMemorySaver()
    )
    result = agent.invoke({"messages": "hi"}, thread("t"))
    assert seen == [None] * (3 if target == "model" else 2)
    assert "jump_to" not in result
    assert agent.get_state(thread("t")).values.get("jump_to") is None


@granularities
def test_the_first_before_model_hook_may_jump_to_itself(granularity: Any) -> None:
    visits: list[int] = []

    @hook_config(can_jump_to=["model"])
    def again(state: Any) -> Any:
        visits.append(1)
        return {"jump_to": "model"} if len(visits) == 1 else None

    agent = create_agent(
        ScriptedModel("done"), middleware=[hooks("Again", before_model=again)], granularity=granularity
    )
    assert agent.invoke({"messages": "hi"})["messages"][-1].text == "done"
    assert len(visits) == 2


@granularities
def test_end_from_after_agent_runs_each_remaining_hook_once(granularity: Any) -> None:
    order: list[str] = []

    @hook_config(can_jump_to=["end"])
    def ends(state: Any) -> Any:
        order.append("ends")
        return {"jump_to": "end"}

    middleware = [hooks("Last", after_agent=lambda state: order.append("last")), hooks("Ends", after_agent=ends)]
    create_agent(ScriptedModel("done"), middleware=middleware, granularity=granularity).invoke({"messages": "hi"})
    assert order == ["ends", "last"]


@granularities
def test_a_jump_back_from_after_agent_runs_the_loop_again(granularity: Any) -> None:
    @hook_config(can_jump_to=["model"])
    def unsatisfied(state: Any) -> Any:
        return {"jump_to": "model"} if state["messages"][-1].text == "draft" else None

    model = ScriptedModel("draft", "final")
    agent = create_agent(model, middleware=[hooks("Judge", after_agent=unsatisfied)], granularity=granularity)
    assert [m.text for m in agent.invoke({"messages": "hi"})["messages"]] == ["hi", "draft", "final"]


# ---- what is passed on to the engine


@pytest.mark.parametrize(
    ("breakpoints", "paused_at"),
    [
        ({"interrupt_before": ["tools"]}, "tools"),
        ({"interrupt_after": ["model"]}, "tools"),
        ({"interrupt_before": ["M.before_model"]}, "M.before_model"),
    ],
)
@granularities
async def test_static_breakpoints(breakpoints: Any, paused_at: str, granularity: Any) -> None:
    for asynchronous in (False, True):
        agent = create_agent(
            ScriptedModel(looks(), "done"),
            [look],
            middleware=[hooks("M", before_model=lambda state: None)],
            checkpointer=InMemorySaver(),
            granularity=granularity,
            **breakpoints,
        )
        if asynchronous:
            await agent.ainvoke({"messages": "hi"}, thread("t"))
        else:
            agent.invoke({"messages": "hi"}, thread("t"))
        assert agent.get_state(thread("t")).next == (paused_at,)
        assert exit_of(agent.get_state(thread("t"))) is None
        for _ in range(2):
            result = agent.invoke(None, thread("t"))
        assert result["messages"][-1].text == "done"


def test_the_cache_is_passed_on() -> None:
    cache: InMemoryCache[Any] = InMemoryCache()
    agent = create_agent(ScriptedModel("done"), cache=cache)
    assert agent.cache is cache
    agent.nodes["model"].cache_policy = CachePolicy()
    model_runs = [agent.invoke({"messages": [HumanMessage("hi", id="m1")]})["messages"][-1].text for _ in range(2)]
    assert model_runs == ["done", "done"], "the second came from the cache: the script has one step"


def test_debug_prints_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    create_agent(ScriptedModel("done"), debug=True).invoke({"messages": "hi"})
    assert "model" in capsys.readouterr().out
    create_agent(ScriptedModel("done")).invoke({"messages": "hi"})
    assert capsys.readouterr().out == ""


class Context(BaseModel):
    user: str


@entries
@granularities
def test_the_context_reaches_hooks_wraps_and_tools(entry: EntryPoint, granularity: Any) -> None:
    seen: list[tuple[str, str]] = []

    class Looks(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> None:
            seen.append(("hook", runtime.context.user))

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append(("model wrap", request.runtime.context.user))
            return handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append(("model wrap", request.runtime.context.user))
            return await handler(request)

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            seen.append(("tool wrap", request.runtime.context.user))
            return handler(request)

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            seen.append(("tool wrap", request.runtime.context.user))
            return await handler(request)

    @tool
    def who(runtime: ToolRuntime[Context]) -> str:
        """Who is it."""
        seen.append(("tool", runtime.context.user))
        return "me"

    model = ScriptedModel(ai("", tool_call("who")), "done")
    agent = create_agent(model, [who], middleware=[Looks()], context_schema=Context, granularity=granularity)
    run(agent, "hi", entry=entry, context={"user": "ann"})
    assert dict(seen) == dict.fromkeys(["hook", "model wrap", "tool wrap", "tool"], "ann")


def test_a_context_that_breaks_its_schema_is_refused() -> None:
    agent = create_agent(ScriptedModel("done"), context_schema=Context)
    with pytest.raises(ValueError, match="user"):
        agent.invoke({"messages": "hi"}, context={"nobody": "x"})


def test_the_store_reaches_tools_and_hooks() -> None:
    store = InMemoryStore()

    @tool
    def remember(runtime: ToolRuntime) -> str:
        """Remember."""
        assert runtime.store is not None
        runtime.store.put(("notes",), "n1", {"text": "kept"})
        return "ok"

    class Reads(AgentMiddleware[Any, Any, Any]):
        def after_agent(self, state: Any, runtime: Any) -> Any:
            return {"messages": [AIMessage(runtime.store.get(("notes",), "n1").value["text"])]}

    agent = create_agent(
        ScriptedModel(ai("", tool_call("remember")), "done"), [remember], middleware=[Reads()], store=store
    )
    assert agent.invoke({"messages": "hi"})["messages"][-1].text == "kept"


def test_the_recursion_limit_is_9999_and_the_callers_own_wins() -> None:
    from langgraph.errors import GraphRecursionError

    agent = create_agent(ScriptedModel(looks(), repeat=True), [look])
    assert agent.config is not None
    assert agent.config["recursion_limit"] == 9_999
    with pytest.raises(GraphRecursionError):
        agent.invoke({"messages": "hi"}, {"recursion_limit": 7})


@pytest.mark.parametrize("name", [None, "bot"])
def test_the_name_is_on_messages_and_in_metadata(name: str | None) -> None:
    agent = create_agent(ScriptedModel("done", repeat=True), name=name)
    metadata = (agent.config or {})["metadata"]
    assert metadata["ls_integration"] == "langchain_create_agent"
    assert metadata.get("lc_agent_name") == name
    assert agent.invoke({"messages": "hi"})["messages"][-1].name == name
    streamed = [meta for _, meta in agent.stream({"messages": "hi"}, stream_mode="messages")]
    assert {meta.get("lc_agent_name") for meta in streamed} == {name}


# ---- several middlewares of one class


@entries
@granularities
def test_several_instances_of_one_class_each_run_with_their_own_settings(entry: EntryPoint, granularity: Any) -> None:
    """LangChain refuses two of one name; here they are numbered. The same object twice is refused (test_core_hooks)."""

    class Says(AgentMiddleware[Any, Any, Any]):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

        def before_model(self, state: Any, runtime: Any) -> Any:
            return {"messages": [HumanMessage(self.text)]}

    agent = create_agent(ScriptedModel("done"), middleware=[Says("a"), Says("b")], granularity=granularity)
    assert [m.text for m in run(agent, "hi", entry=entry).messages] == ["hi", "a", "b", "done"]
    assert [stop.name for stop in agent.plan.stops][:2] == ["Says.before_model", "Says#2.before_model"]


# ---- after a synthetic answer, and without any answer


@entries
@granularities
def test_the_model_is_called_again_after_a_synthetic_tool_answer(entry: EntryPoint, granularity: Any) -> None:
    class Answers(AgentMiddleware[Any, Any, Any]):
        def _answered(self, response: Any) -> Any:
            calls = response.result[0].tool_calls
            results = [ToolMessage("not now", tool_call_id=call["id"], name=call["name"]) for call in calls]
            return ModelResponse(result=[*response.result, *results])

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return self._answered(handler(request))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return self._answered(await handler(request))

    ran: list[int] = []

    @tool
    def act(x: int) -> str:
        """Act."""
        ran.append(x)
        return "done"

    model = ScriptedModel(ai("", tool_call("act", {"x": 1})), "final")
    result = run(create_agent(model, [act], middleware=[Answers()], granularity=granularity), "hi", entry=entry)
    assert [m.text for m in result.messages] == ["hi", "", "not now", "final"]
    assert ran == []


@granularities
def test_calls_answered_by_a_command_are_not_executed_and_the_model_is_called_again(granularity: Any) -> None:
    class Answers(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            response = handler(request)
            results = [
                ToolMessage("blocked", tool_call_id=c["id"], name=c["name"]) for c in response.result[0].tool_calls
            ]
            return ExtendedModelResponse(model_response=response, command=Command(update={"messages": results}))

    model = ScriptedModel(looks(), "final")
    agent = create_agent(model, [look], middleware=[Answers()], granularity=granularity)
    assert [m.text for m in agent.invoke({"messages": "hi"})["messages"]] == ["hi", "", "blocked", "final"]


def test_an_answered_call_is_not_run_again_by_a_goto() -> None:
    """A command that leads to the tools brings the whole state, not the calls that are open."""
    ran: list[int] = []

    @tool
    def act(x: int) -> str:
        """Act."""
        ran.append(x)
        return "done"

    def again(state: Any) -> Any:
        return Command(goto="tools") if len(state["messages"]) == 3 else None

    model = ScriptedModel(ai("", tool_call("act", {"x": 1})), "final", "final", repeat=True)
    agent = create_agent(model, [act], middleware=[hooks("Again", before_model=again)])
    result = agent.invoke({"messages": "hi"}, {"recursion_limit": 20})
    assert ran == [1]
    assert result["messages"][-1].text == "final"


@granularities
@pytest.mark.parametrize("tools", [[], [look]], ids=["no tools", "tools"])
def test_a_run_ends_where_no_answer_is_left(tools: list[Any], granularity: Any) -> None:
    ended: list[str] = []

    def clears(state: Any) -> Any:
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("forget it")]}

    middleware = [hooks("Clears", after_model=clears, after_agent=lambda state: ended.append("ended"))]
    model = ScriptedModel(looks())
    agent = create_agent(model, tools, middleware=middleware, granularity=granularity)
    assert [m.text for m in agent.invoke({"messages": "hi"})["messages"]] == ["forget it"]
    assert (ended, model.calls) == (["ended"], 1)


# ---- the history in a request


@entries
@granularities
def test_messages_appended_in_place_are_kept_before_the_reply(entry: EntryPoint, granularity: Any) -> None:
    class Adds(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            request.messages.append(HumanMessage("remember"))
            return handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            request.messages.append(HumanMessage("remember"))
            return await handler(request)

    agent = create_agent(ScriptedModel("done"), middleware=[Adds()], granularity=granularity)
    assert [m.text for m in run(agent, "hi", entry=entry).messages] == ["hi", "remember", "done"]


def test_overridden_messages_are_for_that_call_only() -> None:
    class Cuts(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(messages=[HumanMessage("only this")]))

    model = ScriptedModel("done")
    result = create_agent(model, middleware=[Cuts()]).invoke({"messages": "hi"})
    assert [m.text for m in model.requests[0].messages] == ["only this"]
    assert [m.text for m in result["messages"]] == ["hi", "done"]


def test_a_system_message_is_sent_whole_and_never_stored() -> None:
    blocks: Any = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    model = ScriptedModel("done")
    result = create_agent(model, system_prompt=SystemMessage(blocks)).invoke({"messages": "hi"})
    assert model.requests[0].messages[0].content == blocks
    assert [m.type for m in result["messages"]] == ["human", "ai"]


# ---- structured answers


def test_tool_message_content() -> None:
    model = ScriptedModel(ai("", tool_call("Answer", {"value": 1}, "s1")))
    response_format = ToolStrategy(Answer, tool_message_content="Noted.")
    result = create_agent(model, response_format=response_format).invoke({"messages": "hi"})
    assert (result["messages"][-1].text, result["messages"][-1].tool_call_id) == ("Noted.", "s1")


# ---- commands of wraps


class Scored(AgentState[Any]):
    score: NotRequired[int]
    total: NotRequired[Annotated[int, operator.add]]


def commands(name: str, retry: bool = False, **update: Any) -> Any:
    def wrap_model_call(self: Any, request: Any, handler: Any) -> Any:
        if retry:
            handler(request)
        return ExtendedModelResponse(model_response=handler(request), command=Command(update=update))

    return type(name, (AgentMiddleware,), {"wrap_model_call": wrap_model_call, "state_schema": Scored})()


@granularities
def test_commands_apply_inner_first_and_a_retry_counts_once(granularity: Any) -> None:
    middleware = [commands("Outer", retry=True, total=1), commands("Inner", total=10)]
    agent = create_agent(ScriptedModel("no", "yes"), middleware=middleware, granularity=granularity)
    assert agent.invoke({"messages": "hi"})["total"] == 11


@granularities
def test_two_writes_of_a_plain_field_in_one_model_step_name_the_field(granularity: Any) -> None:
    agent = create_agent(
        ScriptedModel("x"), middleware=[commands("A", score=1), commands("B", score=2)], granularity=granularity
    )
    with pytest.raises(InvalidUpdateError, match="'score'"):
        agent.invoke({"messages": "hi"})


@pytest.mark.parametrize("part", ["goto", "resume", "graph"])
def test_what_a_wraps_command_may_not_do(part: str) -> None:
    class Leaves(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            command: Any = Command(**{part: "elsewhere"})
            return ExtendedModelResponse(model_response=handler(request), command=command)

    with pytest.raises(NotImplementedError, match=f"Command {part} is not yet supported in wrap_model_call"):
        create_agent(ScriptedModel("x"), middleware=[Leaves()]).invoke({"messages": "hi"})


@pytest.mark.parametrize("wrong", [None, "text", {"messages": []}])
def test_a_wrap_that_returns_nothing_usable_is_named(wrong: Any) -> None:
    class Forgets(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            handler(request)
            return wrong

    with pytest.raises(HookError, match=rf"Forgets\.wrap_model_call returned {type(wrong).__name__}"):
        create_agent(ScriptedModel("x"), middleware=[Forgets()]).invoke({"messages": "hi"})


# ---- hooks


@entries
@granularities
@pytest.mark.parametrize("phase", ["before_agent", "before_model", "after_model", "after_agent"])
def test_an_error_in_a_hook_says_where_it_was_raised(phase: str, entry: EntryPoint, granularity: Any) -> None:
    def fails(state: Any) -> None:
        raise ZeroDivisionError("oops")

    agent = create_agent(ScriptedModel("x"), middleware=[hooks("Bad", **{phase: fails})], granularity=granularity)
    error = run(agent, "hi", entry=entry, catch=True).error
    assert isinstance(error, ZeroDivisionError)
    assert f"raised in Bad.{phase}" in error.__notes__


@entries
@granularities
def test_the_order_of_all_hooks_over_two_turns_of_the_loop(entry: EntryPoint, granularity: Any) -> None:
    order: list[str] = []

    def made(name: str) -> Any:
        def note(what: str) -> Any:
            return lambda state: order.append(f"{name} {what}")

        phases = ("before_agent", "before_model", "after_model", "after_agent")
        return hooks(name, **{phase: note(phase) for phase in phases})

    model = ScriptedModel(looks(), "done")
    agent = create_agent(model, [look], middleware=[made("a"), made("b")], granularity=granularity)
    run(agent, "hi", entry=entry)
    loop = ["a before_model", "b before_model", "b after_model", "a after_model"]
    assert order == [
        *["a before_agent", "b before_agent"],
        *loop,
        *loop,
        *["b after_agent", "a after_agent"],
    ]
