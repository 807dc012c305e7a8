"""What is recorded, and where it goes: the options of `Tracing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, TracerProvider

from agentkit.errors import ConfigurationError
from agentkit.telemetry.capture import MODES, Capture, Mode, asked_for

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider, LogRecord

__all__ = ["DROP", "ContentHook", "Kind", "Redact", "Telemetry"]

Kind: TypeAlias = Literal["input", "output", "system", "tool_args", "tool_result", "exception"]


class _Drop:
    """What a redactor returns for content that must not be recorded."""

    def __repr__(self) -> str:
        return "DROP"


DROP: Final = _Drop()
"""Returned by a redactor: leave this content out."""

Redact: TypeAlias = Callable[[Kind, Any, Mapping[str, Any]], Any]
"""`redact(kind, value, info)`: what is recorded in place of the value, or `DROP`."""


class ContentHook(Protocol):
    """Told of the content of each request to a model; takes the arguments that the official `CompletionHook` takes."""

    def on_completion(
        self,
        *,
        inputs: list[dict[str, Any]],
        outputs: list[dict[str, Any]],
        system_instruction: list[dict[str, Any]],
        tool_definitions: list[dict[str, Any]] | None = None,
        span: Span | None = None,
        log_record: LogRecord | None = None,
    ) -> None:
        """Upload or change content; what is recorded is what the lists hold afterwards.

        Args:
            inputs: The history, in the conventions' shape, redacted.
            outputs: The reply; empty if the request failed.
            system_instruction: The system prompt as parts.
            tool_definitions: The tools that were offered.
            span: The request's span, for references to what was uploaded; None if none is made.
            log_record: The event that is about to be written, if one is.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """What is recorded, and where it goes. The default records no content at all."""

    enabled: bool = True
    """Whether anything is recorded."""

    tracer_provider: TracerProvider | None = None
    """Where spans go. Default: the application's global provider."""

    meter_provider: MeterProvider | None = None
    """Where metrics go. Default: the application's global provider."""

    logger_provider: LoggerProvider | None = None
    """Where events go that are records of OpenTelemetry's Logs API: failed requests, and what `emit_events` and
    `event_signal` ask for. Default: the application's global provider."""

    capture_content: bool | Mode | None = None
    """Whether messages, system prompt and tool definitions are put on spans (with arguments and results), on events
    (see `emit_events`) or on both: `"NO_CONTENT"`, `"SPAN_ONLY"`, `"EVENT_ONLY"`, `"SPAN_AND_EVENT"`; True is
    `"SPAN_ONLY"`. Default: what the variable `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says, else no."""

    emit_events: bool | None = None
    """Whether each request is also an event `gen_ai.client.inference.operation.details`. Default: what the variable
    `OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT` says, else yes if content is captured on events."""

    content_hook: ContentHook | None = None
    """Told of the content of each request, whatever is captured or sampled; see `ContentHook`. If it fails, the content
    of that request is left out."""

    content_format: Literal["json", "structured"] = "json"
    """Content as a JSON string, which viewers read, or as structured attribute values."""

    max_content_chars: int = 20_000
    """Characters kept of one text; longer ones are cut inside the structure, so that it stays valid."""

    redact: Redact | None = None
    """Called with content before it is cut and written; see `Redact`. If it fails, the content is left out."""

    exception_messages: bool = False
    """Whether the text of an exception becomes the description of a span's error status."""

    model_spans: bool = True
    """Whether `chat` spans and their metrics are recorded. False where a provider's own instrumentation does it."""

    suppress_nested: bool = True
    """Whether a provider's instrumentation is asked to be silent around the agent's own model calls."""

    hook_spans: bool = False
    """Whether each call of a middleware's hook is a span, and is timed as `agentkit.hook.duration`."""

    event_signal: Literal["span", "log", "both"] = "span"
    """What agentkit's own events (gates, retries, pauses, ...) become: events of a span, records of the Logs API."""

    gate_events: Literal["non_allow", "all"] = "non_allow"
    """Which decisions of gates become events of a span. All are counted."""

    resume: Literal["link", "parent"] = "link"
    """Whether a resumed run is a trace of its own, linked to the paused one, or goes on with the paused one's."""

    agent_usage: Literal["semconv", "aggregated", "off"] = "semconv"
    """Token sums on the agent's span: under the names of the conventions; under `agentkit.aggregated_usage.*`, for
    viewers that add up every span; or none."""

    metrics_semconv: Literal["current", "next", "both"] = "current"
    """Names of the model metrics: as the official instrumentations emit them, as the conventions' head renames them."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ConfigurationError: If an option has a value that it does not know.
        """
        known: Mapping[str, tuple[str, ...]] = {
            "content_format": ("json", "structured"),
            "event_signal": ("span", "log", "both"),
            "gate_events": ("non_allow", "all"),
            "resume": ("link", "parent"),
            "agent_usage": ("semconv", "aggregated", "off"),
            "metrics_semconv": ("current", "next", "both"),
        }
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise ConfigurationError(f"Telemetry: {name} is one of {values}, not {getattr(self, name)!r}.")
        if isinstance(self.capture_content, str) and self.capture_content not in MODES:
            raise ConfigurationError(f"Telemetry: capture_content is one of {MODES}, not {self.capture_content!r}.")
        if self.max_content_chars < 1:
            raise ConfigurationError(f"Telemetry: max_content_chars is at least 1, not {self.max_content_chars}.")

    def captures(self) -> bool:
        """Whether content goes on spans."""
        return self.capture().on_spans

    def capture(self) -> Capture:
        """Where content goes."""
        return asked_for(self.capture_content)
