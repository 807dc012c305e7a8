"""Threads in an SQLite file, or in memory."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

from langgraph.checkpoint.sqlite import SqliteSaver

from agentkit.checkpoint.fence import CREATE, Leases, checked_epoch
from agentkit.checkpoint.saver import Held, Saver
from agentkit.checkpoint.serde import TypedSerializer
from agentkit.checkpoint.tables import Tables
from agentkit.checkpoint.url import StoreUrl
from agentkit.errors import StoreFull, StoreReadOnly, StoreUnreachable

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["SqliteStore"]

_HAS_EPOCH: Final = "SELECT 1 FROM agentkit_leases WHERE thread_id = ? AND epoch = ?"
_NAMED: Final[dict[int, type[StoreFull | StoreReadOnly]]] = {
    sqlite3.SQLITE_FULL: StoreFull,
    sqlite3.SQLITE_READONLY: StoreReadOnly,
    sqlite3.SQLITE_PERM: StoreReadOnly,
}

T = TypeVar("T")


class SqliteStore(Saver, SqliteSaver):
    """LangGraph's SQLite saver on one connection, which its threads take in turns.

    SQLite has one writer at a time; waiting in a queue of our own is fairer, and much faster, than its polling.
    """

    serde: TypedSerializer
    tables = Tables("writes", "value")

    def __init__(self, url: StoreUrl, serde: TypedSerializer, pool_size: int, timeout: float) -> None:
        """Open the file, and make its tables if they are not there.

        Args:
            url: The file, or memory.
            serde: What values are written with.
            pool_size: How many threads serve async callers.
            timeout: Seconds to wait for another process that writes.
        """
        self.shown = url.shown
        self._timeout = timeout
        # A memory database is shared by the connections of this process that know its name.
        self._where = f"file:/agentkit-{uuid4().hex}?vfs=memdb" if url.kind == "memory" else url.target
        connect = _Connect(self._where, timeout, is_uri=url.kind == "memory")
        super().__init__(self._named_errors(connect), serde=serde)
        self.held = Held(_engine(connect, pool_size), pool_size, self.conn.close)
        self.leases = Leases(self.engine.dialect.name, self.query, self.in_thread)
        try:
            self.attempt(self._make_tables)
        except BaseException:
            self.close()
            raise

    def _make_tables(self) -> None:
        with self.lock:
            _patiently(super().setup, self._timeout)
            self.conn.execute(CREATE)

    def setup(self) -> None:
        """Nothing is left to do: the tables are there once the store is open."""

    def attempt(self, work: Callable[[], T]) -> T:
        """Do work on the store; what its driver raises becomes a named error."""
        self.refuse_if_useless()
        return self._named_errors(work)

    def _named_errors(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception as error:
            cause = getattr(error, "orig", error)  # SQLAlchemy puts the driver's inside its own
            if not isinstance(cause, sqlite3.Error):
                raise
            raise self._named(cause) from error

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """A cursor, in a transaction that holds the write lock from its start, and is undone if anything is raised."""
        with self.lock:
            cursor = self.conn.cursor()
            try:
                if transaction:
                    cursor.execute("BEGIN IMMEDIATE")
                    checked_epoch(lambda *row: cursor.execute(_HAS_EPOCH, row).fetchone() is not None)
                yield cursor
                if transaction:
                    cursor.execute("COMMIT")
            finally:
                if self.conn.in_transaction:
                    self.conn.rollback()
                cursor.close()

    def _named(self, error: sqlite3.Error) -> StoreFull | StoreReadOnly | StoreUnreachable:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest tells details
        why = str(error)
        if named := _NAMED.get(code):
            return named(self.shown, why)
        if code == sqlite3.SQLITE_CANTOPEN and Path(self._where).exists():  # a file in a folder that is read-only
            return StoreReadOnly(self.shown, why)
        if code == sqlite3.SQLITE_CANTOPEN:
            why = f"{why}; its folder must exist, and this process must be allowed to write there"
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            why = f"{why}; another process has been writing for {self._timeout:g} seconds"
        return StoreUnreachable(self.shown, why)


class _Connect:
    """Opens connections to one database, set up for several processes at once."""

    def __init__(self, where: str, timeout: float, *, is_uri: bool) -> None:
        self._where = where
        self._timeout = timeout
        self._is_uri = is_uri

    def __call__(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._where, uri=self._is_uri, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        try:
            # A commit is durable once the process is killed; a power cut may lose the last ones, never the file.
            connection.execute("PRAGMA synchronous = NORMAL")
            if not self._is_uri:
                _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL"), self._timeout)
        except BaseException:
            connection.close()
            raise
        return connection


def _patiently(work: Callable[[], Any], timeout: float) -> None:
    """Try again while other processes open the same new file: switching to WAL does not heed the busy time-out."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            work()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _engine(connect: Callable[[], sqlite3.Connection], pool_size: int) -> Engine:
    """A SQLAlchemy engine whose transactions hold the write lock from their start."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import QueuePool

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=pool_size, max_overflow=-1)

    @event.listens_for(engine, "begin")
    def _immediate(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
