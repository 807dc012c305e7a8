"""Where a chat model sends its requests, as far as it says so itself in a public field; nothing is guessed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, cast
from urllib.parse import urlsplit

__all__ = ["endpoint"]

_CLIENT: Final = "root_client"
_FIELDS: Final = (
    _CLIENT,  # the client of a provider's SDK, which knows its defaults
    "azure_endpoint",
    "openai_api_base",
    "anthropic_api_url",
    "base_url",
    "endpoint_url",
)
_PORTS: Final = {"http": 80, "https": 443}


def endpoint(model: Any) -> tuple[str, int] | None:
    """The host and port that a chat model sends to; None if it does not say.

    Args:
        model: The chat model.
    """
    for field in _told_by(cast(Any, type(model))):
        value = getattr(model, field)
        url = getattr(value, "base_url", None) if field == _CLIENT else value
        if url is not None and (found := _parsed(str(url))) is not None:
            return found
    return None


@lru_cache(maxsize=64)
def _told_by(cls: type) -> tuple[str, ...]:
    fields = getattr(cls, "model_fields", {})
    return tuple(field for field in _FIELDS if field in fields)


@lru_cache(maxsize=64)
def _parsed(url: str) -> tuple[str, int] | None:
    """Host and port alone: an address may hold a user, a key or a tenant."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname and port else None
