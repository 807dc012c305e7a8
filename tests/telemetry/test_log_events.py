"""Events of the Logs API: failed requests, details of requests, content and its hook, agentkit's own events."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from agentkit import create_agent, thread
from agentkit.errors import ConfigurationError
from agentkit.middleware import Approval, ModelRetry, Tracing, decide
from agentkit.telemetry import Telemetry
from agentkit.telemetry.capture import asked_for, emits_events
from agentkit.testing import EntryPoint, ScriptedModel, ai, run, tool_call

DETAILS = "gen_ai.client.inference.operation.details"
EXCEPTION = "gen_ai.client.operation.exception"


def look(text: str = "") -> str:
    """Look something up."""
    return "found"


# ---- failed requests


def test_a_failed_request_is_one_warning_at_its_own_span(
    recorder: Any, logs: Any, entry: EntryPoint, clock: Any
) -> None:
    model = ScriptedModel(TimeoutError("secret"), "done")
    run(recorder.create(model, middleware=[ModelRetry(attempts=2)]), "hi", entry=entry)
    (told,) = logs.named(EXCEPTION)
    failed, _ = recorder.named("chat")
    assert dict(told.attributes) == {"exception.type": "TimeoutError"}
    assert told.severity_text == "WARN"
    assert told.span_id == failed.get_span_context().span_id
    assert logs.findings() == recorder.findings() == []


def test_an_error_that_ends_the_run_is_told_once(recorder: Any, logs: Any, entry: EntryPoint) -> None:
    inner = recorder.create(ScriptedModel(TimeoutError("secret")), name="inner")

    def delegate() -> str:
        """Ask another agent."""
        return str(inner.invoke({"messages": "go"})["messages"][-1].text)

    run(recorder.create(ScriptedModel(ai("", tool_call("delegate"))), [delegate], name="outer"), "hi", catch=True)
    (told,) = logs.named(EXCEPTION)
    (failed,) = [span for span in recorder.named("chat") if not span.status.is_ok]
    assert told.span_id == failed.get_span_context().span_id
    assert "secret" not in logs.text()


def test_its_text_and_place_only_if_they_are_asked_for(recorder: Any, logs: Any) -> None:
    recorder.options.update(exception_messages=True, redact=lambda kind, value, info: value.replace("secret", "***"))
    run(recorder.create(ScriptedModel(TimeoutError("a secret"))), "hi", catch=True)
    (redacted,) = logs.named(EXCEPTION)
    assert dict(redacted.attributes) == {"exception.type": "TimeoutError", "exception.message": "a ***"}
    recorder.options.update(redact=None)
    run(recorder.create(ScriptedModel(TimeoutError("a word"))), "hi", catch=True)
    _, told = logs.named(EXCEPTION)
    assert told.attributes["exception.stacktrace"].rstrip().endswith("TimeoutError: a word")


def test_unsampled_runs_are_told_of_all_the_same(recorder: Any, logs: Any) -> None:
    recorder.options.update(tracer_provider=TracerProvider(sampler=ALWAYS_OFF), emit_events=True)
    run(recorder.create(ScriptedModel(TimeoutError("secret"))), "hi", catch=True)
    assert (len(logs.named(EXCEPTION)), len(logs.named(DETAILS))) == (1, 1)
    assert recorder.spans == []


def test_events_alone_are_enough_to_record(logs: Any) -> None:
    tracing = Tracing(Telemetry(logger_provider=logs.provider, emit_events=True))
    run(create_agent(ScriptedModel("done"), middleware=[tracing]), "hi")
    assert len(logs.named(DETAILS)) == 1


# ---- details of requests


def test_details_are_what_the_span_tells_and_no_content(recorder: Any, logs: Any, entry: EntryPoint) -> None:
    recorder.options["emit_events"] = True
    reply = ai("the secret", usage=(10, 5), finish_reason="stop", model_name="m-1")
    run(recorder.create(ScriptedModel(reply)), "hi secret", entry=entry)
    (told,), (span,) = logs.named(DETAILS), recorder.named("chat")
    assert dict(told.attributes) == dict(span.attributes)
    assert told.attributes["gen_ai.usage.input_tokens"] == 10
    assert "secret" not in logs.text()
    assert logs.findings() == []


@pytest.mark.parametrize(
    ("mode", "spans", "events"),
    [
        ("NO_CONTENT", False, None),
        ("SPAN_ONLY", True, None),
        ("event_only", False, True),
        ("Span_And_Event", True, True),
        ("everything", False, None),
    ],
)
def test_the_environment_says_where_content_goes(
    mode: str, spans: bool, events: bool | None, recorder: Any, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", mode)
    recorder.checker.captured = spans
    run(recorder.create(ScriptedModel("hello"), system_prompt="be kind"), "hi")
    (span,) = recorder.named("chat")
    assert ("gen_ai.input.messages" in span.attributes) is spans
    assert [("gen_ai.input.messages" in told.attributes) for told in logs.named(DETAILS)] == [events][: events or 0]
    assert logs.findings(captured=bool(events)) == recorder.findings() == []


def test_content_on_events_is_structured(recorder: Any, logs: Any) -> None:
    recorder.options["capture_content"] = "EVENT_ONLY"
    run(recorder.create(ScriptedModel(ai("", tool_call("look", {"text": "x"})), "done"), [look]), "hi")
    first, last = logs.named(DETAILS)
    (called,) = first.attributes["gen_ai.output.messages"]
    assert dict(called["parts"][0]) == {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"text": "x"}}
    assert [message["role"] for message in last.attributes["gen_ai.input.messages"]] == ["user", "assistant", "tool"]
    assert logs.findings(captured=True) == []
    assert not [key for span in recorder.spans for key in span.attributes if key.endswith((".messages", ".result"))]


@pytest.mark.parametrize(
    ("value", "capture", "emitted"),
    [
        ("true", "NO_CONTENT", True),
        ("FALSE", "SPAN_AND_EVENT", False),
        ("", "EVENT_ONLY", True),
        ("", "SPAN_ONLY", False),
    ],
)
def test_the_environment_says_whether_details_are_told(
    value: str, capture: Any, emitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT", value)
    assert emits_events(None, asked_for(capture)) is emitted
    assert emits_events(not emitted, asked_for(capture)) is not emitted


def test_an_unknown_mode_is_said_without_repeating_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "sk-canary")
    assert asked_for(None) == (False, False)
    (said,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "CAPTURE_MESSAGE_CONTENT is none of NO_CONTENT, SPAN_ONLY" in said.getMessage()
    assert "canary" not in said.getMessage()
    with pytest.raises(ConfigurationError, match="capture_content is one of"):
        Telemetry(capture_content="everything")  # type: ignore[arg-type]


# ---- the hook for content


class Hook:
    """Keeps what it is told, and takes names out."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def on_completion(self, **given: Any) -> None:
        self.seen.append(given)
        for message in [*given["inputs"], *given["outputs"]]:
            for part in message["parts"]:
                part["content"] = str(part.get("content", "")).replace("Ann", "N.N.")
        if given["span"] is not None:
            given["span"].set_attribute("shop.content_ref", "s3://bucket/1")


