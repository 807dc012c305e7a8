"""A stream that breaks at every point: nothing half is executed, no effect happens twice, nothing ends silently."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from langchain_core.exceptions import ModelError
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import Limits, create_agent, thread
from agentkit.errors import TruncatedReply
from agentkit.testing import RunResult
from tests.wire.conftest import Chat, Till
from tests.wire.driving import Drive
from tests.wire.wire_format import Answer, Api, Call, FaultKind, events_of, finish_event
from tests.wire.wire_server import WireServer

ONE_CALL = Answer(calls=(Call("refund_order", '{"order_id": "A1234567890", "amount": 12345}'),))
TWO_CALLS = Answer(
    calls=(
        Call("refund_order", '{"order_id": "A1", "amount": 100}', "call_a"),
        Call("refund_order", '{"order_id": "B2", "amount": 200}', "call_b"),
    )
)
TEXT_AND_CALL = Answer("Let me refund that.", ONE_CALL.calls)
TEXT = Answer("Your order was refunded in full.")
DONE = Answer("All done.")

SHAPES = {
    "one call": (ONE_CALL, [("A1234567890", 12345)]),
    "two calls": (TWO_CALLS, [("A1", 100), ("B2", 200)]),
    "text and call": (TEXT_AND_CALL, [("A1234567890", 12345)]),
    "text": (TEXT, []),
}


def _points(*shapes: str, api: Api = "chat") -> list[Any]:
    """Every event of these answers, as the place where the stream breaks; without shapes, of all."""
    return [
        pytest.param(shape, at, id=f"{shape} at {at}")
        for shape in shapes or SHAPES
        for at in range(len(events_of(SHAPES[shape][0], api)))
    ]


def _final(shape: str) -> str:
    return TEXT.text if shape == "text" else DONE.text


def _play(wire: WireServer, shape: str, broken: Answer) -> None:
    whole = SHAPES[shape][0]
    wire.plays(broken, *([whole] if shape == "text" else [whole, DONE]))


def _assert_right(outcome: RunResult, shape: str, till: Till) -> None:
    assert outcome.text == _final(shape)
    assert sorted(till.refunds) == SHAPES[shape][1]


@pytest.mark.parametrize(("shape", "at"), _points())
def test_a_cut_stream_is_asked_for_again(
    shape: str, at: int, drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    whole, _ = SHAPES[shape]
    complete = at >= finish_event(whole)
    if complete:  # the finish reason has come, so the answer is whole and is not asked for again
        wire.plays(whole.broken("cut", at), DONE)
    else:
        _play(wire, shape, whole.broken("cut", at))
    outcome = drive(create_agent(chat(streaming=True), till.tools), "refund it")
    _assert_right(outcome, shape, till)
    assert len(wire.exchanges) == (1 if shape == "text" else 2) + (not complete)


@pytest.mark.parametrize(("shape", "at"), _points("two calls"))
@pytest.mark.parametrize("drive", ["invoke", "astream"], indirect=True)
def test_a_cut_stream_is_asked_for_again_where_a_turn_is_one_step(
    shape: str, at: int, drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    whole, _ = SHAPES[shape]
    if at >= finish_event(whole):
        wire.plays(whole.broken("cut", at), DONE)
    else:
        _play(wire, shape, whole.broken("cut", at))
    outcome = drive(create_agent(chat(streaming=True), till.tools, granularity="turn"), "refund it")
    _assert_right(outcome, shape, till)


@pytest.mark.parametrize(("shape", "at"), _points("two calls", "text", api="responses"))
@pytest.mark.parametrize("drive", ["astream"], indirect=True)
def test_a_cut_stream_of_the_responses_api_is_asked_for_again(
    shape: str, at: int, drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    _play(wire, shape, SHAPES[shape][0].broken("cut", at))
    model = chat(streaming=True, use_responses_api=True, output_version="responses/v1")
    outcome = drive(create_agent(model, till.tools), "refund it")
    _assert_right(outcome, shape, till)


@pytest.mark.parametrize(("shape", "at"), _points("two calls", "text"))
@pytest.mark.parametrize(
    ("drive", "fault"), [("astream", "half"), ("stream", "drop"), ("stream", "corrupt")], indirect=["drive"]
)
def test_a_broken_stream_ends_right_or_with_a_named_error(
    fault: FaultKind, shape: str, at: int, drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    whole, _ = SHAPES[shape]
    if at >= finish_event(whole) and fault == "half":
        wire.plays(whole.broken(fault, at), DONE)
    else:
        _play(wire, shape, whole.broken(fault, at))
    outcome = drive(create_agent(chat(), till.tools), "refund it", catch=True)
    if outcome.error is None:
        _assert_right(outcome, shape, till)
    else:
        assert isinstance(outcome.error, ModelError | openai.OpenAIError), repr(outcome.error)
        assert till.refunds == []


@pytest.mark.parametrize("shape", ["one call", "text"])
@pytest.mark.parametrize("tries", [1, 3])
def test_a_stream_that_is_always_cut_ends_with_a_named_error_and_the_thread_can_go_on(
    shape: str, tries: int, drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    agent = create_agent(
        chat(streaming=True), till.tools, limits=Limits(malformed_answers=tries), checkpointer=InMemorySaver()
    )
    config = thread("t")
    wire.plays(*[SHAPES[shape][0].broken("cut", 3)] * 9)
    error = drive(agent, "refund it", config, catch=True).error
    assert isinstance(error, TruncatedReply)
    assert len(wire.exchanges) == error.tries == tries
    assert till.refunds == []
    wire.plays(*([TEXT] if shape == "text" else [ONE_CALL, DONE]))
    _assert_right(drive(agent, None, config), shape, till)


def test_arguments_that_the_token_limit_cut_short_are_not_executed(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    short = Answer(calls=(Call("refund_order", '{"order_id": "A123'),), finish="length")
    wire.plays(short, ONE_CALL, DONE)
    outcome = drive(create_agent(chat(), till.tools), "refund it")
    _assert_right(outcome, "one call", till)


@pytest.mark.parametrize("arguments", ['{"order_id": "A1", "am', '{"order_id": "A1"} or so'])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_broken_arguments_are_not_executed_where_half_of_them_would_do(
    arguments: str, api: str, drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    wire.plays(Answer(calls=(Call("refund_order", arguments, "call_0"),)), ONE_CALL, DONE)
    responses = {"use_responses_api": True, "output_version": "responses/v1"} if api == "responses" else {}
    outcome = drive(create_agent(chat(**responses), till.tools), "refund it")
    _assert_right(outcome, "one call", till)


def test_text_that_the_token_limit_cut_short_is_an_answer(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    wire.plays(Answer("As far as it goes", finish="length"))
    assert drive(create_agent(chat(), till.tools), "explain").text == "As far as it goes"


def test_one_thread_goes_on_after_a_cut(drive: Drive, chat: Chat, till: Till, wire: WireServer) -> None:
    agent = create_agent(chat(streaming=True), till.tools, checkpointer=InMemorySaver())
    config = thread("t")
    wire.plays(ONE_CALL.broken("cut", 5), ONE_CALL, DONE, TEXT.broken("cut", 3), TEXT)
    assert drive(agent, "refund it", config).text == DONE.text
    assert drive(agent, "was it refunded?", config).text == TEXT.text
    assert till.refunds == [("A1234567890", 12345)]


@pytest.mark.parametrize("at", range(finish_event(DONE)))
def test_a_cut_after_the_effect_does_not_repeat_it(
    at: int, drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    wire.plays(ONE_CALL, DONE.broken("cut", at), DONE)
    outcome = drive(create_agent(chat(streaming=True), till.tools), "refund it")
    _assert_right(outcome, "one call", till)


def test_who_leaves_a_stream_in_the_middle_of_a_call_leaves_nothing_executed(
    loop: asyncio.AbstractEventLoop, chat: Chat, till: Till, wire: WireServer
) -> None:
    agent = create_agent(chat(), till.tools, checkpointer=InMemorySaver())
    message = {"messages": [("user", "refund it")]}

    async def leave() -> None:
        stream: Any = agent.astream(message, thread("async"), stream_mode="messages")
        await anext(stream)
        await stream.aclose()

    wire.plays(ONE_CALL, DONE)
    stream: Any = agent.stream(message, thread("sync"), stream_mode="messages")
    next(stream)
    stream.close()
    assert till.refunds == []
    wire.plays(ONE_CALL, DONE)
    loop.run_until_complete(leave())
    assert till.refunds == []
    for name in ("sync", "async"):
        wire.plays(ONE_CALL, DONE)
        assert agent.invoke({"messages": [("user", "now do")]}, thread(name))["messages"][-1].text == DONE.text
    assert till.refunds == [("A1234567890", 12345)] * 2
