"""Logging with structlog: a logger that fits into whatever the application has set up, and a set-up for those without.

Importing agentkit configures nothing. `configure` is for applications; the library never calls it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from contextlib import AbstractContextManager
from typing import Any, Final

from opentelemetry.trace import format_span_id, format_trace_id, get_current_span

from agentkit.errors import MissingDependency

try:
    import structlog
except ImportError as missing:
    raise MissingDependency("structlog", "otel", "agentkit.logging") from missing

__all__ = ["configure", "get_logger", "in_context"]

_RESERVED: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


def get_logger(name: str = "agentkit") -> Any:
    """A structlog logger whose records go through the standard library's loggers, handlers and levels.

    Args:
        name: The name of the standard logger beneath.
    """
    return structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            _with_trace,
            _unreserved,
            structlog.stdlib.render_to_log_kwargs,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def in_context(**fields: Any) -> AbstractContextManager[Any]:
    """Fields that every record of the same context carries, as long as it goes through structlog."""
    bound: AbstractContextManager[Any] = structlog.contextvars.bound_contextvars(**fields)
    return bound


def configure(*, json: bool | None = None, level: str | int = "INFO") -> None:
    """Set up logging for an application: one handler on the root logger, to standard error.

    Records of agentkit, of the application's structlog and of every other library come out in one form, with the run,
    the agent, the thread and the trace that they belong to.

    Args:
        json: One JSON object per line; or lines for people. Default: JSON unless standard error is a terminal.
        level: The least level that is written.

    Raises:
        ValueError: If there is no such level.
    """
    as_json = not sys.stderr.isatty() if json is None else json
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _with_trace,
    ]
    if as_json:  # without the frames' variables, which hold prompts
        tracebacks = structlog.processors.ExceptionRenderer(
            structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        )
        last: list[Any] = [tracebacks, structlog.processors.JSONRenderer(ensure_ascii=False)]
    else:
        plain = structlog.dev.plain_traceback
        last = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
    )
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=level, force=True)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _with_trace(logger: Any, method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the current span's ids, under the names that OpenTelemetry gives them in other logs than its own."""
    at = get_current_span().get_span_context()
    if at.is_valid:
        fields.setdefault("trace_id", format_trace_id(at.trace_id))
        fields.setdefault("span_id", format_span_id(at.span_id))
        fields.setdefault("trace_flags", f"{at.trace_flags:02x}")
    return fields


def _unreserved(logger: Any, method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Rename what a record has already; the standard library would raise a `KeyError`."""
    for key in _RESERVED.intersection(fields):
        fields[f"{key}_"] = fields.pop(key)
    return fields
