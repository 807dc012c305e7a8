"""The same checkpoint store, opened again and again as a new process would."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver


@contextmanager
def opener(store: str) -> Iterator[Callable[[], BaseCheckpointSaver[Any]]]:
    """A function that opens the same store again and again, each time as a new process would."""
    if store == "memory":
        first = InMemorySaver()
        yield lambda: _reread(first)
        return
    import pytest

    sqlite = pytest.importorskip(
        "langgraph.checkpoint.sqlite", reason="langgraph-checkpoint-sqlite is not installed (extra: sqlite)"
    )
    with TemporaryDirectory() as folder:
        connections: list[sqlite3.Connection] = []

        def open_again() -> BaseCheckpointSaver[Any]:
            connections.append(sqlite3.connect(Path(folder, "threads.db"), check_same_thread=False))
            return cast("BaseCheckpointSaver[Any]", sqlite.SqliteSaver(connections[-1]))

        try:
            yield open_again
        finally:
            for connection in connections:
                connection.close()


def _reread(saver: InMemorySaver) -> InMemorySaver:
    """A saver of its own over the same serialised bytes."""
    again = InMemorySaver(serde=saver.serde)
    again.storage, again.writes, again.blobs = saver.storage, saver.writes, saver.blobs
    return again
