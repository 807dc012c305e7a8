"""Checks recorded log events against OpenTelemetry's conventions for generative AI.

```python
exporter = InMemoryLogRecordExporter()
...
assert log_findings(exporter.get_finished_logs()) == []
```

Needs the OpenTelemetry SDK (`pip install 'agentkit[otel]'`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from agentkit.telemetry.log_events import DETAILS, EXCEPTION
from agentkit.telemetry.semconv import GenAI
from agentkit.testing._content_shape import shape_findings
from agentkit.testing.semconv import CONTENT, DEPRECATED, registered

__all__ = ["log_findings"]

_WARN: Final = 13
_REQUIRED: Final[Mapping[str, frozenset[str]]] = {
    DETAILS: frozenset({GenAI.OPERATION, GenAI.PROVIDER}),
    EXCEPTION: frozenset({"exception.type"}),
}
_TEXTS: Final = frozenset({"exception.message", "exception.stacktrace"})
_COMMON: Final = frozenset({GenAI.ERROR_TYPE, GenAI.SERVER_ADDRESS, GenAI.SERVER_PORT})


def log_findings(logs: Iterable[Any], *, captured: bool = False, own: str = "agentkit.") -> list[str]:
    """What breaks the conventions, a sentence each.

    Args:
        logs: What `InMemoryLogRecordExporter.get_finished_logs()` returned.
        captured: Whether content, and exceptions' texts, are allowed.
        own: Prefix of events and attributes that are nobody else's affair.
    """
    known = registered()
    found = [
        f"{log.log_record.event_name}: {finding}"
        for log in logs
        for finding in _of(log.log_record, known, captured, own)
    ]
    failed = [log.log_record for log in logs if log.log_record.event_name == EXCEPTION]
    spans = [(record.trace_id, record.span_id) for record in failed]
    return found + [f"{EXCEPTION}: a span has two" for each in sorted(set(spans)) if spans.count(each) > 1]


def _of(record: Any, known: frozenset[str], captured: bool, own: str) -> Iterator[str]:
    told: Mapping[str, Any] = record.attributes or {}
    if not record.event_name:
        yield "has no event name"
        return
    if record.event_name not in _REQUIRED and not record.event_name.startswith(own):
        yield "is no event of the conventions"
    yield from (f"lacks {name}" for name in sorted(_REQUIRED.get(record.event_name, frozenset()) - told.keys()))
    if record.event_name == EXCEPTION and record.severity_number.value != _WARN:
        yield f"has the severity {record.severity_number.name}, should be WARN"
    if record.body is not None:
        yield "has a body; what is known stands in attributes"
    for name, value in told.items():
        yield from _attribute(record.event_name, name, value, known, captured, own)


def _attribute(event: str, name: str, value: Any, known: frozenset[str], captured: bool, own: str) -> Iterator[str]:
    if name in DEPRECATED:
        yield f"{name} is deprecated"
    elif name.startswith("gen_ai."):
        if name not in known:
            yield f"{name} is no name of the conventions"
    elif name.startswith("exception."):
        if event != EXCEPTION:
            yield f"{name} belongs to {EXCEPTION}"
    elif not name.startswith(own) and name not in _COMMON:
        yield f"{name} has a foreign prefix"
    if name in CONTENT | _TEXTS and not captured:
        yield f"{name} is content, which was not asked for"
    if name in CONTENT:
        yield from shape_findings(name, value, structured=True)
