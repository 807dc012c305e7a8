"""One reply of the model: is it whole, does it say anything, and which of its calls may run."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from agentkit.reply import is_cut_off, is_empty, refuse_unsafe_calls
from agentkit.testing import ai, invalid_call, tool_call


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (ai(""), True),
        (ai("  \n"), True),
        (ai([]), True),
        (ai([{"type": "text", "text": " "}]), True),
        (ai([{"type": "thinking", "thinking": "hm"}]), True),
        (ai("."), False),
        (ai([{"type": "text", "text": "hi"}]), False),
        (ai([{"type": "image", "url": "x"}]), False),
        (ai("", tool_call("look")), False),
        (ai("", invalid_call("look")), False),
        (AIMessage("", additional_kwargs={"refusal": "no"}), False),
    ],
)
def test_is_empty(reply: AIMessage, expected: bool) -> None:
    assert is_empty(reply) is expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, False),
        ({"model_provider": "home-grown"}, False),
        ({"model_provider": "openai"}, True),
        ({"model_provider": "openai", "finish_reason": "stop"}, False),
        ({"model_provider": "openai", "finish_reason": ""}, False),
        ({"model_provider": "openai", "status": "completed"}, False),
        ({"model_provider": "anthropic"}, True),
        ({"model_provider": "anthropic", "stop_reason": "end_turn"}, False),
        ({"model_provider": "google_genai"}, True),
    ],
)
def test_a_missing_finish_reason_counts_only_where_one_is_always_sent(metadata: dict[str, Any], expected: bool) -> None:
    assert is_cut_off(ai("half a sent", **metadata)) is expected


def test_a_refusal_is_whole() -> None:
    reply = AIMessage("", additional_kwargs={"refusal": "no"}, response_metadata={"model_provider": "openai"})
    assert not is_cut_off(reply)


@pytest.mark.parametrize("key", ["finish_reason", "stop_reason", "done_reason"])
@pytest.mark.parametrize("value", ["length", "max_tokens", "MAX_TOKENS"])
def test_the_last_call_of_a_reply_cut_by_the_token_limit_is_refused(key: str, value: str) -> None:
    reply = ai("", tool_call("a", {"x": 1}, "c1"), tool_call("b", {"x": 2}, "c2"))
    kept = refuse_unsafe_calls(reply.model_copy(update={"response_metadata": {key: value}}))
    assert [call["id"] for call in kept.tool_calls] == ["c1"]
    (refused,) = kept.invalid_tool_calls
    assert (refused["name"], refused["id"]) == ("b", "c2")
    assert "token limit" in str(refused["error"])


def test_a_reply_that_ended_by_itself_is_left_alone() -> None:
    reply = ai("", tool_call("a", {}, "c1"), finish_reason="tool_calls")
    assert refuse_unsafe_calls(reply) is reply


def test_a_call_whose_arguments_went_astray_is_refused() -> None:
    reply = ai("", tool_call("a", {}, "c1"), tool_call("b", {"x": 1}, "c2"), invalid_call(None, '{"x": 1}', None))
    kept = refuse_unsafe_calls(reply)
    assert [call["id"] for call in kept.tool_calls] == ["c2"]
    assert [(call["name"], call["id"]) for call in kept.invalid_tool_calls] == [("a", "c1")]


def test_ids_become_unique_in_their_message() -> None:
    kept = refuse_unsafe_calls(ai("", *(tool_call("a", {"x": x}, "c1") for x in range(3)), tool_call("a", {}, "c1#2")))
    ids = [call["id"] for call in kept.tool_calls]
    assert ids[0] == "c1"
    assert ids[3] == "c1#2"
    assert len(set(ids)) == 4
    assert [call["args"] for call in kept.tool_calls] == [{"x": 0}, {"x": 1}, {"x": 2}, {}]
