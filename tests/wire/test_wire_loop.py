"""The loop over a real HTTP connection: calls, results, usage, and what a model gets wrong."""

from __future__ import annotations

import threading

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from llmock.pytest_plugin import LLMock

from agentkit import Limits, create_agent, exit_of, thread
from agentkit.errors import AgentkitError
from tests.wire.conftest import Chat, Till
from tests.wire.driving import Drive
from tests.wire.strict import refusals
from tests.wire.wire_format import Answer, Call
from tests.wire.wire_server import WireServer

REFUND = Call("refund_order", '{"order_id": "A1", "amount": 5}')


def test_a_tool_loop_keeps_the_usage_of_every_answer(drive: Drive, chat: Chat, till: Till, wire: WireServer) -> None:
    wire.plays(Answer(calls=(REFUND,), usage=(120, 18)), Answer("Refunded.", usage=(150, 4)))
    outcome = drive(create_agent(chat(), till.tools), "refund A1")
    assert [message.type for message in outcome.messages] == ["human", "ai", "tool", "ai"]
    assert outcome.text == "Refunded."
    assert till.refunds == [("A1", 5)]
    used = [message.usage_metadata for message in outcome.messages if isinstance(message, AIMessage)]
    assert [usage and (usage["input_tokens"], usage["output_tokens"]) for usage in used] == [(120, 18), (150, 4)]


def test_the_same_loop_on_the_responses_api(drive: Drive, chat: Chat, till: Till, wire: WireServer) -> None:
    wire.plays(Answer("I refund it.", (REFUND,)), Answer("Refunded."))
    model = chat(use_responses_api=True, output_version="responses/v1")
    outcome = drive(create_agent(model, till.tools, system_prompt="Be kind."), "refund A1")
    assert outcome.text == "Refunded."
    assert till.refunds == [("A1", 5)]
    assert [exchange.path for exchange in wire.exchanges] == ["/v1/responses"] * 2


def test_the_loop_against_llmock(drive: Drive, till: Till, llmock: LLMock) -> None:
    llmock.call_tool("refund_order", {"order_id": "A1", "amount": 5}).reply("Refunded.")
    outcome = drive(create_agent(ChatOpenAI(model="gpt-4o"), till.tools), "refund A1")
    assert outcome.text == "Refunded."
    assert till.refunds == [("A1", 5)]
    assert [reason for record in llmock.requests for reason in refusals(record.body)] == []
    llmock.assert_resilient()


def test_parallel_calls_run_at_once_and_their_results_are_sent_in_call_order(
    drive: Drive, chat: Chat, wire: WireServer
) -> None:
    both = threading.Barrier(2, timeout=5)  # nobody passes unless both run at the same time
    second_is_done = threading.Event()

    @tool
    def measure(place: str) -> str:
        """Measure."""
        both.wait()
        if place == "first":
            assert second_is_done.wait(5)
        else:
            second_is_done.set()
        return f"{place}: 20 degrees"

    calls = (Call("measure", '{"place": "first"}', "call_z"), Call("measure", '{"place": "second"}', "call_a"))
    wire.plays(Answer(calls=calls), Answer("Both 20."))
    outcome = drive(create_agent(chat(), [measure]), "measure")
    assert outcome.text == "Both 20."
    sent = [(m["tool_call_id"], m["content"]) for m in wire.exchanges[1].messages if m["role"] == "tool"]
    assert sent == [("call_z", "first: 20 degrees"), ("call_a", "second: 20 degrees")]


@pytest.mark.parametrize("arguments", ['{"order_id": "A1", "am', "[1, 2]", '"x"', "3", "true"])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_unusable_arguments_are_never_executed_and_the_model_is_told(
    arguments: str, api: str, drive: Drive, chat: Chat, wire: WireServer
) -> None:
    refunds = []

    @tool
    def refund_order(order_id: str, amount: int) -> str:
        """Refund an order."""
        refunds.append((order_id, amount))
        return "refunded"

    bad = Call("refund_order", arguments, "call_0")
    wire.plays(Answer(calls=(bad,)), Answer(calls=(REFUND,)), Answer("Refunded."))
    responses = {"use_responses_api": True, "output_version": "responses/v1"} if api == "responses" else {}
    outcome = drive(create_agent(chat(**responses), [refund_order]), "refund A1")
    assert outcome.text == "Refunded."
    assert refunds == [("A1", 5)]
    last = wire.exchanges[1].spoken[-1]  # what the model is told: what was wrong, and what to do
    told = str(last.get("content") or last.get("output"))
    assert "one JSON object" in told or "amount: Field required" in told


@pytest.mark.parametrize("arguments", ["[1, 2]", '{"order_id": nonsense}'])
def test_unusable_arguments_that_never_end_end_the_run(
    arguments: str, drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    wire.plays(*[Answer(calls=(Call("refund_order", arguments, f"call_{n}"),)) for n in range(9)])
    agent = create_agent(chat(), till.tools, checkpointer=InMemorySaver())
    config = thread("t")
    outcome = drive(agent, "refund A1", config, catch=True)
    assert len(wire.exchanges) == Limits().malformed_answers
    assert till.refunds == []
    if outcome.error is None:
        exit = exit_of(agent.get_state(config))
        assert exit is not None
        assert exit.reason == "failures"
    else:
        assert isinstance(outcome.error, AgentkitError)


def test_an_unusable_call_does_not_keep_the_good_one_beside_it_from_running(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    bad = Call("look_up", '{"order": "A1"}', "call_bad")
    wire.plays(Answer(calls=(REFUND, bad)), Answer("Refunded."))
    outcome = drive(create_agent(chat(), till.tools), "refund A1")
    assert till.refunds == [("A1", 5)]
    results = [message for message in outcome.messages if isinstance(message, ToolMessage)]
    assert [(result.tool_call_id, result.status) for result in results] == [
        ("call_1", "success"),
        ("call_bad", "error"),
    ]
    assert "order_id" in results[1].text  # what the tool wants


def test_an_unknown_tool_is_answered_with_the_names_of_the_known_ones(
    drive: Drive, chat: Chat, till: Till, wire: WireServer
) -> None:
    wire.plays(Answer(calls=(Call("refund_everything", "{}"),)), Answer(calls=(REFUND,)), Answer("Refunded."))
    outcome = drive(create_agent(chat(), till.tools), "refund A1")
    assert outcome.text == "Refunded."
    assert till.refunds == [("A1", 5)]
    error = next(message for message in outcome.messages if isinstance(message, ToolMessage))
    assert error.status == "error"
    for name in ("refund_everything", "refund_order", "look_up"):
        assert name in error.text


@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
@pytest.mark.parametrize("drive", ["invoke", "ainvoke"], indirect=True)
def test_a_tool_call_that_llmock_breaks_is_put_right_by_the_next(
    kind: str, drive: Drive, till: Till, llmock: LLMock
) -> None:
    good = {"order_id": "A1", "amount": 5}
    llmock.break_tool_call(kind).call_tool("refund_order", good).call_tool("refund_order", good).reply("Refunded.")
    outcome = drive(create_agent(ChatOpenAI(model="gpt-4o"), till.tools), "refund A1")
    assert outcome.text == "Refunded."
    assert till.refunds == [("A1", 5)]
    assert [reason for record in llmock.requests for reason in refusals(record.body)] == []
