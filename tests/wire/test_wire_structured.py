"""Structured output over the wire, by the provider's own means and by a tool."""

from __future__ import annotations

import json

import pytest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_openai import ChatOpenAI
from llmock.pytest_plugin import LLMock
from pydantic import BaseModel

from agentkit import create_agent
from tests.wire.conftest import Chat, Till
from tests.wire.driving import Drive
from tests.wire.wire_format import Answer, Call, finish_event
from tests.wire.wire_server import WireServer


class Receipt(BaseModel):
    """What was refunded."""

    order_id: str
    amount: int = 0


LOOK = Answer(calls=(Call("look_up", '{"order_id": "A1"}', "call_look"),))
AS_TEXT = Answer('{"order_id": "A1", "amount": 12345}')
AS_CALL = Answer(calls=(Call("Receipt", '{"order_id": "A1", "amount": 12345}'),))
RECEIPT = Receipt(order_id="A1", amount=12345)


def test_provider_strategy_sends_the_schema_and_reads_the_text(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    wire.plays(LOOK, AS_TEXT)
    agent = create_agent(chat(), till.tools, response_format=ProviderStrategy(Receipt))
    outcome = drive(agent, "what was refunded?")
    assert outcome.values["structured_response"] == RECEIPT
    for exchange in wire.exchanges:
        format = exchange.body["response_format"]
        assert format["type"] == "json_schema"
        assert format["json_schema"]["name"] == "Receipt"
        assert set(format["json_schema"]["schema"]["properties"]) == {"order_id", "amount"}
        assert {t["function"]["name"] for t in exchange.body["tools"]} == {"refund_order", "look_up"}


def test_tool_strategy_offers_the_schema_as_a_tool_and_asks_for_a_call(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    wire.plays(LOOK, AS_CALL)
    outcome = drive(create_agent(chat(), till.tools, response_format=ToolStrategy(Receipt)), "what was refunded?")
    assert outcome.values["structured_response"] == RECEIPT
    assert len(wire.exchanges) == 2
    for exchange in wire.exchanges:
        assert {t["function"]["name"] for t in exchange.body["tools"]} == {"refund_order", "look_up", "Receipt"}
        assert exchange.body["tool_choice"] == "required"
        assert "response_format" not in exchange.body


def test_a_reply_that_breaks_the_schema_gets_another_try(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    wire.plays(Answer(calls=(Call("Receipt", '{"amount": "much"}'),)), AS_CALL)
    outcome = drive(create_agent(chat(), till.tools, response_format=ToolStrategy(Receipt)), "what was refunded?")
    assert outcome.values["structured_response"] == RECEIPT
    sent = [m for m in wire.exchanges[1].messages if m["role"] == "tool"]
    assert len(sent) == 1
    assert "order_id" in sent[0]["content"]


@pytest.mark.parametrize("at", range(finish_event(AS_CALL)))
@pytest.mark.parametrize("drive", ["stream", "ainvoke"], indirect=True)
def test_a_cut_structured_call_is_no_structured_response(
    at: int, drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    wire.plays(AS_CALL.broken("cut", at), AS_CALL)
    agent = create_agent(chat(streaming=True), till.tools, response_format=ToolStrategy(Receipt))
    assert drive(agent, "what was refunded?").values["structured_response"] == RECEIPT


@pytest.mark.parametrize("at", range(finish_event(AS_TEXT)))
@pytest.mark.parametrize("drive", ["invoke", "astream"], indirect=True)
def test_a_cut_structured_text_is_no_structured_response(
    at: int, drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    wire.plays(AS_TEXT.broken("cut", at), AS_TEXT)
    agent = create_agent(chat(streaming=True), till.tools, response_format=ProviderStrategy(Receipt))
    assert drive(agent, "what was refunded?").values["structured_response"] == RECEIPT


def test_a_schema_alone_takes_the_strategy_that_the_model_supports(drive: Drive, till: Till, llmock: LLMock) -> None:
    llmock.tool_mode("off")
    outcome = drive(create_agent(ChatOpenAI(model="gpt-4o"), till.tools, response_format=Receipt), "refunded?")
    assert isinstance(outcome.values["structured_response"], Receipt)
    body = llmock.last_request.body
    assert body["response_format"]["json_schema"]["name"] == "Receipt"
    assert json.loads(outcome.text) == outcome.values["structured_response"].model_dump()
