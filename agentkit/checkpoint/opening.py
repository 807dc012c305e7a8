"""`open`: from a URL to a saver."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from agentkit.checkpoint.saver import Saver
from agentkit.checkpoint.serde import TypedSerializer
from agentkit.checkpoint.url import parse
from agentkit.errors import MissingDependency

__all__ = ["open"]

# What a kind of store needs: the packages by the names they are imported and installed by, and where its saver is.
_NEEDS: Final = {
    "sqlite": {"langgraph.checkpoint.sqlite": "langgraph-checkpoint-sqlite", "sqlalchemy": "sqlalchemy"},
    "postgres": {
        "psycopg": "psycopg",
        "psycopg_pool": "psycopg-pool",
        "langgraph.checkpoint.postgres": "langgraph-checkpoint-postgres",
        "sqlalchemy": "sqlalchemy",
    },
}


def open(
    url: str,
    *,
    types: Iterable[Any] = (),
    aliases: Mapping[str, type] | None = None,
    pool_size: int = 10,
    timeout: float = 30.0,
) -> Saver:
    """Open a store for threads; its tables are made, or brought up to date, at once.

    Args:
        url: `sqlite:///agent.db` (relative to the current folder), `sqlite:////absolute/agent.db`,
            `postgresql://user:password@host/database`, or `memory:` (gone with the process).
        types: Classes whose instances the state holds, beyond those that `create_agent` finds in its schemas; what
            their fields hold is found by itself.
        aliases: Classes by the full names (`"shop.Order"`) they were stored under before they were renamed or moved.
        pool_size: The greatest number of database connections for checkpoints, and of threads that serve async callers.
        timeout: Seconds to wait for a connection, or for another process that writes to the same file.

    Raises:
        InvalidStoreUrl: If the URL does not name a store.
        MissingDependency: If a package is missing; the message names the extra that brings it.
        StoreUnreachable: If there is no such server or folder, or it does not answer.
        StoreReadOnly: If it cannot be written.
    """
    parsed = parse(url)
    extra = "postgres" if parsed.kind == "postgres" else "sqlite"
    for module, package in _NEEDS[extra].items():
        try:
            importlib.import_module(module)
        except ImportError:
            raise MissingDependency(package, extra, parsed.shown) from None
    store: Any = importlib.import_module(f"agentkit.checkpoint.{extra}")
    kind = store.PostgresStore if extra == "postgres" else store.SqliteStore
    saver: Saver = kind(parsed, TypedSerializer(types, aliases), pool_size, timeout)
    return saver
