"""Which signals the application has asked for: decided once per run, so that nothing is gathered for nobody."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

from opentelemetry import metrics, trace

from agentkit._compat import is_placeholder
from agentkit.telemetry.metrics import Metrics
from agentkit.telemetry.settings import Telemetry
from agentkit.telemetry.spans import SpanReporter

__all__ = ["reporter"]


def _installed() -> str:
    try:
        return version("agentkit")
    except PackageNotFoundError:  # a checkout on the path
        return "0"


_VERSION: Final = _installed()


def reporter(settings: Telemetry) -> SpanReporter | None:
    """Who records a run; None if the application has set up neither spans nor metrics."""
    if not settings.enabled:
        return None
    tracers = settings.tracer_provider or trace.get_tracer_provider()
    meters = settings.meter_provider or metrics.get_meter_provider()
    traced = not isinstance(tracers, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
    metered = not (isinstance(meters, metrics.NoOpMeterProvider) or is_placeholder(meters))
    if not traced and not metered:
        return None
    return SpanReporter(
        settings,
        tracers.get_tracer("agentkit", _VERSION) if traced else None,
        Metrics.of(meters, settings.metrics_semconv, _VERSION) if metered else None,
    )
