"""Events that are records of OpenTelemetry's Logs API: a failed request, the details of a request, agentkit's own."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import time_ns
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import context as otel

from agentkit._compat import log_records

if TYPE_CHECKING:
    from opentelemetry._logs import Logger, LogRecord

__all__ = ["DETAILS", "EXCEPTION", "LogEvents", "exception_attributes"]

DETAILS: Final = "gen_ai.client.inference.operation.details"
EXCEPTION: Final = "gen_ai.client.operation.exception"


class LogEvents:
    """Writes events to one logger."""

    def __init__(self, logger: Logger) -> None:
        """Write to this logger."""
        self._logger = logger
        self._record, self._severity = log_records()

    def made(
        self, name: str, attributes: Mapping[str, Any], context: otel.Context | None, level: int = logging.INFO
    ) -> LogRecord:
        """An event that is not written yet.

        Args:
            name: What happened.
            attributes: What is known of it: plain values, or structures of them.
            context: Where it happened. Default: here.
            level: How much it matters, as `logging` counts.
        """
        severity = self._severity(max(1, level * 4 // 10 + 1))  # 10, 20, 30, 40 are 5, 9, 13, 17
        record: LogRecord = self._record(
            timestamp=time_ns(),
            context=context or otel.get_current(),
            severity_number=severity,
            severity_text=severity.name,
            attributes=dict(attributes),
            event_name=name,
        )
        return record

    def write(self, record: LogRecord) -> None:
        """Write an event."""
        self._logger.emit(record)


def exception_attributes(error: BaseException, text: str | None) -> dict[str, str]:
    """What is told of an exception: its class, and its text and where it was raised if the text may be told.

    Args:
        error: The exception.
        text: Its text, as far as it may be told; None: not at all, and no lines of code, which hold texts too.
    """
    cls = type(error)
    named = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    if text is None:
        return {"exception.type": named}
    stack = "".join(format_exception(error)) if text == str(error) else ""
    return {"exception.type": named, "exception.message": text, **({"exception.stacktrace": stack} if stack else {})}
