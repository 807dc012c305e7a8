"""Field reports, family D, and LC-34165: what they want of gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import Middleware, create_agent, exit_of, thread
from agentkit.middleware import (
    ConsecutiveFailures,
    Gates,
    Handoff,
    RepeatedCall,
    StepBudget,
    ToolCallBudget,
)
from agentkit.testing import EntryPoint, Request, RunResult, ScriptedModel, ai, assert_paired, run, tool_call

Maker = Callable[..., Any]


def reason(ended: RunResult) -> str:
    found = exit_of(ended.raw)
    return found.reason if found else "not ended"


def again(name: str, **args: Any) -> Callable[[Request], Any]:
    """Calls the tool with an id that is new; once no tools are offered, the model says `summary`."""
    return lambda r: ai("", tool_call(name, args, f"{name}{r.turn}")) if r.tools else "summary"


def fetch(act: Maker) -> Any:
    """A tool that fails in the way that the model is told about."""

    def does(x: int) -> str:
        raise ToolException("not found")

    made = act("fetch", does)
    made.tool.handle_tool_error = True
    return made


def test_hay_10001_the_budget_ends_with_a_summary_without_tools(entry: EntryPoint, act: Maker) -> None:
    look = act("look")
    model = ScriptedModel(lambda r: again("look", x=r.turn)(r), repeat=True)
    ended = run(create_agent(model, [look.tool], middleware=[Gates(StepBudget(2))]), "hi", entry=entry)
    assert (ended.text, reason(ended)) == ("summary", "step_budget")
    assert model.requests[-1].tools == []
    assert_paired(model, ended.messages)


def test_hay_10001_a_closing_call_that_fails_leaves_a_text(entry: EntryPoint, act: Maker) -> None:
    look = act("look")
    model = ScriptedModel(again("look"), again("look"), TimeoutError("no answer"))
    ended = run(create_agent(model, [look.tool], middleware=[Gates(StepBudget(2))]), "hi", entry=entry)
    assert ended.messages[-1].type == "ai" and "look 0" in ended.text
    assert reason(ended) == "step_budget"


def test_crew_7450_exactly_one_closing_call_that_does_not_end_on_an_answer(entry: EntryPoint, act: Maker) -> None:
    look = act("look")
    model = ScriptedModel(again("look"), repeat=True)
    run(create_agent(model, [look.tool], middleware=[Gates(StepBudget(2))]), "hi", entry=entry)
    assert model.calls == 3
    assert model.requests[-1].messages[-1].type == "human"


class Looks(AgentMiddleware[Any, Any, Any]):
    """Hooks that do nothing."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    @property
    def name(self) -> str:
        return f"looks-{self.number}"

    def before_model(self, state: Any, runtime: Any) -> None:
        return None

    def after_model(self, state: Any, runtime: Any) -> None:
        return None


@pytest.mark.parametrize("hooks", [0, 6])
def test_lc_36351_the_budget_counts_model_turns_not_hooks(call: EntryPoint, act: Maker, hooks: int) -> None:
    look = act("look")
    model = ScriptedModel(lambda r: again("look", x=r.turn)(r), repeat=True)
    stack: list[AgentMiddleware[Any, Any, Any]] = [
        *[Looks(i) for i in range(hooks)],
        Gates(StepBudget(7), on_trip="stop"),
    ]
    run(create_agent(model, [look.tool], middleware=stack), "hi", entry=call)
    assert model.calls == 7


def test_lc_37961_a_tool_that_does_not_exist_is_nudged_then_stopped(entry: EntryPoint, act: Maker) -> None:
    model = ScriptedModel(again("open_browser", url="x"), repeat=True)
    gates = Gates(RepeatedCall(3, nudge_at=2))
    ended = run(create_agent(model, [act("look").tool], middleware=[gates]), "hi", entry=entry)
    assert model.calls <= 4
    assert "open_browser" in model.requests[2].messages[-1].text and model.requests[2].messages[-1].type == "human"
    assert (ended.text, reason(ended)) == ("summary", "repeated_call")
    assert_paired(model, ended.messages)


@pytest.mark.parametrize("said", ["answer", ""])
def test_lcjs_10090_the_end_of_a_tool_budget_is_never_an_empty_answer(entry: EntryPoint, act: Maker, said: str) -> None:
    look = act("look")
    model = ScriptedModel(lambda r: again("look", x=r.turn)(r) if r.tools else said, repeat=True)
    ended = run(create_agent(model, [look.tool], middleware=[Gates(ToolCallBudget(1))]), "hi", entry=entry)
    assert look.ran == [0]
    assert ended.text == said or "look 0" in ended.text
    assert ended.text


def test_deer_2511_results_that_differ_go_on_and_equal_ones_trip(entry: EntryPoint, act: Maker) -> None:
    answers = iter(["pending", "pending", "done"])
    poll = act("poll", lambda x: next(answers))

    def answer(request: Request) -> Any:
        last = request.messages[-1]
        return "finished" if isinstance(last, ToolMessage) and last.text == "done" else again("poll")(request)

    ended = run(
        create_agent(ScriptedModel(answer, repeat=True), [poll.tool], middleware=[Gates(RepeatedCall(3))]),
        "hi",
        entry=entry,
    )
    assert (ended.text, reason(ended)) == ("finished", "answer")

    stuck = act("poll", lambda x: "pending")
    for exempt, starts in (((), 3), (("poll",), 6)):
        stuck.ran.clear()
        model = ScriptedModel(*[again("poll")] * 6, "done")
        gates = Gates(RepeatedCall(3, exempt=exempt), on_trip="stop")
        ended = run(create_agent(model, [stuck.tool], middleware=[gates]), "hi", entry=entry)
        assert len(stuck.ran) == starts
        assert_paired(model, ended.messages)


