"""The strict pairing checker."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from agentkit.testing import ScriptedModel, ai, assert_paired, invalid_call, pairing_problems, tool_call

HI = HumanMessage("hi")


def result(id: str) -> ToolMessage:
    return ToolMessage("done", tool_call_id=id)


def two_calls() -> AIMessage:
    return ai("", tool_call("a", id="1"), tool_call("b", id="2"))


def block(kind: str, **fields: str) -> dict[str, str]:
    return {"type": kind, **fields}


GOOD: dict[str, list[BaseMessage]] = {
    "no calls": [SystemMessage("s"), HI, ai("hello")],
    "results in another order": [HI, two_calls(), result("2"), result("1"), ai("ok")],
    "an unparsed call that is answered": [HI, ai("", invalid_call("a", id="1")), result("1"), ai("ok")],
    "the same id in two messages": [
        HI,
        ai("", tool_call("a", id="1")),
        result("1"),
        ai("", tool_call("a", id="1")),
        result("1"),
    ],
    "a block that repeats a parsed call": [
        HI,
        ai([block("tool_use", id="1", name="a")], tool_call("a", id="1")),
        result("1"),
    ],
    "a block whose call id differs from its own id": [
        HI,
        ai([block("function_call", id="fc", call_id="1", name="a")], tool_call("a", id="1")),
        result("1"),
    ],
    "a call answered by the provider itself": [HI, ai([block("server_tool_use", id="s", name="web")]), HI],
}

BAD: dict[str, tuple[list[BaseMessage], str]] = {
    "open at the end": ([HI, ai("", tool_call("a", id="1"))], "call '1' of message 1 has no result"),
    "one of two open": ([HI, two_calls(), result("1"), HI], "call '2' of message 1 has no result"),
    "answered too late": (
        [HI, ai("", tool_call("a", id="1")), HI, result("1")],
        "message 3 is a result for '1', which the message before does not call",
    ),
    "answered twice": (
        [HI, two_calls(), result("1"), result("2"), result("2")],
        "message 4 is one more result for '2'",
    ),
    "orphan": ([HI, result("9"), HI], "message 1 is a result for '9', which the message before does not call"),
    "unparsed and open": ([HI, ai("", invalid_call("a", id="1")), HI], "call '1' of message 1 has no result"),
    "only a block, open": ([HI, ai([block("tool_use", id="1", name="a")]), HI], "call '1' of message 1 has no result"),
    "a second block of a listed call": (
        [HI, ai([block("tool_use", id="1", name="a")] * 2, tool_call("a", id="1")), result("1")],
        "message 1 has two calls with the id '1'",
    ),
    "two calls of one id": (
        [HI, ai("", tool_call("a", id="1"), tool_call("b", id="1")), result("1")],
        "message 1 has two calls with the id '1'",
    ),
    "no name": ([HI, ai("", invalid_call(None, id="1")), result("1")], "message 1 has a call without a name (id '1')"),
    "no id": ([HI, ai("", tool_call("a", id=None))], "message 1 has a call without an id (name 'a')"),
    "empty id": ([HI, ai("", tool_call("a", id=""))], "message 1 has a call without an id (name 'a')"),
}


@pytest.mark.parametrize("messages", GOOD.values(), ids=GOOD.keys())
def test_well_formed_histories_have_no_problems(messages: list[BaseMessage]) -> None:
    assert pairing_problems(messages) == []


@pytest.mark.parametrize(("messages", "problem"), BAD.values(), ids=BAD.keys())
def test_each_problem_is_named_with_its_place(messages: list[BaseMessage], problem: str) -> None:
    assert problem in pairing_problems(messages)


def test_all_problems_are_listed() -> None:
    problems = pairing_problems([HI, two_calls(), HI, result("2")])
    assert len(problems) == 3


def test_assert_paired_takes_models_results_and_histories() -> None:
    model = ScriptedModel("a", "b")
    model.invoke([HI])
    assert_paired(model, {"messages": [HI]}, [HI, ai("x")])
    model.invoke([HI, two_calls(), result("1")])
    with pytest.raises(AssertionError, match="request 2: call '2' of message 1 has no result"):
        assert_paired(model)
    with pytest.raises(AssertionError, match="history 2: message 0 is a result"):
        assert_paired([HI], {"messages": [result("1")]})
