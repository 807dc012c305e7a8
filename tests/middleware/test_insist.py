"""`Insist`: a corrected call instead of words, where a call was refused for its arguments."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import ToolException

from agentkit import create_agent
from agentkit.errors import ConfigurationError
from agentkit.middleware import Insist
from agentkit.testing import (
    EntryPoint,
    MiddlewareContract,
    ScriptedModel,
    ai,
    assert_paired,
    invalid_call,
    run,
    tool_call,
)

WRONG = tool_call("read", {"x": "one"}, "wrong")
RIGHT = tool_call("read", {"x": 1}, "right")


class TestInsistContract(MiddlewareContract):
    def make(self) -> Insist:
        return Insist()


def test_a_model_that_asks_back_stands_when_it_insists(desk: Any, entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", WRONG), "Which one?", "Which one, please?")
    ended = run(create_agent(model, [desk.tool("read")], middleware=[Insist()]), "go", entry=entry)
    assert ended.text == "Which one, please?"
    assert model.calls == 3


def test_attempts_are_counted_per_answer(desk: Any, entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", WRONG), "talk", "talk", "talk", ai("", RIGHT), "done")
    ended = run(create_agent(model, [desk.tool("read")], middleware=[Insist(3)]), "go", entry=entry)
    assert ended.text == "done"
    assert desk.values == [1]
    assert_paired(model, ended.messages)


def test_an_unreadable_call_is_owed_too(desk: Any, entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", invalid_call("read", id="bad")), "talk", ai("", RIGHT), "done")
    ended = run(create_agent(model, [desk.tool("read")], middleware=[Insist()]), "go", entry=entry)
    assert (ended.text, desk.values) == ("done", [1])


@pytest.mark.parametrize("first", [WRONG, RIGHT], ids=["mended", "failed"])
def test_words_are_taken_where_no_call_is_owed(desk: Any, entry: EntryPoint, first: Any) -> None:
    """A call that ran and failed is no refused one, and one that was mended is owed no more."""

    def fail(x: int) -> str:
        raise ToolException("out of order")

    model = ScriptedModel(ai("", first), *([ai("", RIGHT)] if first is WRONG else []), "sorry", "not asked")
    ended = run(create_agent(model, [desk.tool("read", fail)], middleware=[Insist()]), "go", entry=entry)
    assert ended.text == "sorry"


def test_the_words_are_nowhere_but_in_the_next_request(desk: Any, entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", WRONG), "just words", ai("", RIGHT), "done")
    ended = run(create_agent(model, [desk.tool("read")], middleware=[Insist()]), "go", entry=entry)
    assert [m.text for m in ended.messages if isinstance(m, AIMessage)] == ["", "", "done"]
    assert "just words" in [m.text for m in model.requests[2].messages]
    assert "just words" not in [m.text for m in model.requests[3].messages]


def test_no_attempts_are_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        Insist(0)
