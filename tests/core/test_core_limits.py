"""Default brakes: what each counts, when it starts anew, and how a run ends that meets one."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import after_agent
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agentkit import Limits, create_agent, exit_of, thread
from agentkit.exits import Exit
from agentkit.limits import Tally, after_reply, before_call, count_reply, count_results
from agentkit.testing import ENTRY_POINTS, EntryPoint, ScriptedModel, ai, assert_paired, invalid_call, run, tool_call

ASKED = ai("", tool_call("look", {"x": 1, "y": 2}, "c1"), tool_call("look", {"x": 2}, "c2"))


def result(id: str, status: Any = "success") -> ToolMessage:
    return ToolMessage("r", tool_call_id=id, name="look", status=status)


# ---- counting


def test_a_batch_counts_once() -> None:
    tally = count_results({}, [ASKED, result("c1", "error"), result("c2", "error")])
    assert tally["failed_turns"] == 1
    assert sorted(tally["failed"].values()) == [1, 1]


def test_one_success_in_a_batch_ends_a_row_of_failed_turns() -> None:
    tally = count_results({"failed_turns": 4}, [ASKED, result("c1", "error"), result("c2")])
    assert tally["failed_turns"] == 0


def test_a_success_forgets_the_failures_of_that_call_only() -> None:
    failed = count_results({}, [ASKED, result("c1", "error"), result("c2", "error")])
    tally = count_results(failed, [ASKED, result("c1"), result("c2", "error")])
    assert list(tally["failed"].values()) == [2]


def test_the_order_of_arguments_does_not_make_another_call() -> None:
    swapped = ai("", tool_call("look", {"y": 2, "x": 1}, "c9"))
    tally = count_results(count_results({}, [ASKED, result("c1", "error")]), [swapped, result("c9", "error")])
    assert list(tally["failed"].values()) == [2]


@pytest.mark.parametrize("history", [[], [HumanMessage("hi")], [ai("text")], [ASKED]])
def test_nothing_to_count(history: list[Any]) -> None:
    assert count_results({"model_calls": 1}, history) == {"model_calls": 1}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (ai("", invalid_call("look")), 3),
        (ai("", invalid_call("look"), tool_call("look", {}, "c1")), 0),
        (ai("text"), 0),
        (None, 0),
    ],
)
def test_only_answers_that_hold_nothing_readable_are_malformed(reply: AIMessage | None, expected: int) -> None:
    assert count_reply({"malformed": 2}, reply, 1, structured_failed=False)["malformed"] == expected


def test_retries_count_as_model_calls() -> None:
    assert count_reply({"model_calls": 2}, ai("x"), 3, structured_failed=False)["model_calls"] == 5


@pytest.mark.parametrize(
    ("tally", "reason"),
    [
        ({"model_calls": 9}, None),
        ({"model_calls": 10}, "step_budget"),
        ({"model_calls": 4, "allowed": 4}, "step_budget"),
        ({"model_calls": 4, "allowed": 5}, None),
        ({"failed": {"look({})": 4}}, None),
        ({"failed": {"look({})": 5}}, "repeated_call"),
        ({"failed_turns": 19}, None),
        ({"failed_turns": 20}, "failures"),
    ],
)
def test_before_a_call(tally: Tally, reason: str | None) -> None:
    ending = before_call(Limits(model_calls=10), tally)
    assert (ending and ending.reason) == reason


@pytest.mark.parametrize(("malformed", "stops"), [(2, False), (3, True)])
def test_after_a_reply(malformed: int, stops: bool) -> None:
    assert (after_reply(Limits(), {"malformed": malformed}) is not None) is stops


def test_no_limits_stop_nothing() -> None:
    huge: Tally = {"model_calls": 10_000, "failed": {"look({})": 10_000}, "failed_turns": 10_000, "malformed": 10_000}
    assert before_call(Limits.none(), huge) is None
    assert after_reply(Limits.none(), huge) is None


@pytest.mark.parametrize("name", ["model_calls", "malformed_answers", "structured_retries", "same_call_failures"])
def test_a_limit_below_one_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=rf"Limits\.{name} must be at least 1"):
        Limits(**{name: 0})


# ---- endings


@tool
def look(x: int) -> str:
    """Look something up."""
    return f"found {x}"


@tool
def broken(x: int) -> str:
    """Fail."""
    raise ToolException("out of order")


class EndlessModel(ScriptedModel):
    """Asks for a tool for ever, with ever new arguments."""

    def __init__(self, name: str = "look", same: bool = False) -> None:
        def ask(request: Any) -> AIMessage:
            n = len(request.messages)
            return ai("", tool_call(name, {"x": 0 if same else n}, f"c{n}"))

        super().__init__(ask, repeat=True)


ENDINGS = [
    ("step_budget", EndlessModel(), [look], Limits(model_calls=3)),
    ("repeated_call", EndlessModel("broken", same=True), [broken], Limits(same_call_failures=2)),
    ("failures", EndlessModel("broken"), [broken], Limits(failed_turns=3)),
    ("failures", ScriptedModel(ai("", invalid_call("look")), repeat=True), [look], Limits(malformed_answers=2)),
]


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("granularity", ["hook", "turn"])
@pytest.mark.parametrize(
    ("reason", "model", "tools", "limits"), ENDINGS, ids=[f"{e[0]} {i}" for i, e in enumerate(ENDINGS)]
)
def test_a_limit_ends_the_run_through_the_exit_path(
    reason: str, model: ScriptedModel, tools: list[Any], limits: Limits, entry: EntryPoint, granularity: Any
) -> None:
    seen: list[Exit | None] = []

    @after_agent
    def last(state: Any, runtime: Any) -> None:
        seen.append(exit_of(state))

    agent = create_agent(model, tools, middleware=[last], limits=limits, granularity=granularity, name="bot")
    result = run(agent, "hi", entry=entry)
    (ended,) = seen
    assert ended is not None
    assert (ended.reason, ended.source) == (reason, "limits")
    assert ended.detail in result.text, "the user is told why"
    assert result.messages[-1].name == "bot"
    assert_paired(result.values, model)
    if entry in ("invoke", "ainvoke"):
        assert exit_of(result.raw) == ended


def test_the_model_is_not_called_more_often_than_allowed() -> None:
    model = EndlessModel()
    create_agent(model, [look], limits=Limits(model_calls=4)).invoke({"messages": "hi"})
    assert model.calls == 4


@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_each_user_turn_starts_anew_and_ends_for_a_reason_of_its_own(granularity: Any) -> None:
    steps: list[Any] = [
        *(ai("", tool_call("look", {"x": n}, f"c{n}")) for n in range(2)),
        ai("", tool_call("look", {"x": 9}, "c9")),
        "ok",
    ]
    agent = create_agent(
        ScriptedModel(*steps),
        [look],
        limits=Limits(model_calls=2),
        checkpointer=InMemorySaver(),
        granularity=granularity,
    )
    first = agent.invoke({"messages": "hi"}, thread("t"))
    second = agent.invoke({"messages": "again"}, thread("t"))
    reasons = [(exit_of(result) or Exit("jump")).reason for result in (first, second)]
    assert reasons == ["step_budget", "answer"]


@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_counts_survive_a_pause(granularity: Any) -> None:
    @tool
    def ask(x: int) -> str:
        """Ask a person."""
        return str(interrupt("?"))

    model = EndlessModel("ask")
    agent = create_agent(
        model, [ask], limits=Limits(model_calls=2), checkpointer=InMemorySaver(), granularity=granularity
    )
    agent.invoke({"messages": "hi"}, thread("t"))
    agent.invoke(Command(resume="yes"), thread("t"))
    result = agent.invoke(Command(resume="yes"), thread("t"))
    ended = exit_of(result)
    assert model.calls == 2
    assert ended is not None
    assert ended.reason == "step_budget"


def test_a_detail_does_not_carry_long_arguments() -> None:
    call = ai("", tool_call("broken", {"x": 1, "secret": "s" * 200}, "c1"))
    agent = create_agent(ScriptedModel(call, repeat=True), [broken], limits=Limits(same_call_failures=1))
    ended = exit_of(agent.invoke({"messages": "hi"}))
    assert ended is not None
    assert "`broken`" in ended.detail
    assert "sss" not in ended.detail
