"""Where a store is: a URL, taken apart without ever showing its password."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from agentkit.errors import InvalidStoreUrl

__all__ = ["StoreUrl", "parse"]

_POSTGRES: Final = ("postgresql", "postgres", "postgresql+psycopg")


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A URL that names a store."""

    kind: Literal["sqlite", "memory", "postgres"]
    target: str
    """A file's path, or what libpq connects to; it may hold a password."""
    shown: str
    """The URL for people to read."""


def parse(url: str) -> StoreUrl:
    """Take a URL apart.

    Raises:
        InvalidStoreUrl: If it does not name a store.
    """
    shown = _without_secrets(url)
    if url in ("memory:", "memory://"):
        return StoreUrl("memory", "", "memory:")
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and separator:
        return StoreUrl("sqlite", _file(rest, shown), url)
    if scheme in _POSTGRES and separator:
        return StoreUrl("postgres", f"postgresql://{rest}", _postgres(rest, shown))
    raise InvalidStoreUrl(shown, "it names no kind of store that is known")


def _file(rest: str, shown: str) -> str:
    path, _, query = rest.partition("?")
    if not path.startswith("/"):
        raise InvalidStoreUrl(shown, "the name of a file comes after three slashes")
    if query:
        raise InvalidStoreUrl(shown, "a file takes no options")
    if path[1:] in ("", ":memory:"):
        raise InvalidStoreUrl(shown, "it names no file (in memory: memory:)")
    return unquote(path[1:])


def _postgres(rest: str, shown: str) -> str:
    """The URL without its secrets; an error where it cannot be read."""
    try:
        parts = urlsplit(f"postgresql://{rest}")
        host, port = parts.hostname or "", f":{parts.port}" if parts.port else ""
    except ValueError:
        raise InvalidStoreUrl(
            shown, "its host or port cannot be read (write / @ : in a password as %2F %40 %3A)"
        ) from None
    user = f"{parts.username}@" if parts.username else ""
    return f"postgresql://{user}{host}{port}{parts.path}"


def _without_secrets(url: str) -> str:
    """As much of an unchecked URL as cannot hold a password: its scheme, and what stands behind the last @."""
    scheme, separator, rest = str(url).partition(":")
    if "@" in rest:
        return f"{scheme}:***@{rest.rpartition('@')[2].partition('?')[0]}"
    return f"{scheme}{separator}{rest.partition('?')[0]}" if scheme == "sqlite" else f"{scheme}{separator}***"
