"""What the tests of telemetry share: somewhere to record to, and the tree of what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import SpanContext

from agentkit import create_agent
from agentkit.middleware import Tracing
from agentkit.telemetry import Telemetry
from agentkit.testing import ENTRY_POINTS, EntryPoint
from agentkit.testing.semconv import SpanChecker, metric_findings
from agentkit.testing.semconv_logs import log_findings

_EXPORTER: Any = InMemoryLogRecordExporter  # it has no types


@dataclass
class Recorder:
    """Records what agents made by `create` do."""

    checker: SpanChecker = field(default_factory=SpanChecker)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(self.checker)
        self.meters = MeterProvider([self.reader])

    def tracing(self, **options: Any) -> Tracing:
        """The middleware, recording here."""
        given = {"tracer_provider": self.tracers, "meter_provider": self.meters, **self.options, **options}
        return Tracing(Telemetry(**given))

    def create(self, model: Any, tools: Any = (), *, middleware: Any = (), **more: Any) -> Any:
        """An agent that is recorded."""
        return create_agent(model, tools, middleware=[self.tracing(), *middleware], **more)

    @property
    def spans(self) -> list[ReadableSpan]:
        """What was recorded, in the order in which it started."""
        return sorted(self.checker.spans, key=lambda span: span.start_time or 0)

    def named(self, prefix: str) -> list[ReadableSpan]:
        """The spans whose names begin like this."""
        return [span for span in self.spans if span.name.startswith(prefix)]

    def tree(self) -> list[str]:
        """The spans as an indented list; siblings in the order of their names where they ran side by side."""
        return list(self._under(None, 0))

    def _under(self, parent: int | None, depth: int) -> Iterator[str]:
        mine = [span for span in self.spans if (span.parent.span_id if span.parent else None) == parent]
        for span in mine:
            told: Any = span.attributes or {}
            outcome = told.get("agentkit.outcome", "")
            mark = f" {outcome}" if outcome not in ("", "success") else ""
            error = f" {told['error.type']}" if "error.type" in told else ""
            yield f"{'  ' * depth}{span.name}{mark}{error}"
            yield from self._under(_at(span).span_id, depth + 1)

    def points(self, name: str) -> list[Any]:
        """The points of one metric, over everything recorded so far."""
        data = self.reader.get_metrics_data()
        found = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data else []
        return [point for metric in found if metric.name == name for point in metric.data.data_points]

    def findings(self) -> list[str]:
        """What breaks the conventions."""
        return self.checker.findings() + metric_findings(self.reader.get_metrics_data())


def _at(span: Any) -> SpanContext:
    found: SpanContext = span.get_span_context()
    return found


class Logs:
    """Where events go."""

    def __init__(self) -> None:
        self.exporter = _EXPORTER()
        self.provider = LoggerProvider()
        self.provider.add_log_record_processor(SimpleLogRecordProcessor(self.exporter))

    def named(self, name: str) -> list[Any]:
        """The events of a name."""
        return [log.log_record for log in self.told if log.log_record.event_name == name]

    @property
    def told(self) -> Any:
        """What was written."""
        return self.exporter.get_finished_logs()

    def findings(self, *, captured: bool = False) -> list[str]:
        """What breaks the conventions."""
        return log_findings(self.told, captured=captured)

    def text(self) -> str:
        """All of it as text."""
        return "".join(log.to_json() for log in self.told)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Somewhere to record to; the current span is none before and after."""
    yield Recorder()
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.fixture(params=ENTRY_POINTS)
def entry(request: pytest.FixtureRequest) -> EntryPoint:
    """Each of the four ways into an agent."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def logs(recorder: Any) -> Logs:
    """Where the events go of what `recorder` records."""
    made = Logs()
    recorder.options["logger_provider"] = made.provider
    return made
