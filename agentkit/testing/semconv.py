"""Checks recorded spans and metrics against OpenTelemetry's conventions for generative AI: tables, and one walk.

```python
checker = SpanChecker()
provider.add_span_processor(checker)
...
assert checker.findings() == []
```

Needs the OpenTelemetry SDK (`pip install 'agentkit[otel]'`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry import context as otel
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from agentkit.telemetry.instruments import INSTRUMENTS
from agentkit.telemetry.semconv import FORWARD, GenAI, Own
from agentkit.testing._content_shape import shape_findings

__all__ = ["CONTENT", "SPANS", "SpanChecker", "SpanRule", "metric_findings", "registered"]

DEPRECATED: Final = frozenset(
    {
        "gen_ai.system",
        "gen_ai.prompt",
        "gen_ai.completion",
        "gen_ai.usage.prompt_tokens",
        "gen_ai.usage.completion_tokens",
    }
)
"""Names of earlier conventions."""

CONTENT: Final = frozenset(
    {
        GenAI.INPUT_MESSAGES,
        GenAI.OUTPUT_MESSAGES,
        GenAI.SYSTEM,
        GenAI.TOOL_DEFINITIONS,
        GenAI.TOOL_ARGUMENTS,
        GenAI.TOOL_RESULT,
    }
)
"""What may only be there if content is captured."""

_COMMON: Final = frozenset({"error.type", "server.address", "server.port"})
_CONTROL: Final = ("GraphInterrupt", "ParentCommand", "GraphBubbleUp")


@dataclass(frozen=True, slots=True)
class SpanRule:
    """What holds for the spans of one operation."""

    kind: SpanKind
    named_by: str
    """The attribute whose value follows the operation in the span's name, where it is set."""
    required: frozenset[str]
    at_start: frozenset[str]
    """Attributes that a sampler may decide by: they are there at the start, or not at all."""


SPANS: Final[Mapping[str, SpanRule]] = {
    "invoke_agent": SpanRule(
        SpanKind.INTERNAL,
        GenAI.AGENT_NAME,
        frozenset({GenAI.OPERATION}),
        frozenset({GenAI.OPERATION, GenAI.AGENT_NAME, GenAI.REQUEST_MODEL, GenAI.CONVERSATION}),
    ),
    "chat": SpanRule(
        SpanKind.CLIENT,
        GenAI.REQUEST_MODEL,
        frozenset({GenAI.OPERATION, GenAI.PROVIDER}),
        frozenset({GenAI.OPERATION, GenAI.PROVIDER, GenAI.REQUEST_MODEL}),
    ),
    "execute_tool": SpanRule(
        SpanKind.INTERNAL,
        GenAI.TOOL_NAME,
        frozenset({GenAI.OPERATION, GenAI.TOOL_NAME}),
        frozenset({GenAI.OPERATION, GenAI.TOOL_NAME, GenAI.TOOL_TYPE, GenAI.AGENT_NAME}),
    ),
}
"""The operations that an agent in this process has."""

_TEXTS: Final = frozenset(
    {
        GenAI.OPERATION,
        GenAI.PROVIDER,
        GenAI.AGENT_NAME,
        GenAI.CONVERSATION,
        GenAI.OUTPUT_TYPE,
        GenAI.REQUEST_MODEL,
        GenAI.RESPONSE_ID,
        GenAI.RESPONSE_MODEL,
        GenAI.TOOL_NAME,
        GenAI.TOOL_TYPE,
        GenAI.TOOL_CALL_ID,
        GenAI.TOOL_DESCRIPTION,
    }
)
_DOUBLES: Final = frozenset(
    {GenAI.TEMPERATURE, GenAI.TOP_P, GenAI.FREQUENCY_PENALTY, GenAI.PRESENCE_PENALTY, GenAI.FIRST_CHUNK}
)
_LISTS: Final = frozenset({GenAI.FINISH_REASONS, GenAI.STOP})
_MCP: Final = frozenset({"mcp.method.name", "mcp.protocol.version", "mcp.session.id", "network.transport"})


def _at(span: Any) -> SpanContext:
    found: SpanContext = span.get_span_context()
    return found


def registered() -> frozenset[str]:
    """The names of the conventions: those of the installed constants package, and those known to come."""
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    return frozenset(value for value in known if isinstance(value, str)) - DEPRECATED | FORWARD.keys()