def test_a_hook_changes_what_is_recorded(recorder: Any, logs: Any, entry: EntryPoint) -> None:
    hook = Hook()
    recorder.options.update(capture_content="SPAN_AND_EVENT", content_hook=hook)
    run(recorder.create(ScriptedModel("Ann it is")), "I am Ann", entry=entry)
    (span,), (told,) = recorder.named("chat"), logs.named(DETAILS)
    assert "N.N. it is" in span.attributes["gen_ai.output.messages"]
    assert told.attributes["gen_ai.input.messages"][0]["parts"][0]["content"] == "I am N.N."
    assert span.attributes["shop.content_ref"] == "s3://bucket/1"
    assert "Ann" not in logs.text() + "".join(each.to_json() for each in recorder.spans)


@pytest.mark.parametrize("sampled", [True, False])
def test_a_hook_hears_what_is_neither_captured_nor_sampled(recorder: Any, sampled: bool) -> None:
    hook = Hook()
    recorder.options.update(content_hook=hook, redact=lambda kind, value, info: [*value, {"role": "user", "parts": []}])
    if not sampled:
        recorder.options["tracer_provider"] = TracerProvider(sampler=ALWAYS_OFF)
    run(recorder.create(ScriptedModel("hello")), "hi")
    (told,) = hook.seen
    assert [len(told["inputs"]), told["log_record"]] == [2, None]  # redacted before
    assert "hello" not in "".join(span.to_json() for span in recorder.spans)


def test_a_hook_alone_is_enough(entry: EntryPoint) -> None:
    hook = Hook()
    agent = create_agent(ScriptedModel("hello"), middleware=[Tracing(Telemetry(content_hook=hook))])
    run(agent, "hi", entry=entry)
    assert hook.seen[0]["outputs"][0]["parts"][0]["content"] == "hello"


def test_where_the_hook_fails_the_content_is_left_out(recorder: Any, logs: Any) -> None:
    class Broken:
        def on_completion(self, **given: Any) -> None:
            raise RuntimeError("no bucket")

    recorder.options.update(capture_content="SPAN_AND_EVENT", content_hook=Broken())
    assert run(recorder.create(ScriptedModel("the secret")), "hi secret").text == "the secret"
    assert "secret" not in logs.text() + recorder.named("chat")[0].to_json()
    assert len(logs.named(DETAILS)) == 1


# ---- agentkit's own events


@pytest.mark.parametrize("signal", ["log", "both"])
def test_own_events_can_be_records(recorder: Any, logs: Any, signal: str, entry: EntryPoint) -> None:
    recorder.options.update(event_signal=signal, gate_events="all")
    model = ScriptedModel(ai("", tool_call("look")), "done")
    agent = recorder.create(model, [look], middleware=[Approval("look")], checkpointer=InMemorySaver())
    run(agent, "hi", thread("t"), entry=entry)
    answer = decide(agent.get_state(thread("t")), {"c1": {"type": "approve", "by": "ann"}})
    run(agent, answer, thread("t"), entry=entry)
    paused, resumed = recorder.named("invoke_agent")
    (pause,), (resume,) = logs.named("agentkit.interrupt"), logs.named("agentkit.resume")
    assert pause.attributes["agentkit.interrupt.kind"] == "approval"
    assert (pause.span_id, resume.span_id) == (paused.get_span_context().span_id, resumed.get_span_context().span_id)
    decided = [told.attributes["agentkit.gate.decision"] for told in logs.named("agentkit.gate.decision")]
    assert decided == ["require_approval", "allow"]
    assert bool([event for span in recorder.spans for event in span.events]) is (signal == "both")
    assert logs.findings() == recorder.findings() == []


def test_by_default_they_are_not(recorder: Any, logs: Any) -> None:
    model = ScriptedModel(ai("", tool_call("look")), "done")
    agent = recorder.create(model, [look], middleware=[Approval("look")], checkpointer=InMemorySaver())
    run(agent, "hi", thread("t"))
    assert logs.told == ()
    assert recorder.named("invoke_agent")[0].events
