"""The scripted server itself: what it sends is what its script says, down to the byte where it breaks."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.wire.strict import refusals
from tests.wire.wire_format import Answer, Call, events_of, finish_event
from tests.wire.wire_server import WireServer

ANSWER = Answer("Here you are.", (Call("look_up", '{"order_id": "A1"}'),))
USER = {"role": "user", "content": "x"}


def _post(wire: WireServer, **body: Any) -> tuple[int, str]:
    where = urlsplit(wire.base_url)
    assert where.hostname is not None
    payload = json.dumps({"messages": [USER], "stream_options": {"include_usage": True}} | body)
    with closing(http.client.HTTPConnection(where.hostname, where.port, timeout=5)) as connection:
        connection.request("POST", "/v1/chat/completions", payload)
        with connection.getresponse() as response:
            return response.status, response.read().decode()


@pytest.mark.parametrize("at", range(len(events_of(ANSWER))))
def test_a_cut_ends_cleanly_after_exactly_so_many_events(at: int, wire: WireServer) -> None:
    wire.plays(ANSWER.broken("cut", at))
    assert _post(wire, stream=True) == (200, "".join(events_of(ANSWER)[:at]))


def test_the_finish_reason_comes_with_the_finish_event_and_not_before(wire: WireServer) -> None:
    at = finish_event(ANSWER)
    before, until = ("".join(events_of(ANSWER)[:n]) for n in (at - 1, at))
    assert '"finish_reason": "tool_calls"' in until
    assert '"finish_reason": "tool_calls"' not in before


def test_a_drop_is_no_clean_end(wire: WireServer) -> None:
    wire.plays(ANSWER.broken("drop", 2))
    with pytest.raises(http.client.IncompleteRead):
        _post(wire, stream=True)


def test_a_corrupt_event_is_no_json_and_the_next_ones_are(wire: WireServer) -> None:
    wire.plays(ANSWER.broken("corrupt", 2))
    events = _post(wire, stream=True)[1].strip().split("\n\n")
    broken = []
    for number, event in enumerate(events[:-1]):
        try:
            json.loads(event.removeprefix("data: "))
        except ValueError:
            broken.append(number)
    assert broken == [2]


def test_an_unscripted_request_is_told_so(wire: WireServer) -> None:
    status, text = _post(wire)
    assert status == 418
    assert "used up" in text


CALLS = {"role": "assistant", "content": None}
ONE = {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
TWO = ONE | {"id": "b"}
RESULT_A = {"role": "tool", "tool_call_id": "a", "content": "1"}
RESULT_B = RESULT_A | {"tool_call_id": "b"}


@pytest.mark.parametrize(
    ("messages", "refused"),
    [
        ([USER], False),
        ([{"role": "system", "content": "s"}, USER], False),
        ([USER, {"role": "system", "content": "s"}], True),
        ([{"role": "system", "content": "s"}], True),
        ([USER, CALLS | {"tool_calls": [ONE]}, RESULT_A], False),
        ([USER, CALLS | {"tool_calls": [ONE, TWO]}, RESULT_A, RESULT_B], False),
        ([USER, CALLS | {"tool_calls": [ONE, TWO]}, RESULT_B, RESULT_A], True),
        ([USER, CALLS | {"tool_calls": [ONE, TWO]}, RESULT_A], True),
        ([USER, CALLS | {"tool_calls": [ONE]}], True),
        ([USER, CALLS | {"tool_calls": [ONE]}, USER, RESULT_A], True),
        ([USER, CALLS | {"tool_calls": [ONE]}, RESULT_A, RESULT_A], True),
        ([USER, CALLS | {"tool_calls": [ONE, ONE]}, RESULT_A, RESULT_A], True),
        ([USER, RESULT_A], True),
        ([USER, CALLS], True),
        ([USER, CALLS | {"tool_calls": [ONE | {"id": ""}]}, RESULT_A | {"tool_call_id": ""}], True),
    ],
)
def test_what_a_strict_provider_refuses(messages: list[dict[str, Any]], refused: bool) -> None:
    assert bool(refusals({"messages": messages})) is refused


def test_a_malformed_request_gets_an_http_400(wire: WireServer) -> None:
    wire.plays(ANSWER)
    status, text = _post(wire, messages=[USER, RESULT_A])
    assert status == 400
    assert "answered by ['a']" in text
    wire.plays()
