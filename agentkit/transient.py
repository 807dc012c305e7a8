"""Which failures pass by themselves, and how long a server asks to wait: read from any provider's exceptions.

Nothing is imported for it: clients' exceptions are known by the name of their class, statuses by their attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Any, Final, TypeAlias

from langchain_core.exceptions import ModelError

from agentkit import clock
from agentkit.errors import UnreadableReply

__all__ = ["RetryOn", "is_transient", "matches", "retry_after", "status_of"]

RetryOn: TypeAlias = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]
"""Which errors are retried: exception types, or a function that says so."""

# A corrupt chunk is a JSONDecodeError; TruncatedReply and ToolTimeout are a ConnectionError and a TimeoutError.
_TYPES: Final = (TimeoutError, ConnectionError, JSONDecodeError, UnreadableReply)
_CLASSES: Final = frozenset(
    {
        ("aiohttp", "ClientConnectionError"),
        ("aiohttp", "ClientPayloadError"),
        ("anthropic", "APIConnectionError"),
        ("anyio", "BrokenResourceError"),
        ("anyio", "ClosedResourceError"),
        ("botocore", "ConnectionError"),
        ("httpcore", "NetworkError"),
        ("httpcore", "RemoteProtocolError"),
        ("httpcore", "TimeoutException"),
        ("httpx", "NetworkError"),
        ("httpx", "RemoteProtocolError"),
        ("httpx", "TimeoutException"),
        ("httpx2", "NetworkError"),
        ("httpx2", "RemoteProtocolError"),
        ("httpx2", "TimeoutException"),
        ("openai", "APIConnectionError"),
        ("requests", "ChunkedEncodingError"),
        ("requests", "ConnectionError"),
        ("requests", "Timeout"),
        ("urllib3", "ProtocolError"),
        ("urllib3", "TimeoutError"),
    }
)
_STATUSES: Final = frozenset({408, 425, 429})
_UNPAID: Final = "insufficient_quota"  # a 429 that no wait mends


def is_transient(error: Exception) -> bool:
    """Whether a failure may pass by itself: a time-out, a lost connection, HTTP 429 or 5xx, a reply cut short.

    A group of exceptions is transient if all of them are.
    """
    if isinstance(error, ExceptionGroup):
        return all(is_transient(one) for one in error.exceptions)
    if getattr(error, "code", None) == _UNPAID:
        return False
    if (status := status_of(error)) is not None:
        return status in _STATUSES or 500 <= status < 600
    if isinstance(error, ModelError):
        return error.is_retryable
    names = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(error).__mro__}
    return isinstance(error, _TYPES) or bool(names & _CLASSES)


def matches(error: Exception, retry_on: RetryOn) -> bool:
    """Whether an error is one of those that are retried."""
    if isinstance(retry_on, type | tuple):
        return isinstance(error, retry_on)
    return retry_on(error)


def status_of(error: Exception) -> int | None:
    """The HTTP status that an exception stands for, if any."""
    response = getattr(error, "response", None)
    found = (
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        getattr(error, "status", None),
        getattr(error, "code", None),
    )
    return next((status for status in found if isinstance(status, int) and 100 <= status < 600), None)


def retry_after(error: Exception) -> float | None:
    """Seconds that the server asks to wait, from the `Retry-After` header (seconds or a date) of the error's response.

    None if it does not ask, or what it says cannot be read.
    """
    headers = _headers(getattr(error, "response", None)) or _headers(error)
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return max(0.0, milliseconds / 1000)
    text = headers.get("retry-after")
    if (seconds := _number(text)) is not None:
        return max(0.0, seconds)
    try:
        date = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    # a date without a zone is Greenwich time, as HTTP has it
    moment = date.replace(tzinfo=UTC) if date.tzinfo is None else date
    return max(0.0, moment.timestamp() - clock.wall())


def _headers(holder: Any) -> Mapping[str, str]:
    headers = getattr(holder, "headers", None)
    if headers is None or not hasattr(headers, "items"):
        return {}
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if number == number else None  # not a number: "nan"
