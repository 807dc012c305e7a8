"""Gates: what each rule counts, what happens when one trips, and what survives."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from agentkit import Exit, Middleware, create_agent, exit_of, thread
from agentkit.errors import ConfigurationError, GateTripped
from agentkit.middleware import (
    ConsecutiveFailures,
    CostBudget,
    Deadline,
    Gates,
    Handoff,
    Price,
    RepeatedCall,
    Rule,
    SameCallFailed,
    Standing,
    StepBudget,
    TokenBudget,
    ToolCallBudget,
)
from agentkit.testing import (
    ENTRY_POINTS,
    EntryPoint,
    Request,
    RunResult,
    ScriptedModel,
    ai,
    assert_paired,
    invalid_call,
    run,
    tool_call,
)


class Desk:
    """Tools that remember what they were called with, and do what the test wants."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.answers: Iterator[str] | None = None

    def tools(self) -> list[BaseTool]:
        @tool
        def look(x: int = 0) -> str:
            """Look something up."""
            self.ran.append(f"look {x}")
            return next(self.answers) if self.answers else f"value {x}"

        @tool
        def fail(x: int = 0) -> str:
            """Fails."""
            self.ran.append(f"fail {x}")
            raise ToolException("not found")

        @tool
        def save(x: int = 0) -> str:
            """Write something."""
            self.ran.append(f"save {x}")
            return "saved"

        @tool
        def ask(x: int = 0) -> str:
            """Ask a person."""
            self.ran.append(f"ask {x}")
            return str(interrupt("?"))

        fail.handle_tool_error = True
        return [look, fail, save, ask]


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture(params=ENTRY_POINTS)
def entry(request: pytest.FixtureRequest) -> EntryPoint:
    return request.param  # type: ignore[no-any-return]


def calling(*names: str, **usage: Any) -> Callable[[Request], AIMessage]:
    """A step that calls these tools, each with an argument that is new."""
    return lambda r: ai("", *[tool_call(n, {"x": r.turn}, f"{n}{r.turn}{i}") for i, n in enumerate(names)], **usage)


def same(*names: str) -> Callable[[Request], AIMessage]:
    """A step that calls these tools with the same arguments each time."""
    return lambda r: ai("", *[tool_call(n, {"x": 1}, f"{n}{r.turn}{i}") for i, n in enumerate(names)])


def or_say(text: str, step: Callable[[Request], AIMessage]) -> Callable[[Request], Any]:
    """The step while tools are offered, else the text."""
    return lambda r: step(r) if r.tools else text


def build(model: ScriptedModel, desk: Desk, *gates: AgentMiddleware[Any, Any, Any], **options: Any) -> Any:
    return create_agent(model, desk.tools(), middleware=gates, **{"checkpointer": InMemorySaver(), **options})


def reason(ended: RunResult) -> str:
    found = exit_of(ended.raw)
    return found.reason if found else "not ended"


def told(model: ScriptedModel, number: int) -> str:
    """The last message of a request, if it is not the user's."""
    last = model.requests[number].messages[-1]
    return str(last.text) if isinstance(last, HumanMessage) and "supervision" in last.text else ""


# ---- what happens when a rule trips


