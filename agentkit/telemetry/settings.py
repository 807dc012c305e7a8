"""What is recorded, and where it goes: the options of `Tracing`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from agentkit.errors import ConfigurationError

__all__ = ["DROP", "Kind", "Redact", "Telemetry"]

Kind: TypeAlias = Literal["input", "output", "system", "tool_args", "tool_result", "exception"]


class _Drop:
    """What a redactor returns for content that must not be recorded."""

    def __repr__(self) -> str:
        return "DROP"


DROP: Final = _Drop()
"""Returned by a redactor: leave this content out."""

Redact: TypeAlias = Callable[[Kind, Any, Mapping[str, Any]], Any]
"""`redact(kind, value, info)`: what is recorded in place of the value, or `DROP`."""

_CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS: Final = frozenset({"SPAN_ONLY", "SPAN_AND_EVENT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """What is recorded, and where it goes. The default records no content at all."""

    enabled: bool = True
    """Whether anything is recorded."""

    tracer_provider: TracerProvider | None = None
    """Where spans go. Default: the application's global provider."""

    meter_provider: MeterProvider | None = None
    """Where metrics go. Default: the application's global provider."""

    capture_content: bool | None = None
    """Whether messages, system prompt, tool definitions, arguments and results are put on spans. Default: what the
    variable `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says (`SPAN_ONLY` or `SPAN_AND_EVENT`), else no."""

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
            "gate_events": ("non_allow", "all"),
            "resume": ("link", "parent"),
            "agent_usage": ("semconv", "aggregated", "off"),
            "metrics_semconv": ("current", "next", "both"),
        }
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise ConfigurationError(f"Telemetry: {name} is one of {values}, not {getattr(self, name)!r}.")
        if self.max_content_chars < 1:
            raise ConfigurationError(f"Telemetry: max_content_chars is at least 1, not {self.max_content_chars}.")

    def captures(self) -> bool:
        """Whether content goes on spans."""
        if self.capture_content is not None:
            return self.capture_content
        return os.environ.get(_CAPTURE, "").strip().upper() in _ON_SPANS
