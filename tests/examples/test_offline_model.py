"""The offline planner as a chat model: every way of calling it agrees, and it depends on the messages only."""

# ruff: noqa: RUF001 - Chinese punctuation is meant.

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.runnables import Runnable

from examples.order_assistant.offline_model import DialoguePlanner
from examples.order_assistant.shop import Shop
from examples.order_assistant.tools import make_tools


def _bound(shop: Shop) -> Runnable[Any, AIMessage]:
    return DialoguePlanner().bind_tools(make_tools(shop))


def _plain(message: AIMessage) -> tuple[object, ...]:
    return message.content, message.tool_calls, message.usage_metadata, message.response_metadata["finish_reason"]


@pytest.mark.parametrize(
    "saying", ["hello", "你好", "compare AU-101 and AU-102", "比较极光头戴耳机和云朵无线耳塞", "refund 22080"]
)
async def test_invoke_stream_and_their_async_forms_agree(read_only_shop: Shop, saying: str) -> None:
    model, messages = _bound(read_only_shop), [HumanMessage(saying, id="h")]
    whole = model.invoke(messages)
    streamed = [chunk for chunk in model.stream(messages) if isinstance(chunk, AIMessageChunk)]
    joined = sum(streamed[1:], start=streamed[0])
    assert len(streamed) > 2
    assert _plain(joined) == _plain(whole)
    assert _plain(await model.ainvoke(messages)) == _plain(whole)
    late = [chunk async for chunk in model.astream(messages)]
    assert [chunk.content for chunk in late] == [chunk.content for chunk in streamed]


def test_text_streams_word_by_word_and_character_by_character() -> None:
    english = [chunk.text for chunk in DialoguePlanner().stream("thanks") if chunk.text]
    chinese = [chunk.text for chunk in DialoguePlanner().stream("再见") if chunk.text]
    assert english[:3] == ["You're", " welcome.", " Is"]
    assert chinese[:3] == ["再", "见", "，"]


def test_call_ids_repeat_for_the_same_conversation_and_differ_otherwise(read_only_shop: Shop) -> None:
    model = _bound(read_only_shop)

    def ids(message_id: str) -> list[str | None]:
        asked = [HumanMessage("compare AU-101 and AU-102", id=message_id)]
        return [call["id"] for call in model.invoke(asked).tool_calls]

    assert ids("one") == ids("one")
    assert len({*ids("one"), *ids("two")}) == 4


def test_usage_grows_with_the_conversation(read_only_shop: Shop) -> None:
    model = _bound(read_only_shop)
    short = model.invoke([HumanMessage("hello")]).usage_metadata
    long = model.invoke([HumanMessage("hello"), AIMessage("Hello! How are you?"), HumanMessage("hello")]).usage_metadata
    assert short is not None
    assert long is not None
    assert short["input_tokens"] == 1
    assert long["input_tokens"] == 1 + 4 + 1
    assert long["output_tokens"] == short["output_tokens"] > 10


def test_forbidden_tools_are_not_called(read_only_shop: Shop) -> None:
    model = DialoguePlanner().bind_tools(make_tools(read_only_shop), tool_choice="none")
    answer = model.invoke("where is my latest order?")
    assert answer.tool_calls == []
    assert "without the tool" in answer.text
