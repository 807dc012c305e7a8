"""How one trace finds another across processes: through the metadata that is stored with every checkpoint."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final

from opentelemetry import context as otel
from opentelemetry.trace import Link, Span, SpanContext, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agentkit.telemetry.facts import RunFacts
from agentkit.telemetry.semconv import Own

__all__ = ["leave", "links", "predecessor"]

_W3C: Final = TraceContextTextMapPropagator()


def leave(facts: RunFacts, span: Span) -> None:
    """Put the span's address into what is stored with the run's checkpoints."""
    metadata: MutableMapping[str, Any] = facts.run.config.setdefault("metadata", {})
    _W3C.inject(metadata, set_span_in_context(span, otel.Context()))


def predecessor(facts: RunFacts) -> SpanContext | None:
    """The span of the part of the run that paused, if it was traced."""
    if facts.saved is None:
        return None
    stored = facts.saved.metadata or {}
    carrier = {key: value for key, value in stored.items() if key in _W3C.fields and isinstance(value, str)}
    found = get_current_span(_W3C.extract(carrier, otel.Context())).get_span_context()
    return found if found.is_valid else None


def links(before: SpanContext | None) -> list[Link]:
    """The link of a resumed run."""
    return [Link(before, {Own.LINK: "resumed_from"})] if before is not None else []
