"""Which signals the application has asked for: decided once per run, so that nothing is gathered for nobody."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from opentelemetry import metrics, trace

from agentkit._compat import is_placeholder, loggers
from agentkit.telemetry.detailed import DetailedReporter
from agentkit.telemetry.log_events import LogEvents
from agentkit.telemetry.metrics import Metrics
from agentkit.telemetry.settings import Telemetry
from agentkit.telemetry.spans import SpanReporter

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider

__all__ = ["Sinks", "is_silent", "reporter", "sinks"]

_LOGS: Final = "opentelemetry._logs"
_NO_TRACERS: Final = (trace.ProxyTracerProvider, trace.NoOpTracerProvider)


def _installed() -> str:
    try:
        return version("agentkit")
    except PackageNotFoundError:  # a checkout on the path
        return "0"


_VERSION: Final = _installed()


@dataclass(frozen=True, slots=True)
class Sinks:
    """Where the application wants spans, metrics and events; None: nowhere."""

    tracers: trace.TracerProvider | None
    meters: metrics.MeterProvider | None
    loggers: LoggerProvider | None

    def __bool__(self) -> bool:
        """Whether anything is wanted."""
        return self.tracers is not None or self.meters is not None or self.loggers is not None


def is_silent(settings: Telemetry) -> bool:
    """Whether nobody takes note; asked before each run and call, so it only looks at what there is."""
    if settings.tracer_provider or settings.meter_provider or settings.logger_provider or settings.content_hook:
        return not settings.enabled
    nowhere = (
        isinstance(trace.get_tracer_provider(), _NO_TRACERS)
        and is_placeholder(metrics.get_meter_provider())
        and (_LOGS not in sys.modules or loggers() is None)
    )
    return nowhere or not settings.enabled


def sinks(settings: Telemetry) -> Sinks:
    """What the application has set up by now."""
    if not settings.enabled:
        return Sinks(None, None, None)
    tracers = settings.tracer_provider or trace.get_tracer_provider()
    meters = settings.meter_provider or metrics.get_meter_provider()
    traced = not isinstance(tracers, _NO_TRACERS)
    metered = not (isinstance(meters, metrics.NoOpMeterProvider) or is_placeholder(meters))
    logged = settings.logger_provider or loggers()
    return Sinks(tracers if traced else None, meters if metered else None, logged)


@lru_cache(maxsize=8)
def tracer(provider: trace.TracerProvider) -> trace.Tracer:
    """Agentkit's tracer of a provider."""
    return provider.get_tracer("agentkit", _VERSION)


@lru_cache(maxsize=8)
def log_events(provider: LoggerProvider) -> LogEvents:
    """Who writes events to a provider."""
    return LogEvents(provider.get_logger("agentkit", _VERSION))


def reporter(settings: Telemetry) -> SpanReporter | None:
    """Who records a run; None if the application has set up nothing to record to."""
    found = sinks(settings)
    if not found and settings.content_hook is None:
        return None
    traced = tracer(found.tracers) if found.tracers is not None else None
    metered = Metrics.of(found.meters, settings.metrics_semconv, _VERSION) if found.meters is not None else None
    if found.loggers is None and settings.content_hook is None:
        return SpanReporter(settings, traced, metered)
    events = log_events(found.loggers) if found.loggers is not None else None
    return DetailedReporter(settings, traced, metered, events)
