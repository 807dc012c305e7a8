"""Every scenario, recorded: the right tree, nothing against the conventions, and nothing that leaks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from agentkit.telemetry.log_events import DETAILS
from bench.tracing_scenarios import CANARY, SCENARIOS

PARALLEL = [
    "invoke_agent root",
    "  chat fake-1",
    "  execute_tool slow_a",
    "  execute_tool slow_b",
    "  chat fake-1",
]
TREES = {
    "sync": PARALLEL,
    "async_": PARALLEL,
    "stream": PARALLEL,
    "astream": PARALLEL,
    "abandoned": ["invoke_agent root cancelled", "  chat fake-1 cancelled"],
    "sub_agent": [
        "invoke_agent root",
        "  chat fake-1",
        "  execute_tool delegate",
        "    invoke_agent helper",
        "      chat fake-1",
        "      execute_tool slow_a",
        "      chat fake-1",
        "  chat fake-1",
    ],
    "model_retry": [
        "invoke_agent root",
        "  chat fake-1 TimeoutError",
        "  chat fake-1 TimeoutError",
        "  chat fake-1",
    ],
    "tool_retry": ["invoke_agent root", "  chat fake-1", "  execute_tool flaky", "  chat fake-1"],
    "model_error": ["invoke_agent root error TimeoutError", "  chat fake-1 TimeoutError"],
    "tool_error": [
        "invoke_agent root error ValueError",
        "  chat fake-1",
        "  execute_tool broken error ValueError",
    ],
    "interrupted": [
        "invoke_agent root interrupted",
        "  chat fake-1",
        "  execute_tool ask interrupted",
        "  execute_tool slow_b",
        "invoke_agent root",
        "  execute_tool ask",
        "  chat fake-1",
    ],
    "limit": ["invoke_agent root", "  chat fake-1", "  execute_tool slow_a"],
    "cancelled": [
        "invoke_agent root cancelled",
        "  chat fake-1",
        "  execute_tool slow_a",
        "  chat fake-1 asyncio.exceptions.CancelledError",
    ],
}


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.__name__)
def scenario(request: pytest.FixtureRequest) -> Callable[[Any], None]:
    return request.param  # type: ignore[no-any-return]


def by_name(tree: list[str]) -> list[str]:
    """Parallel calls start in any order; their spans have no children here."""
    return sorted(tree) if "  execute_tool slow_b" in tree else tree


def test_the_tree_is_right_and_nothing_breaks_the_conventions(
    scenario: Any, recorder: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    scenario(recorder.create)
    assert by_name(recorder.tree()) == by_name(TREES[scenario.__name__])
    assert recorder.findings() == []
    assert not [record for record in caplog.records if record.name == "opentelemetry.context"]


def test_nothing_of_the_conversation_is_recorded(scenario: Any, recorder: Any, logs: Any) -> None:
    recorder.options.update(emit_events=True, event_signal="both")
    scenario(recorder.create)
    assert logs.findings() == []
    assert len(logs.named(DETAILS)) == len(recorder.named("chat"))
    recorded = [each.to_json() for each in (*recorder.spans, *logs.told)]
    assert recorded
    assert not [text for text in [*recorded, str(recorder.reader.get_metrics_data())] if CANARY in text]


def test_captured_content_has_the_shape_of_the_conventions(scenario: Any, recorder: Any, logs: Any) -> None:
    recorder.options["capture_content"] = "SPAN_AND_EVENT"
    recorder.checker.captured = True
    scenario(recorder.create)
    assert logs.findings(captured=True) == []
    assert recorder.findings() == []
    first = recorder.named("chat")[0].attributes
    assert CANARY in first["gen_ai.input.messages"]


def test_tokens_of_runs_and_requests_add_up(scenario: Any, recorder: Any) -> None:
    scenario(recorder.create)
    sums = {
        prefix: sum((span.attributes or {}).get("gen_ai.usage.input_tokens", 0) for span in recorder.named(prefix))
        for prefix in ("invoke_agent", "chat")
    }
    assert sums["invoke_agent"] == sums["chat"]


def test_each_run_is_one_trace_and_every_span_ends(scenario: Any, recorder: Any) -> None:
    scenario(recorder.create)
    roots = [span for span in recorder.spans if span.parent is None]
    assert len({span.get_span_context().trace_id for span in recorder.spans}) == len(roots)
    assert len(recorder.spans) == len(recorder.checker.started)
    assert all(span.status.status_code is not StatusCode.OK for span in recorder.spans)
