"""ModelRetry on a real client and a real server: faults are passed over, and no effect happens twice."""

from __future__ import annotations

from typing import Any

import pytest
from tenacity import wait_fixed

from agentkit import Middleware, create_agent
from agentkit.middleware import Fallback, ModelRetry
from tests.wire.conftest import Chat, Till
from tests.wire.driving import Drive
from tests.wire.wire_format import Answer, Call, Refusal
from tests.wire.wire_server import WireServer

REFUND = Answer(calls=(Call("refund_order", '{"order_id": "A1", "amount": 5}'),))
DONE = Answer("Refunded.")
PATIENCE = 0.3  # seconds; what stalls never ends by itself


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Refusal(429), id="429"),
        pytest.param(Refusal(503), id="503"),
        pytest.param(DONE.broken("stall", 0), id="stalled"),
        pytest.param(DONE.broken("drop", 0), id="disconnected before the first event"),
        pytest.param(DONE.broken("drop", 2), id="disconnected in the middle"),
    ],
)
def test_a_fault_is_passed_over_without_repeating_the_effect(
    fault: Answer | Refusal, drive: Drive, chat: Chat, till: Till, wire: WireServer, clock: Any
) -> None:
    patience = PATIENCE if isinstance(fault, Answer) and fault.fault == "stall" else 5.0
    agent = create_agent(chat(timeout=patience), till.tools, middleware=[ModelRetry(wait=wait_fixed(1))])
    wire.plays(REFUND, fault, DONE)
    assert drive(agent, "refund A1").text == "Refunded."
    assert till.refunds == [("A1", 5)] and len(wire.exchanges) == 3 and clock.waits == [1]


def test_the_servers_wait_is_honoured(drive: Drive, chat: Chat, till: Till, wire: WireServer, clock: Any) -> None:
    agent = create_agent(chat(), till.tools, middleware=[ModelRetry(wait=wait_fixed(0))])
    wire.plays(Refusal(429, retry_after=7), DONE)
    assert drive(agent, "refund A1").text == "Refunded."
    assert len(clock.waits) == 1 and 7 <= clock.waits[0] <= 8
    wire.plays(Refusal(429, retry_after=3600))
    error = drive(agent, "refund A1", catch=True).error
    assert error is not None and "3600 s" in " ".join(error.__notes__)
    assert len(wire.exchanges) == 1 and len(clock.waits) == 1


@pytest.mark.parametrize("status", [400, 401])
def test_what_no_wait_mends_is_raised_at_once(
    status: int, drive: Drive, chat: Chat, till: Till, wire: WireServer, clock: Any
) -> None:
    agent = create_agent(chat(), till.tools, middleware=[ModelRetry()])
    wire.plays(Refusal(status))
    assert getattr(drive(agent, "refund A1", catch=True).error, "status_code", None) == status
    assert len(wire.exchanges) == 1 and clock.waits == []


class Settings(Middleware):
    """What the first model is asked with."""

    def wrap_model_call(self, request: Any) -> Any:
        settings = {"temperature": 0.5, "model": "gpt-first", "made_up_setting": 1}
        return (yield request.override(model_settings=settings))


def test_a_fallback_is_asked_in_its_own_name_with_what_it_knows(
    drive: Drive, chat: Chat, till: Till, wire: WireServer, clock: Any
) -> None:
    spare = Fallback(chat(top_p=0.9), {"max_tokens": 50})
    agent = create_agent(chat(), till.tools, middleware=[Settings(), ModelRetry(fallbacks=[spare])])
    wire.plays(REFUND, DONE)
    # the first model's client refuses the made-up setting before anything is sent: a bug, and not passed over
    error = drive(agent, "refund A1", catch=True).error
    assert isinstance(error, TypeError) and wire.exchanges == []

    class Known(Settings):
        def wrap_model_call(self, request: Any) -> Any:
            settings = {"temperature": 0.5, "model": "gpt-first"}
            return (yield request.override(model_settings=settings))

    agent = create_agent(chat(), till.tools, middleware=[Known(), ModelRetry(attempts=1, fallbacks=[spare])])
    wire.plays(Refusal(500), REFUND, DONE)
    assert drive(agent, "refund A1").text == "Refunded."
    first, second, third = (exchange.body for exchange in wire.exchanges)
    assert (first["model"], second["model"], third["model"]) == ("gpt-first", "gpt-wire", "gpt-first")
    assert (second["temperature"], second["top_p"], second["max_completion_tokens"]) == (0.5, 0.9, 50)
    assert till.refunds == [("A1", 5)]
