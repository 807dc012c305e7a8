"""Open the shop's SQLite file, creating and seeding it on first use."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import NullPool, create_engine

from agentkit.ledger import Ledger
from examples.order_assistant.seed import create_tables, fill

__all__ = ["DatabaseUnusable", "connect", "default_path", "ledger_of", "prepare", "recorded", "transaction"]

_SCHEMA_VERSION = 1
_APPLICATION_ID = 0x4F415353  # "OASS": tells our file from any other SQLite file
_LOCK_TIMEOUT = 10.0  # seconds


class DatabaseUnusable(OSError):
    """The shop's database file cannot be opened, created or recognised."""

    def __init__(self, path: Path, problem: str) -> None:
        """Say which file, what is wrong with it and what to do."""
        super().__init__(f"cannot use {path} as the shop's database: {problem}; name another file with --db PATH")
        self.path = path


def default_path() -> Path:
    """Where the shop lives unless told otherwise: the user's data directory.

    `ORDER_ASSISTANT_HOME` names another directory.
    """
    if home := os.environ.get("ORDER_ASSISTANT_HOME"):
        return Path(home).expanduser() / "shop.db"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "order-assistant" / "shop.db"


@contextmanager
def connect(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of one's own with foreign keys on, closed at the end. Outside `transaction`, it commits at once."""
    with closing(sqlite3.connect(path, timeout=_LOCK_TIMEOUT, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        yield connection


@contextmanager
def transaction(path: Path) -> Iterator[sqlite3.Connection]:
    """One write transaction: locked from its first statement, committed at the end, undone on an exception."""
    with connect(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def ledger_of(path: Path) -> Ledger:
    """The record of what the assistant's writing calls did, in tables beside the shop's."""

    def opened() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT, check_same_thread=False)
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    return Ledger(create_engine("sqlite://", creator=opened, poolclass=NullPool))


@contextmanager
def recorded(ledger: Ledger) -> Iterator[sqlite3.Connection]:
    """As `transaction`, committed together with the record that the running call took effect."""
    with ledger.transaction() as connection:
        shop: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]  # any driver's
        shop.row_factory = sqlite3.Row
        try:
            yield shop
        finally:
            shop.row_factory = None


def prepare(path: Path) -> Path:
    """Make sure that the shop's database is there and is ours.

    Any number of processes may call this at once for a file that does not exist: one of them seeds it.

    Returns:
        The path, absolute.

    Raises:
        DatabaseUnusable: The file cannot be created or opened, or holds something else.
    """
    path = path.expanduser().absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with transaction(path) as connection:
            _create_or_recognise(connection, path)
    except DatabaseUnusable:
        raise
    except (OSError, sqlite3.Error) as error:
        raise DatabaseUnusable(path, str(error)) from error
    return path


def _create_or_recognise(connection: sqlite3.Connection, path: Path) -> None:
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application == _APPLICATION_ID and version == _SCHEMA_VERSION:
        return
    if application == _APPLICATION_ID:
        raise DatabaseUnusable(path, f"it has schema version {version}, this program needs {_SCHEMA_VERSION}")
    if tables:
        raise DatabaseUnusable(path, "it is another program's database")
    create_tables(connection)
    fill(connection)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