def test_atr_80_argument_order_and_unknown_tools_and_new_turns(entry: EntryPoint, act: Maker) -> None:
    def answer(request: Request) -> Any:
        args = {"a": 1, "b": 2} if request.turn % 2 else {"b": 2, "a": 1}
        return ai("", tool_call("unknown", args, f"c{request.turn}")) if request.turn < stop_at else "none"

    model = ScriptedModel(answer, repeat=True)
    gates = Gates(RepeatedCall(3), on_trip="stop")
    agent = create_agent(model, [act("look").tool], middleware=[gates], checkpointer=InMemorySaver())
    stop_at = 2
    for _ in range(3):  # the same question, turn after turn
        assert reason(run(agent, "hi", thread("t"), entry=entry)) == "answer"
    stop_at = 99
    ended = run(agent, "hi", thread("t"), entry=entry)
    assert reason(ended) == "repeated_call"
    assert model.calls == 9 + 3


def test_pyd_2311_a_batch_counts_once(entry: EntryPoint, act: Maker) -> None:
    failing, look = fetch(act), act("look")
    batch = ai("", *[tool_call("fetch", {"x": i}, f"c{i}") for i in range(3)])
    model = ScriptedModel(batch, ai("", tool_call("look")), "done")
    gates = Gates(ConsecutiveFailures(3))
    ended = run(create_agent(model, [failing.tool, look.tool], middleware=[gates]), "hi", entry=entry)
    assert (len(failing.ran), ended.text, reason(ended)) == (3, "done", "answer")


@pytest.mark.parametrize(("of", "end"), [("any", "answer"), ("tool", "failures")])
def test_pyd_4940_progress_beside_an_unknown_name(entry: EntryPoint, act: Maker, of: Any, end: str) -> None:
    """Counted over all calls the run goes on; counted by name it ends, but it never raises."""
    look = act("look")
    mixed = [ai("", tool_call("unknown", id="u"), tool_call("look", {"x": x}, "l")) for x in (1, 2)]
    model = ScriptedModel(*mixed, "done")
    gates = Gates(ConsecutiveFailures(2, of=of))
    ended = run(create_agent(model, [look.tool], middleware=[gates]), "hi", entry=entry)
    assert (look.ran, ended.text, reason(ended)) == ([1, 2], "done", end)
    assert_paired(model, ended.messages)


def test_pyd_6388_what_was_started_counts_whatever_became_of_it(entry: EntryPoint, act: Maker) -> None:
    failing = fetch(act)
    model = ScriptedModel(lambda r: again("fetch", x=r.turn)(r), repeat=True)
    ended = run(create_agent(model, [failing.tool], middleware=[Gates(ToolCallBudget(2))]), "hi", entry=entry)
    assert failing.ran == [0, 1]
    assert (ended.text, reason(ended)) == ("summary", "step_budget")


class Redacts(AgentMiddleware[Any, Any, Any]):
    """An output guard at the end of the run."""

    def after_agent(self, state: Any, runtime: Any) -> Any:
        last = state["messages"][-1]
        return {"messages": [last.model_copy(update={"content": last.text.replace("allowed", "[redacted]")})]}


@pytest.mark.parametrize("on_trip", ["stop", Handoff("support", message="more is not allowed")])
def test_oai_4393_a_gates_text_passes_the_guards_and_is_stored(entry: EntryPoint, act: Maker, on_trip: Any) -> None:
    model = ScriptedModel(again("look"), repeat=True)
    stack: list[AgentMiddleware[Any, Any, Any]] = [Redacts(), Gates(StepBudget(1), on_trip=on_trip)]
    agent = create_agent(model, [act("look").tool], middleware=stack, checkpointer=InMemorySaver())
    ended = run(agent, "hi", thread("t"), entry=entry)
    assert "[redacted]" in ended.text
    assert agent.get_state(thread("t")).values["messages"][-1].text == ended.text


def test_lc_34165_one_record_per_run_names_the_gate(entry: EntryPoint, act: Maker) -> None:
    seen: list[str] = []

    class Watches(Middleware):
        def around_run(self, run: Any) -> Any:
            outcome = yield
            seen.append(outcome.exit.reason)

    class Counts(BaseCallbackHandler):
        roots = 0

        def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            self.roots += kwargs.get("parent_run_id") is None

    for steps, end in ((9, "answer"), (1, "step_budget")):
        handler = Counts()
        model = ScriptedModel(again("look"), "done")
        agent = create_agent(model, [act("look").tool], middleware=[Watches(), Gates(StepBudget(steps))])
        ended = run(agent, "hi", {"callbacks": [handler]}, entry=entry)
        assert (reason(ended), seen[-1], handler.roots) == (end, end, 1)
    assert len(seen) == 2
