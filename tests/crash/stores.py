"""The stores of the crash runs: the saver, and the ledger of effects beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["effect_ledger", "open_saver"]


@contextmanager
def open_saver(url: str) -> Iterator[Any]:
    """Open a saver as a new process does."""
    if url.startswith("sqlite"):
        import sqlite3

        from langgraph.checkpoint.sqlite import SqliteSaver

        saver = SqliteSaver(sqlite3.connect(url.removeprefix("sqlite:///"), check_same_thread=False))
        saver.setup()
        yield saver
    else:
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(url) as pg:
            pg.setup()
            yield pg


def effect_ledger(saver: Any, outside: Any, events: Any) -> list[Any]:
    return []
