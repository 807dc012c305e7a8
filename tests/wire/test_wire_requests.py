"""What is really sent: tools, tool choice, messages and their order."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Annotated, Any

from langchain.tools import ToolRuntime
from langchain_core.messages import SystemMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import create_agent, thread
from tests.wire.conftest import Chat, Till
from tests.wire.driving import Drive
from tests.wire.strict import refusals
from tests.wire.wire_format import Answer, Call
from tests.wire.wire_server import WireServer

REFUND = Call("refund_order", '{"order_id": "A1", "amount": 5}', "call_r")
LOOK = Call("look_up", '{"order_id": "B2"}', "call_l")
DONE = Answer("Done.")


def test_the_tools_are_described_with_what_the_model_may_fill_in_and_nothing_injected(
    drive: Drive, chat: Chat, wire: WireServer
) -> None:
    @tool
    def pay(
        amount: int, call_id: Annotated[str, InjectedToolCallId], runtime: ToolRuntime[Any, Any], note: str = ""
    ) -> str:
        """Pay an amount."""
        return f"paid {amount} for {call_id}"

    wire.plays(Answer(calls=(Call("pay", '{"amount": 3}', "call_p"),)), DONE)
    drive(create_agent(chat(), [pay]), "pay")
    (sent,) = wire.exchanges[0].body["tools"]
    assert sent["type"] == "function"
    assert (sent["function"]["name"], sent["function"]["description"]) == ("pay", "Pay an amount.")
    parameters = sent["function"]["parameters"]
    assert set(parameters["properties"]) == {"amount", "note"}
    assert parameters["required"] == ["amount"]
    assert wire.exchanges[1].messages[-1]["content"] == "paid 3 for call_p"


def test_without_tools_or_a_choice_neither_is_sent(drive: Drive, chat: Chat, till: Till, wire: WireServer) -> None:
    wire.plays(DONE)
    drive(create_agent(chat()), "hello")
    assert "tools" not in wire.exchanges[0].body
    assert "tool_choice" not in wire.exchanges[0].body
    wire.plays(DONE)
    drive(create_agent(chat(), till.tools), "hello")
    assert "tool_choice" not in wire.exchanges[0].body


def test_the_system_message_is_first_in_every_request_and_never_stored(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    for prompt in ("Be brief.", SystemMessage("Be brief.")):
        wire.plays(Answer(calls=(REFUND,)), DONE)
        outcome = drive(create_agent(chat(), till.tools, system_prompt=prompt), "refund A1")
        for exchange in wire.exchanges:
            assert exchange.messages[0] == {"role": "system", "content": "Be brief."}
            assert [m["role"] for m in exchange.messages].count("system") == 1
        assert "system" not in [message.type for message in outcome.messages]


def test_calls_go_back_as_the_model_made_them_each_answered_right_after(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    wire.plays(Answer("Both at once.", (REFUND, LOOK)), DONE)
    drive(create_agent(chat(), till.tools), "refund A1 and look up B2")
    user, assistant, first, second = wire.exchanges[1].messages
    assert (user["role"], user["content"]) == ("user", "refund A1 and look up B2")
    assert (assistant["role"], assistant["content"]) == ("assistant", "Both at once.")
    sent = [(c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in assistant["tool_calls"]]
    assert sent == [
        ("call_r", "refund_order", {"order_id": "A1", "amount": 5}),
        ("call_l", "look_up", {"order_id": "B2"}),
    ]
    assert [(m["tool_call_id"], m["content"]) for m in (first, second)] == [
        ("call_r", "refunded A1: 5"),
        ("call_l", "B2 is delivered"),
    ]


def test_every_request_of_a_long_thread_begins_with_the_one_before(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    agent = create_agent(chat(), till.tools, system_prompt="Be brief.", checkpointer=InMemorySaver())
    config = thread("t")
    wire.plays(*[Answer(calls=(REFUND, LOOK)), Answer(calls=(LOOK,)), DONE] * 3)
    for turn in range(3):
        drive(agent, f"turn {turn}", config)
    bodies = [exchange.messages for exchange in wire.exchanges]
    assert len(bodies) == 9
    for before, after in pairwise(bodies):
        assert after[: len(before)] == before  # byte for byte: what a provider's prompt cache lives on


def test_a_call_left_open_by_a_stopped_run_is_closed_before_the_next_request(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    agent = create_agent(chat(), till.tools, checkpointer=InMemorySaver(), interrupt_before=["tools"])
    config = thread("t")
    wire.plays(Answer(calls=(REFUND, LOOK)), DONE)
    drive(agent, "refund A1", config)
    assert drive(agent, "no, leave it", config).text == "Done."
    assert till.refunds == []
    assert refusals(wire.exchanges[-1].body) == []
    assert [m["role"] for m in wire.exchanges[-1].messages] == ["user", "assistant", "tool", "tool", "user"]
