"""Telemetry must never break a run: what fails in it is counted, said once, and dropped."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from opentelemetry import metrics

__all__ = ["failed", "guarded"]

P = ParamSpec("P")
R = TypeVar("R")

_LOG: Final = logging.getLogger("agentkit")
_SAID: Final[set[tuple[str, str]]] = set()


def guarded(function: Callable[P, R]) -> Callable[P, R | None]:
    """The function, giving None where it would have raised."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            failed(function.__qualname__, error, getattr(args[0], "reporter", None) if args else None)
            return None

    return call


def failed(site: str, error: Exception, reporter: Any = None) -> None:
    """Count a failure, and log it the first time that it happens at this place.

    Args:
        site: Where.
        error: What was raised; only its class is told.
        reporter: Who counts, by its `failed(site)`. Default, and if it does not: the global meter provider.
    """
    kind = type(error).__name__
    if reporter is None or not reporter.failed(site):
        counter = metrics.get_meter("agentkit").create_counter("agentkit.telemetry.errors", "{error}")
        counter.add(1, {"agentkit.site": site})
    if (site, kind) not in _SAID:
        _SAID.add((site, kind))
        _LOG.warning("telemetry failed in %s with %s; the run goes on", site, kind, extra={"event": "telemetry.error"})
