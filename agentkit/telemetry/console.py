"""Runs in the terminal and in a file, without any backend.

```python
from agentkit.telemetry import console

console.show()
agent.invoke({"messages": "hi"})
```
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Final, TextIO

from opentelemetry import trace

from agentkit.errors import MissingDependency
from agentkit.telemetry.records import SpanRecord, roots
from agentkit.telemetry.tree import tree

try:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
except ImportError as missing:
    raise MissingDependency("opentelemetry-sdk", "otel", "agentkit.telemetry.console") from missing

__all__ = ["FileExporter", "TreeConsoleExporter", "show"]

_MOST_TRACES: Final = 100  # kept while their root has not ended


class TreeConsoleExporter(SpanExporter):
    """Prints each run as a tree when it has ended."""

    def __init__(self, out: TextIO | None = None) -> None:
        """Print to a stream; default: standard error, as it is at that moment."""
        self._out = out
        self._waiting: dict[str, list[SpanRecord]] = {}
        self._lock = Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Keep spans until their root comes, then print."""
        with self._lock:
            for span in map(SpanRecord.of, spans):
                kept = self._waiting.setdefault(span.trace, [])
                kept.append(span)
                if span.parent is None:
                    del self._waiting[span.trace]
                    self._print(kept)
                elif len(self._waiting) > _MOST_TRACES:
                    del self._waiting[next(iter(self._waiting))]
        return SpanExportResult.SUCCESS

    def _print(self, spans: list[SpanRecord]) -> None:
        out = self._out or sys.stderr
        for root in roots(spans):
            for line in tree(root):
                print(line, file=out)


class FileExporter(SpanExporter):
    """Appends each span to a file, one JSON object per line: what `agentkit trace` draws."""

    def __init__(self, path: str | Path) -> None:
        """Write to a file; its folder must be there."""
        self._path = Path(path)
        self._lock = Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Append the spans."""
        lines = "".join(f"{SpanRecord.of(span).line()}\n" for span in spans)
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(lines)
        return SpanExportResult.SUCCESS


def show(*exporters: SpanExporter, provider: TracerProvider | None = None) -> TracerProvider:
    """Print each run when it has ended.

    Args:
        *exporters: Where runs go. Default: a `TreeConsoleExporter`.
        provider: The provider to add them to. Default: the application's; a new one, which becomes the application's,
            where it has none.

    Returns:
        The provider.
    """
    current = trace.get_tracer_provider()
    there = provider or (current if isinstance(current, TracerProvider) else None)
    used = there or TracerProvider()
    for exporter in exporters or (TreeConsoleExporter(),):
        used.add_span_processor(SimpleSpanProcessor(exporter))
    if there is None:
        trace.set_tracer_provider(used)
    return used