def test_the_closing_call_offers_no_tools_and_its_answer_is_the_last_word(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(or_say("summary", calling("look")), repeat=True)
    ended = run(build(model, desk, Gates(StepBudget(2))), "hi", thread("t"), entry=entry)
    assert desk.ran == ["look 0"]
    assert [bool(r.tools) for r in model.requests] == [True, True, False]
    assert "2 model calls were made" in told(model, 2)
    assert (ended.text, reason(ended)) == ("summary", "step_budget")
    assert not any("supervision" in str(m.text) for m in ended.messages)
    assert_paired(model, ended.messages)


@pytest.mark.parametrize(
    "reply", [RuntimeError("down"), "", ai("", tool_call("look"))], ids=["raises", "empty", "calls"]
)
def test_a_closing_call_that_gives_nothing_is_replaced(entry: EntryPoint, desk: Desk, reply: Any) -> None:
    model = ScriptedModel(lambda r: calling("look")(r) if r.tools else reply, repeat=True)
    ended = run(build(model, desk, Gates(StepBudget(2))), "hi", thread("t"), entry=entry)
    assert "2 model calls were made" in ended.text and "look: value 0" in ended.text
    assert (desk.ran, model.calls, reason(ended)) == (["look 0"], 3, "step_budget")
    assert_paired(model, ended.messages)


def test_a_closing_answer_with_calls_beside_it_keeps_its_text(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(or_say(ai("the sum so far", tool_call("look")), calling("look")), repeat=True)  # type: ignore[arg-type]
    ended = run(build(model, desk, Gates(StepBudget(1))), "hi", thread("t"), entry=entry)
    assert (ended.text, desk.ran) == ("the sum so far", [])
    assert_paired(model, ended.messages)


def test_stop_answers_the_open_calls_and_says_why(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(calling("look", "save"), repeat=True)
    ended = run(build(model, desk, Gates(StepBudget(2), on_trip="stop")), "hi", thread("t"), entry=entry)
    assert sorted(desk.ran) == ["look 0", "save 0"]
    closed = [m for m in ended.messages if isinstance(m, ToolMessage)][-2:]
    assert all(m.status == "error" and "Not executed" in m.text for m in closed)
    assert "2 model calls were made, 2 are allowed per user turn" in ended.text
    assert model.calls == 2
    assert_paired(model, ended.messages)


def test_raise_carries_the_messages_but_does_not_show_them(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(calling("look"), repeat=True)
    agent = build(model, desk, Gates(StepBudget(2), on_trip="raise"))
    with pytest.raises(GateTripped) as raised:
        run(agent, "my secret", thread("t"), entry=entry)
    error = raised.value
    assert (error.reason, error.source) == ("step_budget", "Gates.after_model")
    assert [m.type for m in error.messages] == ["human", "ai", "tool", "ai", "tool"]
    assert_paired(error.messages)
    assert "secret" not in str(error)
    assert isinstance(error, RuntimeError)


def test_a_function_may_say_the_last_word(entry: EntryPoint, desk: Desk) -> None:
    def sorry(state: Mapping[str, Any], why: Exit) -> str:
        return f"sorry after {len(state['messages'])} messages: {why.reason}"

    model = ScriptedModel(calling("look"), repeat=True)
    ended = run(build(model, desk, Gates(StepBudget(1), on_trip=sorry)), "hi", thread("t"), entry=entry)
    assert (ended.text, reason(ended)) == ("sorry after 2 messages: step_budget", "step_budget")
    assert_paired(model, ended.messages)


def test_a_function_may_let_the_run_go_on_with_new_counts(entry: EntryPoint, desk: Desk) -> None:
    asked = []

    def more(state: Mapping[str, Any], why: Exit) -> Any:
        asked.append(why.reason)
        return {"jump_to": "model", "messages": HumanMessage("go on")} if len(asked) == 1 else None

    model = ScriptedModel(*[calling("look") for _ in range(5)], "done")
    ended = run(build(model, desk, Gates(StepBudget(2), on_trip=more)), "hi", thread("t"), entry=entry)
    assert (ended.text, reason(ended)) == ("done", "answer")
    assert len(desk.ran) == 4  # of five, one was withdrawn when the counts started anew
    assert asked[:2] == ["step_budget", "step_budget"]
    assert_paired(model, ended.messages)


def test_the_exit_passes_through_after_agent_once(entry: EntryPoint, desk: Desk) -> None:
    seen = []

    class Sees(AgentMiddleware[Any, Any, Any]):
        def after_agent(self, state: Any, runtime: Any) -> None:
            seen.append(state["exit"]["reason"])

    for on_trip in ("stop", "wrap_up"):
        model = ScriptedModel(or_say("bye", calling("look")), repeat=True)
        run(build(model, desk, Sees(), Gates(StepBudget(1), on_trip=on_trip)), "hi", thread("t"), entry=entry)
    assert seen == ["step_budget", "step_budget"]


def test_a_structured_answer_may_close_the_run(desk: Desk) -> None:
    class Answer(BaseModel):
        value: int

    model = ScriptedModel(
        lambda r: calling("look")(r) if "look" in r.tools else ai("", tool_call("Answer", {"value": 4})), repeat=True
    )
    ended = run(build(model, desk, Gates(StepBudget(2)), response_format=ToolStrategy(Answer)), "hi", thread("t"))
    assert ended.values["structured_response"] == Answer(value=4)
    assert reason(ended) == "step_budget"
    assert model.requests[2].tools == ["Answer"]


def test_an_answer_is_never_withheld(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(calling("look"), "done")
    gates = Gates(StepBudget(2), TokenBudget(1), ToolCallBudget(1))
    ended = run(build(model, desk, gates), "hi", thread("t"), entry=entry)
    assert (ended.text, reason(ended)) == ("done", "answer")


# ---- budgets


def test_remaining_steps_can_be_read_and_written_by_hooks_and_tools(entry: EntryPoint, desk: Desk) -> None:
    seen = []

    class Miser(Middleware):
        def after_model(self, state: Any, runtime: Any) -> Any:
            seen.append(state["remaining_steps"])
            return {"remaining_steps": 1} if len(seen) == 1 else None

    model = ScriptedModel(calling("look"), repeat=True)
    agent = build(model, desk, Gates(StepBudget(9), on_trip="stop"), Miser())
    ended = run(agent, "hi", thread("t"), entry=entry)
    assert seen == [8, 0]
    assert (model.calls, desk.ran, reason(ended)) == (2, ["look 0"], "step_budget")


def test_a_tool_may_stop_the_run_through_remaining_steps(entry: EntryPoint, desk: Desk) -> None:
    @tool
    def enough() -> Command[Any]:
        """Says that it is enough."""
        return Command(update={"remaining_steps": 0, "messages": [ToolMessage("ok", tool_call_id="e")]})

    model = ScriptedModel(ai("", tool_call("enough", id="e")), repeat=True)
    agent = create_agent(model, [enough], middleware=[Gates(StepBudget(9), on_trip="stop")])
    ended = run(agent, "hi", entry=entry)
    assert (model.calls, reason(ended), ended.values["remaining_steps"]) == (1, "step_budget", 0)


def test_a_run_budget_starts_anew_with_each_turn_and_a_thread_budget_does_not(desk: Desk) -> None:
    steps: list[Any] = [calling("look"), "done"] * 3
    model = ScriptedModel(*steps, "done")
    agent = build(model, desk, Gates(StepBudget(2) | StepBudget(6, per="thread"), on_trip="stop"))
    for _ in range(3):
        ended = run(agent, "hi", thread("t"))
        assert (ended.text, reason(ended)) == ("done", "answer")
    ended = run(agent, "hi", thread("t"))
    assert (reason(ended), model.calls) == ("step_budget", 6)
    assert "per thread" in ended.text
    assert run(agent, "hi", thread("other")).text == "done"


def test_a_thread_budget_survives_a_restart(desk: Desk, tmp_path: Path) -> None:
    reasons = []
    for _ in range(3):  # three processes on one file
        connection = sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)
        model = ScriptedModel(calling("look"), "done")
        gates = Gates(ToolCallBudget(2, per="thread"), on_trip="stop")
        reasons.append(reason(run(build(model, desk, gates, checkpointer=SqliteSaver(connection)), "hi", thread("t"))))
        connection.close()
    assert reasons == ["answer", "answer", "step_budget"]
    assert len(desk.ran) == 2


def test_counts_survive_a_pause_and_are_not_counted_twice(desk: Desk, tmp_path: Path) -> None:
    def again(model: ScriptedModel) -> Any:
        connection = sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)
        return build(model, desk, Gates(StepBudget(3), on_trip="stop"), checkpointer=SqliteSaver(connection))

    run(again(ScriptedModel(calling("look"), calling("ask"))), "hi", thread("t"))
    model = ScriptedModel(calling("look"), repeat=True)
    agent = again(model)
    ended = run(agent, Command(resume="yes"), thread("t"))
    assert (model.calls, reason(ended)) == (1, "step_budget")
    assert ended.values["remaining_steps"] == 0


def test_a_tool_call_budget_is_decided_before_the_batch_starts(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(calling("look", "look"), calling("look", "look", "save"))
    ended = run(build(model, desk, Gates(ToolCallBudget(4), on_trip="stop")), "hi", thread("t"), entry=entry)
    assert len(desk.ran) == 2
    assert "2 calls were made, 4 are allowed per user turn, and 3 more were asked for" in ended.text
    assert_paired(model, ended.messages)


def test_a_tool_call_budget_of_one_tool(desk: Desk) -> None:
    model = ScriptedModel(calling("look", "look"), calling("look"), calling("save"), "done")
    ended = run(build(model, desk, Gates(ToolCallBudget(1, "save"))), "hi", thread("t"))
    assert (ended.text, len(desk.ran)) == ("done", 4)


def test_tokens_are_counted_in_streams_too(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(calling("look", usage=(90, 10)), repeat=True)
    ended = run(build(model, desk, Gates(TokenBudget(250), on_trip="stop")), "hi", thread("t"), entry=entry)
    assert (model.calls, reason(ended)) == (3, "token_budget")
    assert "300 tokens were used, 250 are allowed" in ended.text


def test_missing_usage_is_said_and_never_taken_for_nothing(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(calling("look"), calling("look", usage=(90, 10)), calling("look"), "done")
    with caplog.at_level(logging.WARNING, "agentkit"):
        ended = run(build(model, desk, Gates(TokenBudget(90), on_trip="stop")), "hi", thread("t"))
    assert "(1 model calls reported no usage)" in ended.text
    assert [r.event for r in caplog.records] == ["gate.blind", "gate.blind", "gate.decision"]  # type: ignore[attr-defined]


def test_a_call_without_usage_may_count_as_so_many(desk: Desk) -> None:
    model = ScriptedModel(calling("look"), repeat=True)
    ended = run(build(model, desk, Gates(TokenBudget(100, assume=40), on_trip="stop")), "hi", thread("t"))
    assert (model.calls, reason(ended)) == (3, "token_budget")


def priced(model: str, prompt: int, answer: int, cached: int = 0) -> Callable[[Request], AIMessage]:
    def step(request: Request) -> AIMessage:
        message = calling("look")(request)
        message.response_metadata["model_name"] = model
        message.usage_metadata = {
            "input_tokens": prompt,
            "output_tokens": answer,
            "total_tokens": prompt + answer,
            "input_token_details": {"cache_read": cached},
        }
        return message

    return step


def test_cost_is_counted_by_model_with_the_cached_part_apart(desk: Desk) -> None:
    prices = {"big": Price(10, 20, cached=1), "*": Price(1, 1)}
    # big-2026: (100k * 10 + 900k * 1 + 100k * 20) / 1M = 3.9; other: 0.2
    model = ScriptedModel(priced("big-2026", 1_000_000, 100_000, 900_000), priced("other", 100_000, 100_000))
    ended = run(build(model, desk, Gates(CostBudget(4.05, prices), on_trip="stop")), "hi", thread("t"))
    assert "cost 4.1, 4.05 is allowed" in ended.text
    assert (reason(ended), len(desk.ran)) == ("cost_budget", 1)


def test_an_unknown_price_is_said(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(priced("new", 10, 10), "done")
    with caplog.at_level(logging.WARNING, "agentkit"):
        run(build(model, desk, Gates(CostBudget(1, {"old": Price(1, 1)}))), "hi", thread("t"))
    assert "no price is known for new" in caplog.text


class Clock:
    """A clock that goes forward by what is asked of it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_deadline_ends_the_loop_and_nudges_first(entry: EntryPoint, desk: Desk) -> None:
    clock = Clock()

    def slow(request: Request) -> AIMessage:
        clock.now += 20
        return calling("look")(request)

    model = ScriptedModel(slow, repeat=True)
    gates = Gates(Deadline(60, nudge_at=40), on_trip="stop", clock=clock)
    ended = run(build(model, desk, gates), "hi", thread("t"), entry=entry)
    assert (model.calls, reason(ended)) == (3, "deadline")
    assert [bool(told(model, i)) for i in range(3)] == [False, False, True]


@pytest.mark.parametrize("restart", [False, True])
def test_a_deadline_does_not_count_the_time_of_a_pause(desk: Desk, restart: bool) -> None:
    clock, saver = Clock(), InMemorySaver()

    def slow(request: Request) -> Any:
        clock.now += 10
        return calling("ask")(request) if request.turn == 0 else "done"

    def agent() -> Any:
        return build(ScriptedModel(slow, repeat=True), desk, Gates(Deadline(60), clock=clock), checkpointer=saver)

    one = agent()
    run(one, "hi", thread("t"))
    clock.now += 86_400
    ended = run(agent() if restart else one, Command(resume="yes"), thread("t"))
    assert (ended.text, reason(ended)) == ("done", "answer")


@pytest.mark.parametrize("slow_part", ["model", "tool"])
def test_a_deadline_may_hand_over_to_a_person_who_takes_a_day(desk: Desk, slow_part: str) -> None:
    clock, saver = Clock(), InMemorySaver()

    def passes(part: str, seconds: float) -> None:
        clock.now += seconds if part == slow_part else 0

    def answer(request: Request) -> Any:
        passes("model", 70)
        return "done" if "support says" in str(request.messages[-1].text) else calling("look")(request)

    def slow(seconds: float) -> Iterator[str]:
        while True:
            passes("tool", seconds)
            yield "found"

    def agent() -> Any:
        gates = Gates(Deadline(60), on_trip=Handoff("support", wait=True), clock=clock)
        return build(ScriptedModel(answer, repeat=True), desk, gates, checkpointer=saver)

    desk.answers = slow(70)
    paused = run(agent(), "hi", thread("t"))
    assert paused.interrupts[0].value["reason"] == "deadline"
    clock.now += 86_400
    ended = run(agent(), Command(resume="take your time"), thread("t"))
    assert (ended.text, reason(ended), ended.interrupts) == ("done", "answer", ())
    assert_paired(ended.messages)


def test_the_detail_of_a_thread_budget_names_what_is_allowed(desk: Desk) -> None:
    model = ScriptedModel(or_say("bye", calling("look")), repeat=True)
    agent = build(model, desk, Gates(StepBudget(2, per="thread")))
    run(agent, "hi", thread("t"))  # two calls and the closing one
    found = exit_of(run(agent, "hi again", thread("t")).raw)
    assert found and found.detail == "3 model calls were made, 2 are allowed per thread"


# ---- failures and repetitions


def test_consecutive_failures_count_answers_of_which_all_calls_failed(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(
        calling("fail", "fail", "fail"), calling("fail", "look"), calling("fail"), calling("fail", "fail"), "done"
    )
    gates = Gates(ConsecutiveFailures(2), on_trip="stop")
    ended = run(build(model, desk, gates), "hi", thread("t"), entry=entry)
    assert (model.calls, reason(ended)) == (4, "failures")
    assert "every tool call of the last 2 answers failed" in ended.text


def test_consecutive_failures_of_one_tool(desk: Desk) -> None:
    model = ScriptedModel(calling("fail", "look"), repeat=True)
    ended = run(build(model, desk, Gates(ConsecutiveFailures(3, of="tool"), on_trip="stop")), "hi", thread("t"))
    assert (model.calls, reason(ended)) == (3, "failures")
    assert "`fail` failed in 3 answers in a row" in ended.text


def test_calls_that_cannot_be_read_are_failures(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(lambda r: ai("", invalid_call("look", id=f"c{r.turn}")), repeat=True)
    gates = Gates(ConsecutiveFailures(2), on_trip="stop")
    ended = run(build(model, desk, gates), "hi", thread("t"), entry=entry)
    assert (model.calls, reason(ended)) == (2, "failures")


def test_what_a_failure_is_can_be_said(desk: Desk) -> None:
    desk.answers = iter(["Error: user not found"] * 9)
    model = ScriptedModel(calling("look"), repeat=True)
    gates = Gates(ConsecutiveFailures(2), on_trip="stop", failed=lambda result: result.text.startswith("Error"))
    ended = run(build(model, desk, gates), "hi", thread("t"))
    assert (model.calls, reason(ended)) == (2, "failures")


def test_the_same_call_that_failed_stops_and_another_argument_does_not(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(calling("fail"), calling("fail"), same("fail"), calling("look"), same("fail"), "done")
    gates = Gates(SameCallFailed(2), on_trip="stop")
    ended = run(build(model, desk, gates), "hi", thread("t"), entry=entry)
    assert reason(ended) == "repeated_call"
    assert "the same call of `fail` failed 2 times" in ended.text
    assert model.calls == 3  # the second call had x=1 too


def test_a_repeated_call_is_nudged_then_stopped(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(or_say("what I know", same("look")), repeat=True)
    gates = Gates(RepeatedCall(3, nudge_at=2))
    ended = run(build(model, desk, gates), "hi", thread("t"), entry=entry)
    assert [bool(told(model, i)) for i in range(4)] == [False, False, True, True]
    assert "the same call of `look` gave the same result 2 times" in told(model, 2)
    assert (ended.text, reason(ended), len(desk.ran)) == ("what I know", "repeated_call", 3)
    assert_paired(model, ended.messages)


def test_a_batch_of_equal_calls_counts_once(desk: Desk) -> None:
    model = ScriptedModel(same("look", "look", "look"), same("look"), "done")
    ended = run(build(model, desk, Gates(RepeatedCall(3))), "hi", thread("t"))
    assert ended.text == "done"


@pytest.mark.parametrize("declared", ["contract", "by name"])
def test_a_successful_write_between_starts_the_count_anew(desk: Desk, declared: str) -> None:
    tools = desk.tools()
    if declared == "contract":
        tools[2].metadata = {"agentkit": {"effect": "write"}}
    model = ScriptedModel(*[same("look"), calling("save")] * 4, "done")
    gates = Gates(RepeatedCall(2), writes=() if declared == "contract" else ["save"])
    agent = create_agent(model, tools, middleware=[gates])
    assert run(agent, "hi").text == "done"


def test_a_write_repeated_as_it_was_is_a_loop_too(desk: Desk) -> None:
    model = ScriptedModel(same("save"), repeat=True)
    ended = run(build(model, desk, Gates(RepeatedCall(3), on_trip="stop", writes=["save"])), "hi", thread("t"))
    assert (len(desk.ran), reason(ended)) == (3, "repeated_call")


def test_polling_is_allowed_by_results_or_by_name(desk: Desk) -> None:
    desk.answers = iter(["1 %", "1 %", "2 %", "2 %", "done"])
    model = ScriptedModel(*[same("look")] * 5, "done")
    assert run(build(model, desk, Gates(RepeatedCall(3))), "hi", thread("t")).text == "done"
    desk.answers = iter(["pending"] * 5)
    model = ScriptedModel(*[same("look")] * 5, "done")
    assert run(build(model, desk, Gates(RepeatedCall(3, exempt=("look",)))), "hi", thread("t")).text == "done"


# ---- composition, misuse, neighbours


def test_and_trips_when_both_do(desk: Desk) -> None:
    model = ScriptedModel(same("look"), repeat=True)
    both = StepBudget(4, nudge_at=3) & RepeatedCall(2)
    ended = run(build(model, desk, Gates(both, on_trip="stop")), "hi", thread("t"))
    assert model.calls == 4
    assert "4 model calls were made" in ended.text and "the same result 3 times" in ended.text
    assert [bool(told(model, i)) for i in range(4)] == [False, False, False, True]
    model = ScriptedModel(*[calling("look")] * 6, "done")
    assert run(build(model, desk, Gates(both)), "hi", thread("t")).text == "done"


def test_or_names_the_one_that_tripped(desk: Desk) -> None:
    model = ScriptedModel(same("look"), repeat=True)
    ended = run(build(model, desk, Gates(StepBudget(9) | RepeatedCall(2), on_trip="stop")), "hi", thread("t"))
    assert reason(ended) == "repeated_call"


def test_a_rule_of_your_own(desk: Desk) -> None:
    class NoSave(Rule):
        def tripped(self, standing: Standing) -> Exit | None:
            return Exit("rejected", "nothing may be saved today") if standing.asked["save"] else None

    model = ScriptedModel(calling("look"), calling("look", "save"))
    ended = run(build(model, desk, Gates(NoSave() | StepBudget(9), on_trip="stop")), "hi", thread("t"))
    assert (reason(ended), desk.ran) == ("rejected", ["look 0"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: StepBudget(0),
        lambda: RepeatedCall(3, nudge_at=3),
        lambda: TokenBudget(9, per="day"),  # type: ignore[arg-type]
        lambda: Gates(on_trip="panic"),  # type: ignore[arg-type]
        lambda: Gates(StepBudget),  # type: ignore[arg-type]
        lambda: Gates(10),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_work_is_refused_when_it_is_made(make: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError):
        make()


def test_a_validator_that_sends_the_answer_back_is_bounded(entry: EntryPoint, desk: Desk) -> None:
    class NeverContent(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["model"])
        def after_model(self, state: Any, runtime: Any) -> Any:
            return {"jump_to": "model", "messages": [HumanMessage("not good enough")]}

    for order in (0, 1):  # before and behind the hook that counts answers
        model = ScriptedModel("an answer", repeat=True)
        stack: list[AgentMiddleware[Any, Any, Any]] = [Gates(StepBudget(4), on_trip="stop")]
        stack.insert(order, NeverContent())
        ended = run(build(model, desk, *stack), "hi", thread("t"), entry=entry)
        assert (model.calls, reason(ended)) == (4, "step_budget")


def test_two_gates_in_one_agent_count_each_answer_once(entry: EntryPoint, desk: Desk) -> None:
    model = ScriptedModel(calling("look"), repeat=True)
    gates = [Gates(StepBudget(9), name="far"), Gates(StepBudget(3), on_trip="stop"), Gates(RepeatedCall(3))]
    ended = run(build(model, desk, *gates), "hi", thread("t"), entry=entry)
    assert (model.calls, reason(ended)) == (3, "step_budget")


def test_threads_that_share_an_agent_do_not_share_counts(desk: Desk) -> None:
    model = ScriptedModel(calling("look"), repeat=True)
    agent = build(model, desk, Gates(StepBudget(2, per="thread"), on_trip="stop"))
    for name in ("a", "b", "c"):
        assert reason(run(agent, "hi", thread(name))) == "step_budget"
    assert model.calls == 6


@pytest.mark.parametrize("on_trip", ["stop", "wrap_up"])
def test_a_turn_in_one_step_gives_the_same(desk: Desk, on_trip: Any) -> None:
    outcomes = []
    for granularity in ("hook", "turn"):
        model = ScriptedModel(or_say("summary", same("look")), repeat=True)
        gates = Gates(StepBudget(9), RepeatedCall(3, nudge_at=2), on_trip=on_trip)
        ended = run(build(model, desk, gates, granularity=granularity), "hi", thread("t"))
        outcomes.append((model.calls, reason(ended), ended.text, [told(model, i) for i in range(model.calls)]))
    assert outcomes[0] == outcomes[1]


def test_contracts_of_tools_are_read_under_langchains_own_factory(desk: Desk) -> None:
    tools = desk.tools()
    tools[2].metadata = {"agentkit": {"effect": "write"}}
    model = ScriptedModel(*[same("look"), calling("save")] * 4, "done")
    agent = langchain_create_agent(model, tools, middleware=[Gates(StepBudget(20), RepeatedCall(2))])
    assert agent.invoke({"messages": [HumanMessage("hi")]})["messages"][-1].text == "done"


@pytest.mark.parametrize("on_trip", ["stop", "wrap_up"])
def test_it_works_under_langchains_own_factory(desk: Desk, on_trip: Any) -> None:
    model = ScriptedModel(or_say("summary", calling("look")), repeat=True)
    agent = langchain_create_agent(model, desk.tools(), middleware=[Gates(StepBudget(2), on_trip=on_trip)])
    result = agent.invoke({"messages": [HumanMessage("hi")]})
    assert desk.ran == ["look 0"]
    assert result["messages"][-1].text.startswith("summary" if on_trip == "wrap_up" else "I had to stop")
    assert_paired(model, result["messages"])


def test_the_run_is_reported_with_its_reason(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    seen = []

    class Watches(Middleware):
        def around_run(self, run: Any) -> Any:
            outcome = yield
            seen.append((outcome.status, outcome.exit.reason))

    model = ScriptedModel(or_say("bye", calling("look")), repeat=True)
    with caplog.at_level(logging.WARNING, "agentkit"):
        run(build(model, desk, Watches(), Gates(StepBudget(1))), "my secret", thread("t"))
    assert seen == [("limit", "step_budget")]
    [record] = caplog.records
    assert (record.event, record.reason_code, record.source) == ("gate.decision", "step_budget", "Gates.after_model")  # type: ignore[attr-defined]
    assert "secret" not in caplog.text
