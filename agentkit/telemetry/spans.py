"""Spans: what `Tracing` makes of the facts of one run."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from opentelemetry import context as otel
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)

from agentkit.events import Event
from agentkit.telemetry import attributes as told
from agentkit.telemetry import content
from agentkit.telemetry.facts import ModelCall, RunFacts, ToolCall
from agentkit.telemetry.metrics import Metrics, waited
from agentkit.telemetry.nested import Nested, silenced
from agentkit.telemetry.propagation import leave, links, predecessor
from agentkit.telemetry.reading import decisions, error_type, signal_outcome
from agentkit.telemetry.reporter import Reporter
from agentkit.telemetry.semconv import GenAI, Own
from agentkit.telemetry.settings import DROP, Kind, Telemetry
from agentkit.watch import Outcome

__all__ = ["Recorded", "SpanReporter", "resumed"]

_MOST_EVENTS: Final = 100  # the SDK keeps 128 of a span, and the last ones matter most


@dataclass(slots=True)
class Recorded:
    """What is kept with a call while it goes on."""

    span: Span | None
    context: otel.Context | None
    nested: Nested | None = None


class SpanReporter(Reporter):
    """Records one run as spans and metrics."""

    def __init__(self, settings: Telemetry, tracer: Tracer | None, metrics: Metrics | None) -> None:
        """Record one run.

        Args:
            settings: What is recorded.
            tracer: Makes the spans; None: none are made.
            metrics: Counts; None: nothing is counted.
        """
        self._settings = settings
        self._tracer = tracer
        self._metrics = metrics
        self._captures = settings.captures()
        self._span: Span | None = None
        self._context: otel.Context | None = None
        self._events = 0
        self._lock = Lock()

    # ---- the run

    def run_started(self, facts: RunFacts) -> otel.Context | None:
        """Start the run's span, and leave its address for whoever resumes the run."""
        if self._metrics is not None:
            self._metrics.run_started(facts)
        if self._tracer is None:
            return None
        before = predecessor(facts)
        base = otel.get_current()
        if before is not None and self._settings.resume == "parent":
            base = set_span_in_context(NonRecordingSpan(before), base)
            before = None
        self._span = span = self._tracer.start_span(
            told.run_name(facts), base, SpanKind.INTERNAL, told.run_start(facts), links(before)
        )
        if not span.get_span_context().is_valid:
            self._tracer = self._span = None
            return None
        if facts.run.stored:
            leave(facts, span)
        if facts.resumed and span.is_recording():
            self._note(span, "agentkit.resume", resumed(facts))
        self._context = set_span_in_context(span, base)
        return self._context

    def run_ended(self, facts: RunFacts, outcome: Outcome) -> None:
        """End the run's span."""
        span = self._span
        if span is not None:
            if span.is_recording():
                for name, attributes in told.run_events(outcome):
                    self._note(span, name, attributes)
                span.set_attributes(told.run_end(facts, outcome, self._settings.agent_usage))
                if self._events > _MOST_EVENTS:
                    span.set_attribute(Own.DROPPED, self._events - _MOST_EVENTS)
                if outcome.status == "error":
                    self._fail(span, outcome.error)
                if self._captures:
                    self._write(span, "input", GenAI.INPUT_MESSAGES, content.given_messages(facts.run.input))
                    self._write(span, "output", GenAI.OUTPUT_MESSAGES, content.last_reply(outcome.values))
            span.end()
        if self._metrics is not None:
            self._metrics.run_ended(facts, outcome, self._context)

    # ---- requests to models

    def model_started(self, facts: RunFacts, call: ModelCall, parent: otel.Context) -> otel.Context | None:
        """Start a request's span."""
        if not self._settings.model_spans:
            return None
        call.recorded = recorded = Recorded(None, parent)
        if self._tracer is None:
            return None
        recorded.span = span = self._tracer.start_span(
            told.model_name(call), parent, SpanKind.CLIENT, told.model_start(call, facts)
        )
        if self._captures and span.is_recording():
            self._write(span, "system", GenAI.SYSTEM, content.system(call.messages))
            self._write(span, "input", GenAI.INPUT_MESSAGES, content.input_messages(call.messages))
            self._write(span, "input", GenAI.TOOL_DEFINITIONS, content.definitions(call.parameters))
        recorded.context = set_span_in_context(span, parent)
        if not self._settings.suppress_nested:
            return recorded.context
        context, recorded.nested = silenced(recorded.context)
        return context

    def model_chunk(self, call: ModelCall, since: float) -> None:
        """Count the time between two chunks."""
        if self._metrics is not None and call.recorded is not None:
            self._metrics.model_chunk(call, since)

    def model_ended(self, facts: RunFacts, call: ModelCall) -> None:
        """End a request's span."""
        recorded: Recorded | None = call.recorded
        if recorded is None:
            return
        if (span := recorded.span) is not None:
            if span.is_recording():
                handed_over = recorded.nested.attributes() if recorded.nested is not None else {}
                span.set_attributes({**handed_over, **told.model_end(call)})
                if call.reply is not None and self._captures:
                    self._write(span, "output", GenAI.OUTPUT_MESSAGES, content.output_messages(call.reply))
                if call.error is not None and not call.cancelled:
                    self._fail(span, call.error)
            span.end()
        if self._metrics is not None:
            self._metrics.model_ended(call, recorded.context)

    # ---- calls of tools

    def tool_started(self, facts: RunFacts, call: ToolCall) -> otel.Context | None:
        """Start a call's span."""
        if self._tracer is None:
            return None
        base = otel.get_current()
        span = self._tracer.start_span(told.tool_name(call), base, SpanKind.INTERNAL, told.tool_start(call, facts))
        if self._captures and span.is_recording():
            self._write(span, "tool_args", GenAI.TOOL_ARGUMENTS, call.arguments, tool=call.name)
        context = set_span_in_context(span, base)
        call.recorded = Recorded(span, context)
        return context

    def tool_ended(self, facts: RunFacts, call: ToolCall) -> None:
        """End a call's span."""
        recorded: Recorded | None = call.recorded
        if recorded is not None and recorded.span is not None:
            span = recorded.span
            if span.is_recording():
                if ended := told.tool_end(call):
                    span.set_attributes(ended)
                if call.result is not None and self._captures:
                    self._write(span, "tool_result", GenAI.TOOL_RESULT, call.result.content, tool=call.name)
                if call.outcome == "error":
                    self._fail(span, call.error)
            span.end()
        if self._metrics is not None:
            self._metrics.tool_ended(facts, call, recorded.context if recorded is not None else None)

    # ---- calls of hooks

    def hook_started(self, middleware: str, hook: str) -> Span | None:
        """Start the span of a call of a middleware's hook."""
        if self._tracer is None:
            return None
        told = {Own.HOOK_OF: middleware, Own.HOOK: hook}
        return self._tracer.start_span(f"hook {middleware}.{hook}", None, SpanKind.INTERNAL, told)

    def hook_ended(
        self, span: Span | None, middleware: str, hook: str, own: float, failed: BaseException | None
    ) -> None:
        """End it, after this many seconds of its own."""
        outcome = signal_outcome(failed) if failed is not None else None
        if span is not None:
            if outcome is not None:
                span.set_attribute(Own.OUTCOME, outcome)
            elif failed is not None:
                span.set_attribute(GenAI.ERROR_TYPE, error_type(failed))
                self._fail(span, failed)
            span.end()
        if self._metrics is not None:
            self._metrics.hook_ended(middleware, hook, own, set_span_in_context(span) if span is not None else None)

    # ---- events

    def happened(self, facts: RunFacts, event: Event) -> None:
        """Note an event on the span at which it happened."""
        if self._metrics is not None:
            self._metrics.happened(event)
        if self._tracer is None or not self._is_shown(event):
            return
        span = get_current_span()
        if not span.is_recording():
            return
        if span is self._span:
            with self._lock:
                self._events += 1
                if self._events > _MOST_EVENTS:
                    return
        self._note(span, told.event_name(event), told.event_attributes(event))

    def failed(self, site: str) -> bool:
        """Count a failure of telemetry itself; False if nothing is counted here."""
        if self._metrics is None:
            return False
        self._metrics.failed(site)
        return True

    def _is_shown(self, event: Event) -> bool:
        allowed = event.name == "gate.decision" and event.fields.get("decision") == "allow"
        return not allowed or self._settings.gate_events == "all"

    # ---- small parts

    def _note(self, span: Span, name: str, attributes: dict[str, Any]) -> None:
        span.add_event(name, attributes)

    def _fail(self, span: Span, error: BaseException | None) -> None:
        span.set_status(Status(StatusCode.ERROR, self._text(error) if error is not None else None))

    def _text(self, error: BaseException) -> str | None:
        """An exception's text, which may hold anything: it is left out unless it is asked for."""
        if not self._settings.exception_messages:
            return None
        text = content.redacted(self._settings, "exception", str(error), {"type": type(error).__name__})
        return None if text is DROP else str(text)

    def _write(self, span: Span, kind: Kind, key: str, value: Any, **info: Any) -> None:
        if not value and kind != "tool_args":
            return
        text = content.written(self._settings, kind, value, info)
        if text is not DROP:
            span.set_attribute(key, text)


def resumed(facts: RunFacts) -> dict[str, Any]:
    """What is known of a run that goes on from a pause."""
    configurable = facts.saved.config.get("configurable", {}) if facts.saved is not None else {}
    decided = {f"agentkit.resume.{how}": count for how, count in decisions(facts.run.input).items()}
    found = {Own.CHECKPOINT: configurable.get("checkpoint_id"), "agentkit.resume.wait_s": waited(facts), **decided}
    return {key: value for key, value in found.items() if value is not None}
