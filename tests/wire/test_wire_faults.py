"""Refusals, silence and broken connections: an exception with a name, and a thread that can go on."""

from __future__ import annotations

import openai
import pytest
from langchain_core.exceptions import ModelConnectionError, ModelRateLimitError, ModelTimeoutError
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from llmock.pytest_plugin import LLMock

from agentkit import create_agent, thread
from tests.wire.conftest import Chat, Till
from tests.wire.driving import Drive
from tests.wire.wire_format import Answer, Call, Refusal
from tests.wire.wire_server import WireServer

REFUND = Answer(calls=(Call("refund_order", '{"order_id": "A1", "amount": 5}'),))
DONE = Answer("Refunded.")

FAULTS = [
    pytest.param(Refusal(429, retry_after=0.01), ModelRateLimitError, id="429"),
    pytest.param(Refusal(500), openai.InternalServerError, id="500"),
    pytest.param(DONE.broken("stall", 0), ModelTimeoutError, id="stalled before the first event"),
    pytest.param(DONE.broken("stall", 2), ModelTimeoutError, id="stalled in the middle"),
    pytest.param(DONE.broken("drop", 0), ModelConnectionError, id="disconnected before the first event"),
    pytest.param(DONE.broken("drop", 2), ModelConnectionError, id="disconnected in the middle"),
]


@pytest.mark.parametrize(("fault", "error"), FAULTS)
def test_a_fault_leaves_the_run_by_its_name_and_the_thread_goes_on_without_repeating_the_effect(
    fault: Answer | Refusal, error: type[Exception], drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    patience = 0.8 if error is ModelTimeoutError else 5.0  # seconds; what stalls never ends by itself
    agent = create_agent(chat(timeout=patience), till.tools, checkpointer=InMemorySaver())
    config = thread("t")
    wire.plays(REFUND, fault, DONE)
    assert isinstance(drive(agent, "refund A1", config, catch=True).error, error)
    assert till.refunds == [("A1", 5)]
    assert drive(agent, None, config).text == "Refunded."
    assert till.refunds == [("A1", 5)]


def test_a_corrupt_chunk_is_no_answer(drive: Drive, chat: Chat, till: Till, wire: WireServer) -> None:
    agent = create_agent(chat(streaming=True), till.tools, checkpointer=InMemorySaver())
    wire.plays(REFUND.broken("corrupt", 4), REFUND, DONE)
    assert drive(agent, "refund A1", thread("t")).text == "Refunded."
    assert till.refunds == [("A1", 5)]
    assert len(wire.exchanges) == 3  # asked for again at once


@pytest.mark.parametrize("status", [429, 500])
def test_what_the_client_retries_by_itself_is_invisible(status: int, drive: Drive, till: Till, llmock: LLMock) -> None:
    llmock.fail(status, retry_after=0.05 if status == 429 else None)
    llmock.call_tool("refund_order", {"order_id": "A1", "amount": 5}).reply("Refunded.")
    outcome = drive(create_agent(ChatOpenAI(model="gpt-4o"), till.tools), "refund A1")
    assert outcome.text == "Refunded."
    assert till.refunds == [("A1", 5)]
    assert [record.status for record in llmock.requests] == [status, 200, 200]
    llmock.assert_resilient()


def test_a_new_message_after_a_fault_finds_a_well_formed_thread(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    agent = create_agent(chat(), till.tools, checkpointer=InMemorySaver())
    config = thread("t")
    wire.plays(REFUND, Refusal(500), DONE)
    assert isinstance(drive(agent, "refund A1", config, catch=True).error, openai.InternalServerError)
    assert drive(agent, "well?", config).text == "Refunded."
    assert [m["role"] for m in wire.exchanges[-1].messages] == ["user", "assistant", "tool", "user"]
    assert till.refunds == [("A1", 5)]