@dataclass
class SpanChecker(SpanProcessor):
    """Looks at every span that starts and ends. Also keeps them, for other questions."""

    captured: bool = False
    """Whether content is allowed."""
    own: tuple[str, ...] = ("agentkit.",)
    """Prefixes of attributes that are nobody else's affair."""
    spans: list[ReadableSpan] = field(default_factory=list)
    """The spans that ended."""
    started: dict[int, frozenset[str]] = field(default_factory=dict)

    def on_start(self, span: Span, parent_context: otel.Context | None = None) -> None:
        """Remember what a sampler could have seen."""
        self.started[_at(span).span_id] = frozenset(span.attributes or ())

    def on_end(self, span: ReadableSpan) -> None:
        """Keep the span."""
        self.spans.append(span)

    def shutdown(self) -> None:
        """Nothing to do."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held back."""
        return True

    def findings(self) -> list[str]:
        """What breaks the conventions, a sentence each."""
        known = registered()
        found = [f"{span.name}: {finding}" for span in self.spans for finding in self._of(span, known)]
        return found + list(self._of_tree())

    def _of(self, span: ReadableSpan, known: frozenset[str]) -> Iterator[str]:
        told = dict(span.attributes or {})
        yield from self._names(told, known)
        rule = SPANS.get(str(told.get(GenAI.OPERATION)))
        if rule is None and Own.HOOK in told:
            yield from _of_hook(span, told)
            return
        if rule is None:
            yield f"the operation {told.get(GenAI.OPERATION)!r} is not one of {sorted(SPANS)}"
            return
        subject = told.get(rule.named_by)
        wanted = f"{told[GenAI.OPERATION]} {subject}" if subject else str(told[GenAI.OPERATION])
        if span.name != wanted:
            yield f"should be named {wanted!r}"
        if span.kind != rule.kind:
            yield f"is {span.kind.name}, should be {rule.kind.name}"
        yield from (f"lacks {name}" for name in sorted(rule.required - told.keys()))
        at_start = self.started.get(_at(span).span_id, frozenset())
        yield from (f"sets {name} after the start" for name in sorted(rule.at_start & told.keys() - at_start))
        yield from _types(told)
        yield from _status(span, told)

    def _names(self, told: Mapping[str, Any], known: frozenset[str]) -> Iterator[str]:
        for name in told:
            if name in DEPRECATED:
                yield f"{name} is deprecated"
            elif name.startswith("gen_ai.") and name not in known:
                yield f"{name} is no name of the conventions"
            elif name in _MCP:
                if told.get(GenAI.OPERATION) != "execute_tool" or "mcp.method.name" not in told:
                    yield f"{name} belongs to a call of a tool, with mcp.method.name"
            elif not name.startswith(("gen_ai.", *self.own)) and name not in _COMMON:
                yield f"{name} has a foreign prefix"
            if name in CONTENT and not self.captured:
                yield f"{name} is content, which was not asked for"

    def _of_tree(self) -> Iterator[str]:
        """Every parent is there, and no call has two spans in one trace."""
        ids = {_at(span).span_id for span in self.spans}
        calls: set[tuple[Any, ...]] = set()
        for span in self.spans:
            if span.parent is not None and not span.parent.is_remote and span.parent.span_id not in ids:
                yield f"{span.name}: its parent was never exported"
            told = span.attributes or {}
            if told.get(GenAI.OPERATION) == "execute_tool":
                where = span.parent.span_id if span.parent else _at(span).trace_id
                call = (where, told.get(GenAI.TOOL_NAME), told.get(GenAI.TOOL_CALL_ID))
                if call in calls and told.get(GenAI.TOOL_CALL_ID) is not None:
                    yield f"{span.name}: the call {call[-1]!r} has two spans"
                calls.add(call)


def _of_hook(span: ReadableSpan, told: Mapping[str, Any]) -> Iterator[str]:
    """A hook is no operation of the conventions."""
    wanted = f"hook {told.get(Own.HOOK_OF)}.{told[Own.HOOK]}"
    if span.name != wanted:
        yield f"should be named {wanted!r}"
    if span.kind is not SpanKind.INTERNAL:
        yield f"is {span.kind.name}, should be INTERNAL"
    if GenAI.OPERATION in told:
        yield f"names the operation {told[GenAI.OPERATION]!r}; a hook is none"
    yield from _status(span, told)


def _types(told: Mapping[str, Any]) -> Iterator[str]:
    for name, value in told.items():
        if name in _TEXTS:
            wanted: Any = str
        elif name in _DOUBLES:
            wanted = float
        elif name in _LISTS:
            wanted = tuple
        elif name.startswith("gen_ai.usage.") or name == GenAI.MAX_TOKENS:
            wanted = int
        elif name in CONTENT:
            yield from shape_findings(name, value)
            continue
        else:
            continue
        if not isinstance(value, wanted) or isinstance(value, bool):
            yield f"{name} is {type(value).__name__}, should be {wanted.__name__}"


def _status(span: ReadableSpan, told: Mapping[str, Any]) -> Iterator[str]:
    status, failed = span.status.status_code, told.get(GenAI.ERROR_TYPE)
    if status is StatusCode.OK:
        yield "has the status OK; a span that did not fail has none"
    if (status is StatusCode.ERROR) != (failed is not None):
        yield f"has the status {status.name} and error.type {failed!r}"
    if span.status.description:
        yield "tells an exception's text"
    if any(str(failed).endswith(name) for name in _CONTROL):
        yield f"takes control flow ({failed}) for an error"
    for event in span.events:
        if event.name == "exception":
            yield "records an exception as a span event"


def metric_findings(data: Any) -> list[str]:
    """What breaks the table of instruments in collected metrics.

    Args:
        data: What `InMemoryMetricReader.get_metrics_data()` returned.
    """
    metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data else []
    return [f"{metric.name}: {finding}" for metric in metrics for finding in _of_metric(metric)]


def _of_metric(metric: Any) -> Iterator[str]:
    rule = INSTRUMENTS.get(metric.name)
    if rule is None:
        yield "is no instrument of the table"
        return
    if metric.unit != rule.unit:
        yield f"has the unit {metric.unit!r}, should be {rule.unit!r}"
    points: Iterable[Any] = metric.data.data_points
    for point in points:
        if rule.buckets and tuple(point.explicit_bounds) != rule.buckets:
            yield f"has the buckets {tuple(point.explicit_bounds)}"
        yield from (f"has the attribute {name}" for name in sorted(set(point.attributes) - rule.attributes))
