"""Records one run in more detail than `SpanReporter`: events of the Logs API, and content for a hook.

It takes that one's place only where somebody asked for any of this, so that nobody else pays for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import context as otel
from opentelemetry.trace import Span, Tracer

from agentkit.events import Event
from agentkit.telemetry import attributes as told
from agentkit.telemetry import content
from agentkit.telemetry.capture import emits_events
from agentkit.telemetry.facts import ModelCall, RunFacts
from agentkit.telemetry.guard import failed
from agentkit.telemetry.log_events import DETAILS, EXCEPTION, LogEvents, exception_attributes
from agentkit.telemetry.metrics import Metrics
from agentkit.telemetry.semconv import GenAI
from agentkit.telemetry.settings import DROP, Kind, Telemetry
from agentkit.telemetry.spans import Recorded, SpanReporter, resumed
from agentkit.watch import Outcome

if TYPE_CHECKING:
    from opentelemetry._logs import LogRecord

__all__ = ["DetailedReporter"]

_OF_REQUESTS: Final[frozenset[Kind]] = frozenset({"system", "input", "output"})


@dataclass(slots=True)
class _Said:
    """The content of one request, redacted; empty where it is left out."""

    system: list[dict[str, Any]]
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    definitions: list[dict[str, Any]]


_KEYS: Final = {
    "system": GenAI.SYSTEM,
    "inputs": GenAI.INPUT_MESSAGES,
    "outputs": GenAI.OUTPUT_MESSAGES,
    "definitions": GenAI.TOOL_DEFINITIONS,
}


class DetailedReporter(SpanReporter):
    """Records one run as spans, metrics and events of the Logs API."""

    def __init__(
        self, settings: Telemetry, tracer: Tracer | None, metrics: Metrics | None, events: LogEvents | None
    ) -> None:
        """Record one run.

        Args:
            settings: What is recorded.
            tracer: Makes the spans; None: none are made.
            metrics: Counts; None: nothing is counted.
            events: Writes events; None: none are written.
        """
        super().__init__(settings, tracer, metrics)
        self._log = events
        self._capture = settings.capture()
        self._details = events is not None and emits_events(settings.emit_events, self._capture)
        self._own = events if settings.event_signal != "span" else None

    # ---- the run

    def run_started(self, facts: RunFacts) -> otel.Context | None:
        """As `SpanReporter`, and as an event."""
        context = super().run_started(facts)
        if facts.resumed:
            self._tell("agentkit.resume", resumed(facts), context)
        return context

    def run_ended(self, facts: RunFacts, outcome: Outcome) -> None:
        """As `SpanReporter`, and as an event."""
        for name, attributes in told.run_events(outcome):
            self._tell(name, attributes, self._context)
        super().run_ended(facts, outcome)

    def happened(self, facts: RunFacts, event: Event) -> None:
        """As `SpanReporter`, and as an event."""
        super().happened(facts, event)
        if self._is_shown(event):
            self._tell(told.event_name(event), told.event_attributes(event), None, event.level)

    def _note(self, span: Span, name: str, attributes: dict[str, Any]) -> None:
        if self._own is None or self._settings.event_signal == "both":
            super()._note(span, name, attributes)

    def _tell(self, name: str, attributes: dict[str, Any], context: otel.Context | None, level: int = 20) -> None:
        if self._own is not None:
            self._own.write(self._own.made(name, attributes, context, level))

    # ---- requests to models

    def model_ended(self, facts: RunFacts, call: ModelCall) -> None:
        """As `SpanReporter`, with content and events."""
        recorded: Recorded | None = call.recorded
        if recorded is not None:
            try:
                self._detail(facts, call, recorded)
            except Exception as error:  # the span has to end all the same
                failed("DetailedReporter.model_ended", error, self)
        super().model_ended(facts, call)

    def _detail(self, facts: RunFacts, call: ModelCall, recorded: Recorded) -> None:
        span = recorded.span
        record: LogRecord | None = None
        if self._log is not None and self._details:
            given = {**told.model_start(call, facts), **told.model_end(call)}
            if recorded.nested is not None:
                given = {**recorded.nested.attributes(), **given}
            record = self._log.made(DETAILS, given, recorded.context)
        said = self._said(call)
        if said is not None and self._is_hooked(said, span, record):
            self._put(said, span, record)
        if self._log is not None and record is not None:
            self._log.write(record)
        if self._log is not None and call.error is not None and not call.cancelled:
            failure = exception_attributes(call.error, self._text(call.error))
            self._log.write(self._log.made(EXCEPTION, failure, recorded.context, level=30))

    def _said(self, call: ModelCall) -> _Said | None:
        """The content, if anybody wants it."""
        if not (self._captures or (self._details and self._capture.on_events) or self._settings.content_hook):
            return None
        return _Said(
            self._redacted("system", content.system(call.messages)),
            self._redacted("input", content.input_messages(call.messages)),
            self._redacted("output", content.output_messages(call.reply) if call.reply is not None else []),
            self._redacted("input", content.definitions(call.parameters)),
        )

    def _redacted(self, kind: Kind, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = content.redacted(self._settings, kind, value, {}) if value else value
        return [] if kept is DROP else kept

    def _is_hooked(self, said: _Said, span: Span | None, record: LogRecord | None) -> bool:
        """Let the hook see and change the content; False if it fails, since it may be what makes it harmless."""
        if (hook := self._settings.content_hook) is None:
            return True
        try:
            hook.on_completion(
                inputs=said.inputs,
                outputs=said.outputs,
                system_instruction=said.system,
                tool_definitions=said.definitions,
                span=span,
                log_record=record,
            )
        except Exception as error:
            failed("content_hook", error, self)
            return False
        return True

    def _put(self, said: _Said, span: Span | None, record: LogRecord | None) -> None:
        """The content where it is wanted: as structure on the event, on the span in the form that was chosen."""
        kept = {key: value for name, key in _KEYS.items() if (value := getattr(said, name))}
        if span is not None and span.is_recording() and self._captures:
            span.set_attributes({key: content.on_span(self._settings, value) for key, value in kept.items()})
        if record is not None and self._capture.on_events:
            most = self._settings.max_content_chars
            shown = {key: content.shortened(value, most) for key, value in kept.items()}
            record.attributes = {**(record.attributes or {}), **shown}

    def _write(self, span: Span, kind: Kind, key: str, value: Any, **info: Any) -> None:
        # What a request holds is written when it is over, after the hook; who has a hook trusts to nothing else.
        of_run = span is self._span and self._settings.content_hook is None
        if of_run or kind not in _OF_REQUESTS:
            super()._write(span, kind, key, value, **info)
