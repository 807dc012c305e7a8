"""Message histories: what is open, what is closed for the record, and what a strict provider is sent."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from agentkit.testing import ai, invalid_call, pairing_problems, tool_call
from agentkit.transcript import SYNTHETIC, close_calls, last_turn, open_invalid_calls, pending_calls, well_formed

HUMAN = HumanMessage("hi")


def asks(*ids: str | None, name: str = "look") -> AIMessage:
    return ai("", *(tool_call(name, {"x": 1}, id) for id in ids))


def result(id: str, text: str = "found", name: str = "look") -> ToolMessage:
    return ToolMessage(text, tool_call_id=id, name=name)


# ---- what is open


def test_the_last_turn_is_the_last_answer_and_its_results() -> None:
    answer, one, two = asks("c1", "c2"), result("c1"), result("c2")
    history: list[AnyMessage] = [HUMAN, asks("c0"), result("c0"), answer, one, HumanMessage("and?"), two]
    assert last_turn(history) == (answer, [one, two])


@pytest.mark.parametrize("history", [[], [HUMAN], [SystemMessage("s"), result("c1")]])
def test_no_answer_no_turn(history: list[AnyMessage]) -> None:
    assert last_turn(history) == (None, [])
    assert pending_calls(history) == []
    assert open_invalid_calls(history) == []


def test_pending_calls_are_those_of_the_last_answer_without_a_result() -> None:
    history: list[AnyMessage] = [HUMAN, asks("old"), asks("c1", "c2", "c3"), result("c2")]
    assert [call["id"] for call in pending_calls(history)] == ["c1", "c3"]


def test_tools_that_stand_for_an_answer_are_never_pending() -> None:
    history = [ai("", tool_call("look", {}, "c1"), tool_call("Answer", {}, "s1"))]
    assert [call["id"] for call in pending_calls(history, {"Answer"})] == ["c1"]


def test_a_result_of_an_earlier_answer_does_not_answer_a_reused_id() -> None:
    history: list[AnyMessage] = [asks("c1"), result("c1"), asks("c1")]
    assert [call["id"] for call in pending_calls(history)] == ["c1"]


def test_unreadable_calls_are_open_until_answered_and_only_with_an_id() -> None:
    answer = ai("", invalid_call("look", id="i1"), invalid_call("look", id=""), invalid_call("look", id=None))
    assert [call["id"] for call in open_invalid_calls([answer])] == ["i1", ""]
    assert [call["id"] for call in open_invalid_calls([answer, result("i1")])] == [""]


# ---- what is closed for the record


def test_an_open_call_is_closed_right_after_its_answer() -> None:
    answer = asks("c1", "c2")
    closed = close_calls([HUMAN, answer, result("c2"), HumanMessage("never mind")])
    assert [m.type for m in closed] == ["human", "ai", "tool", "tool", "human"]
    made_up = closed[2]
    assert isinstance(made_up, ToolMessage)
    assert (made_up.tool_call_id, made_up.name, made_up.status) == ("c1", "look", "error")
    assert made_up.additional_kwargs[SYNTHETIC]


def test_closing_says_that_the_effect_is_unknown() -> None:
    text = close_calls([asks("c1")])[1].text
    assert "look" in text
    assert "unknown" in text


def test_an_unreadable_call_is_closed_with_its_reason() -> None:
    text = close_calls([ai("", invalid_call("look", id="i1", error="no brace"))])[1].text
    assert "look" in text
    assert "i1" in text
    assert "no brace" in text


def test_closing_keeps_the_very_messages_and_is_done_once() -> None:
    history: list[AnyMessage] = [HUMAN, asks("c1"), result("c1"), asks("c2")]
    closed = close_calls(history)
    assert all(a is b for a, b in zip(closed, history, strict=False))
    assert close_calls(closed) == closed
    assert len(history) == 4


def test_results_far_from_their_call_stay_where_they_are_in_the_record() -> None:
    history: list[AnyMessage] = [asks("c1"), HUMAN, result("c1")]
    assert close_calls(history) == history


# ---- what is sent

BROKEN: dict[str, list[AnyMessage]] = {
    "an open call": [HUMAN, asks("c1")],
    "an open call before a new question": [HUMAN, asks("c1"), HumanMessage("again")],
    "a result far from its call": [asks("c1"), HUMAN, result("c1")],
    "two results for one call": [asks("c1"), result("c1"), result("c1", "again")],
    "a result without a call": [HUMAN, result("c9"), asks("c1"), result("c1")],
    "a result before its call": [result("c1"), asks("c1")],
    "a call without an id": [asks(None)],
    "a call with an empty id": [asks("")],
    "a call without a name": [asks("c1", name="")],
    "one id for two calls": [asks("c1", "c1"), result("c1"), result("c1")],
    "one id for two calls, one result": [asks("c1", "c1"), result("c1")],
    "an id reused by a later answer": [asks("c1"), result("c1"), asks("c1")],
    "an unreadable call": [ai("", invalid_call("look", id="i1"))],
    "an unreadable call without a name": [
        ai("", invalid_call(None, id="i1"), tool_call("look", {}, "c1")),
        result("c1"),
    ],
    "a readable and an unreadable call of one id": [ai("", tool_call("look", {}, "c1"), invalid_call("look", id="c1"))],
    "two unreadable calls of one id": [ai("", invalid_call("look", id="i1"), invalid_call("look", id="i1"))],
    "a call that is only a block": [ai([{"type": "tool_use", "id": "t1", "name": "look", "input": {}}])],
    "a new id that is taken": [asks("c1", "c1", "c1#2")],
}


@pytest.mark.parametrize("history", BROKEN.values(), ids=BROKEN)
def test_what_is_sent_is_well_formed(history: list[AnyMessage]) -> None:
    assert pairing_problems(history), "the case is no problem to begin with"
    before = [m.model_copy(deep=True) for m in history]
    sent = well_formed(history)
    assert pairing_problems(sent) == []
    assert well_formed(sent) == sent
    assert history == before


@pytest.mark.parametrize("history", BROKEN.values(), ids=BROKEN)
def test_what_is_stored_and_then_sent_is_well_formed(history: list[AnyMessage]) -> None:
    assert pairing_problems(well_formed(close_calls(history))) == []


def test_a_sound_history_is_sent_as_it_is() -> None:
    history: list[AnyMessage] = [SystemMessage("s"), HUMAN, asks("c1", "c2"), result("c2"), result("c1"), ai("done")]
    sent = well_formed(history)
    assert len(sent) == len(history)
    assert all(a is b for a, b in zip(sent, history, strict=True))


def test_a_far_result_is_moved_to_its_call_and_not_replaced() -> None:
    sent = well_formed([asks("c1"), HUMAN, result("c1", "the answer")])
    assert [m.text for m in sent if isinstance(m, ToolMessage)] == ["the answer"]
    assert sent[-1] is HUMAN


def test_calls_of_one_id_keep_their_own_results() -> None:
    sent = well_formed([asks("c1", "c1"), result("c1", "first"), result("c1", "second")])
    assert isinstance(sent[0], AIMessage)
    answers = {m.tool_call_id: m.text for m in sent if isinstance(m, ToolMessage)}
    assert [answers[str(call["id"])] for call in sent[0].tool_calls] == ["first", "second"]


def test_the_providers_raw_copy_of_dropped_calls_is_not_sent() -> None:
    answer = AIMessage(
        "", tool_calls=[tool_call("look", {}, "c1"), tool_call("look", {}, None)], additional_kwargs={"tool_calls": [1]}
    )
    sent = well_formed([answer, result("c1")])
    assert "tool_calls" not in sent[0].additional_kwargs


def test_text_blocks_beside_a_loose_call_stay() -> None:
    blocks: list[Any] = [{"type": "text", "text": "hm"}, {"type": "tool_use", "id": "t1", "name": "look", "input": {}}]
    assert well_formed([ai(blocks)])[0].content == blocks[:1]


def test_a_block_that_stands_for_a_listed_call_stays() -> None:
    blocks: list[Any] = [{"type": "tool_use", "id": "c1", "name": "look", "input": {"x": 1}}]
    history: list[AnyMessage] = [ai(blocks, tool_call("look", {"x": 1}, "c1")), result("c1")]
    assert well_formed(history) == history
