"""Recorded spans as plain data, one JSON object per line: what is exported, shown in a terminal, or drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentkit.errors import UnreadableTrace

__all__ = ["SpanRecord", "read", "roots", "totals"]


@dataclass(slots=True)
class SpanRecord:
    """One span."""

    name: str
    trace: str
    id: str
    parent: str | None
    start: int
    """Nanoseconds since 1970."""
    end: int
    failed: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[Mapping[str, Any]] = ()
    """Each with `name`, `time` in nanoseconds, and `attributes`."""
    links: Sequence[str] = ()
    """The traces that this one goes on from."""
    children: list[SpanRecord] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start) / 1e9

    @classmethod
    def of(cls, span: Any) -> SpanRecord:
        """What the SDK hands to an exporter."""
        at = span.get_span_context()
        return cls(
            name=span.name,
            trace=f"{at.trace_id:032x}",
            id=f"{at.span_id:016x}",
            parent=f"{span.parent.span_id:016x}" if span.parent is not None and not span.parent.is_remote else None,
            start=span.start_time,
            end=span.end_time,
            failed=span.status.status_code.name == "ERROR",
            attributes=_plain(span.attributes),
            events=[{"name": e.name, "time": e.timestamp, "attributes": _plain(e.attributes)} for e in span.events],
            links=[f"{link.context.trace_id:032x}" for link in span.links],
        )

    def line(self) -> str:
        """The span as one line of JSON."""
        told = {name: getattr(self, name) for name in self.__slots__ if name != "children"}
        return json.dumps(told, ensure_ascii=False, default=str)


def _plain(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in (attributes or {}).items()}


def read(path: Path) -> list[SpanRecord]:
    """The spans of an exported file.

    Raises:
        UnreadableTrace: If it is missing, empty, or no such file.
    """
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableTrace(str(path), getattr(error, "strerror", None) or "it holds no text") from error
    if not lines:
        raise UnreadableTrace(str(path), "it is empty")
    return [_span(path, number, line) for number, line in enumerate(lines, 1)]


def _span(path: Path, number: int, line: str) -> SpanRecord:
    try:
        told = json.loads(line)
        span = SpanRecord(**told)
        if not (isinstance(span.start, int) and isinstance(span.end, int) and isinstance(span.attributes, dict)):
            raise TypeError
    except (ValueError, TypeError) as error:
        raise UnreadableTrace(str(path), f"line {number} is no span") from error
    return span


def roots(spans: Sequence[SpanRecord]) -> list[SpanRecord]:
    """The spans without a parent among them, in the order of time, each with its children."""
    known = {span.id: span for span in spans}
    found: list[SpanRecord] = []
    for span in spans:
        span.children = []
    for span in sorted(spans, key=lambda span: span.start):
        parent = known.get(span.parent or "")
        (found if parent is None else parent.children).append(span)
    return found


def totals(span: SpanRecord) -> tuple[int, int]:
    """Tokens sent and received under a span, requests counted once each."""
    counted = [one.attributes for one in _all(span) if one.attributes.get("gen_ai.operation.name") == "chat"]
    sides = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
    sent, received = (sum(int(told.get(side) or 0) for told in counted) for side in sides)
    return sent, received


def _all(span: SpanRecord) -> Iterator[SpanRecord]:
    yield span
    for child in span.children:
        yield from _all(child)
