"""The scripted model: steps, recording, copies, threads, streaming."""

from __future__ import annotations

import asyncio
import copy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from agentkit.testing import Request, ScriptedModel, ScriptError, ai, invalid_call, tool_call


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def call_in(way: str, model: Any, given: Any = "hi") -> AIMessage:
    """Call a model in one of four ways; streamed chunks are merged as LangChain merges them."""
    if way == "invoke":
        return cast("AIMessage", model.invoke(given))
    if way == "ainvoke":
        return cast("AIMessage", asyncio.run(model.ainvoke(given)))
    if way == "stream":
        chunks = list(model.stream(given))
    else:

        async def collect() -> list[Any]:
            return [chunk async for chunk in model.astream(given)]

        chunks = asyncio.run(collect())
    return cast("AIMessage", sum(chunks[1:], chunks[0]))


ways = pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])


async def slowly(request: Request) -> str:
    await asyncio.sleep(0)
    return f"async {len(request.messages)}"


@ways
def test_each_kind_of_step_answers(way: str) -> None:
    model = ScriptedModel(
        "text",
        ai("message", finish_reason="stop"),
        [AIMessageChunk(content="in "), AIMessageChunk(content="pieces")],
        lambda request: f"asked {request.messages[-1].text}",
        slowly,
        lambda request: [AIMessageChunk(content="made "), AIMessageChunk(content="of chunks")],
    )
    texts = [call_in(way, model).text for _ in range(6)]
    assert texts == ["text", "message", "in pieces", "asked hi", "async 1", "made of chunks"]


@ways
def test_an_exception_in_the_script_is_raised(way: str) -> None:
    model = ScriptedModel(TimeoutError("slow"), lambda request: ValueError("wrong"), "fine")
    with pytest.raises(TimeoutError, match="slow"):
        call_in(way, model)
    with pytest.raises(ValueError, match="wrong"):
        call_in(way, model)
    assert call_in(way, model).text == "fine"
    assert model.calls == 3


@ways
def test_the_end_of_the_script_is_an_error_that_says_so(way: str) -> None:
    model = ScriptedModel("only")
    call_in(way, model)
    with pytest.raises(ScriptError, match="called 2 times; its script has 1 steps"):
        call_in(way, model)


@ways
def test_repeat_goes_on_with_the_last_step(way: str) -> None:
    model = ScriptedModel("one", "two", repeat=True)
    assert [call_in(way, model).text for _ in range(4)] == ["one", "two", "two", "two"]


@pytest.mark.parametrize("step", [[], 7, ["text"], lambda request: None])
def test_what_is_not_a_step_is_refused_by_name(step: Any) -> None:
    with pytest.raises(ScriptError, match=r"A step gave (list|int|NoneType)"):
        ScriptedModel(step).invoke("hi")


def test_steps_may_be_given_as_a_field_but_not_twice() -> None:
    assert ScriptedModel(steps=["a"]).invoke("hi").text == "a"
    with pytest.raises(ScriptError, match="steps twice"):
        ScriptedModel("a", steps=["b"])


@ways
def test_requests_are_recorded(way: str) -> None:
    model = ScriptedModel("a", repeat=True)
    bound = model.bind_tools([add, {"type": "web_search"}], tool_choice="any", parallel_tool_calls=False)
    call_in(way, bound.bind(temperature=0.5, stop=["END"]), [SystemMessage("be brief"), HumanMessage("hi")])
    (request,) = model.requests
    assert [m.text for m in request.messages] == ["be brief", "hi"]
    assert request.tools == ["add", "web_search"]
    assert request.tool_choice == "any"
    assert request.kwargs == {"parallel_tool_calls": False, "temperature": 0.5, "stop": ["END"]}
    (bind,) = model.binds
    assert bind.tools == ["add", "web_search"]
    assert bind.kwargs == {"tool_choice": "any", "parallel_tool_calls": False}


def test_a_record_does_not_change_with_the_messages() -> None:
    model = ScriptedModel("a")
    message = HumanMessage([{"type": "text", "text": "before"}])
    model.invoke([message])
    message.content[0]["text"] = "after"  # type: ignore[index]
    assert model.requests[0].messages[0].text == "before"


def test_turn_counts_the_answers_since_the_user_spoke() -> None:
    model = ScriptedModel("a", repeat=True)
    result = ToolMessage("3", tool_call_id="c1")
    model.invoke([HumanMessage("hi"), ai("", tool_call("add")), result, ai("", tool_call("add")), result])
    model.invoke([HumanMessage("hi"), ai("hello"), HumanMessage("again")])
    assert [r.turn for r in model.requests] == [2, 0]


def test_a_handed_out_message_can_be_changed_without_changing_the_script() -> None:
    model = ScriptedModel(ai("", tool_call("add", {"a": 1})), repeat=True)
    model.invoke("hi").tool_calls[0]["args"]["a"] = 99
    assert model.invoke("hi").tool_calls[0]["args"] == {"a": 1}


COPIES = [copy.copy, copy.deepcopy, lambda m: m.model_copy(), lambda m: m.model_copy(deep=True), lambda m: m.bind()]


@pytest.mark.parametrize("copied", COPIES)
def test_copies_share_script_position_and_record(copied: Any) -> None:
    model = ScriptedModel("one", "two")
    other = copied(model)
    assert [model.invoke("hi").text, other.invoke("hi").text] == ["one", "two"]
    assert model.calls == 2


def test_each_step_is_used_once_whatever_the_thread() -> None:
    model = ScriptedModel(*[str(i) for i in range(200)])
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda _: model.invoke("hi").text, range(200)))
    assert sorted(texts, key=int) == [str(i) for i in range(200)]
    assert model.calls == 200


def test_an_async_step_works_in_sync_code_under_a_running_loop() -> None:
    async def main() -> str:
        return ScriptedModel(slowly).invoke("hi").text

    assert asyncio.run(main()) == "async 1"


MESSAGES = {
    "text": ai("two  words\nand more", usage=(3, 4), finish_reason="stop"),
    "calls": ai("now", tool_call("add", {"a": 1, "b": 2}), tool_call("add", {"a": 3, "b": 4}, "c2"), usage=(1, 2)),
    "no arguments": ai("", tool_call("add")),
    "unparsed call": ai("", tool_call("add", {"a": 1}), invalid_call("add", id="c2")),
    "blocks": ai([{"type": "text", "text": "a b"}, {"type": "tool_use", "id": "c1", "name": "add", "input": {}}]),
    "identified": AIMessage("hello there", id="m1", additional_kwargs={"refusal": None}),
    "empty": ai(),
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
@pytest.mark.parametrize("way", ["stream", "astream"])
def test_streamed_and_merged_it_is_the_message_of_the_script(message: AIMessage, way: str) -> None:
    got = call_in(way, ScriptedModel(message))
    for field in ("content", "tool_calls", "invalid_tool_calls", "usage_metadata", "additional_kwargs"):
        assert getattr(got, field) == getattr(message, field), field
    assert got.response_metadata.get("finish_reason") == message.response_metadata.get("finish_reason")


def test_a_message_is_streamed_in_several_chunks_with_usage_on_the_last() -> None:
    chunks = list(ScriptedModel(MESSAGES["calls"]).stream("hi"))
    assert len([c for c in chunks if c.tool_call_chunks]) > 2
    with_usage = [c for c in chunks if c.usage_metadata]
    assert len(with_usage) == 1
    assert not any(c.content or c.tool_call_chunks for c in chunks[chunks.index(with_usage[0]) + 1 :])


def test_stream_false_sends_one_chunk() -> None:
    chunks = [c for c in ScriptedModel("three short words", stream=False).stream("hi") if c.content]
    assert [c.text for c in chunks] == ["three short words"]


def test_what_streaming_would_change_is_refused() -> None:
    cut_off = ai("", invalid_call("add", '{"a": 1'))
    assert ScriptedModel(cut_off).invoke("hi").invalid_tool_calls
    with pytest.raises(ScriptError, match="would arrive with other tool_calls"):
        list(ScriptedModel(cut_off).stream("hi"))


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_can_break_off(way: str) -> None:
    seen: list[str] = []
    model = ScriptedModel([AIMessageChunk(content="half "), ConnectionError("gone"), AIMessageChunk(content="never")])

    async def consume() -> None:
        async for chunk in model.astream("hi"):
            seen.append(chunk.text)

    with pytest.raises(ConnectionError, match="gone"):
        if way == "astream":
            asyncio.run(consume())
        for chunk in model.stream("hi"):
            seen.append(chunk.text)
    assert seen == ["half "]
    with pytest.raises(ConnectionError, match="gone"):
        ScriptedModel([AIMessageChunk(content="half "), ConnectionError("gone")]).invoke("hi")


def test_it_is_a_chat_model_for_structured_output() -> None:
    model = ScriptedModel(ai("", tool_call("Out", {"v": 1})))
    schema = {"title": "Out", "type": "object", "properties": {"v": {"type": "integer"}}}
    assert model.with_structured_output(schema).invoke("hi") == {"v": 1}


def test_the_model_needs_no_pytest() -> None:
    code = "import sys, agentkit.testing as t; t.ScriptedModel('a').invoke('hi'); sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    import agentkit.testing

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = agentkit.testing.nothing
