"""Threads in a PostgreSQL database."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg import errors as pg
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from agentkit._compat import DeltaSnapshot
from agentkit.checkpoint.fence import CREATE, Leases, checked_epoch
from agentkit.checkpoint.saver import Held, Saver
from agentkit.checkpoint.serde import TypedSerializer
from agentkit.checkpoint.tables import Tables
from agentkit.checkpoint.url import StoreUrl
from agentkit.errors import InvalidStoreUrl, StoreFull, StoreReadOnly, StoreUnreachable

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["PostgresStore"]

_MIGRATION_LOCK: Final = 4_728_316_095  # any number, as long as all agentkits share it
# The share lock makes whoever takes the thread over wait for this transaction, and the other way round.
_HAS_EPOCH: Final = "SELECT 1 FROM agentkit_leases WHERE thread_id = %s AND epoch = %s FOR SHARE"
_FULL: Final = (pg.DiskFull, pg.OutOfMemory, pg.ConfigurationLimitExceeded)
_READ_ONLY: Final = (pg.ReadOnlySqlTransaction, pg.InsufficientPrivilege)

T = TypeVar("T")


class _Fenced(psycopg.Connection[Any]):
    """A connection whose transactions begin by checking the epoch of what is written."""

    @contextmanager
    def transaction(self, savepoint_name: str | None = None, force_rollback: bool = False) -> Iterator[Any]:
        """See psycopg."""
        with super().transaction(savepoint_name, force_rollback) as begun:
            checked_epoch(lambda *row: self.execute(_HAS_EPOCH, row).fetchone() is not None)
            yield begun


class PostgresStore(Saver, PostgresSaver):
    """LangGraph's PostgreSQL saver on a pool, each call on a connection of its own."""

    serde: TypedSerializer
    tables = Tables("checkpoint_writes", "blob", "checkpoint_blobs")

    def __init__(self, url: StoreUrl, serde: TypedSerializer, pool_size: int, timeout: float) -> None:
        """Connect, and make the tables if they are not there.

        Args:
            url: The database.
            serde: What values are written with.
            pool_size: The greatest number of connections, and of threads that serve async callers.
            timeout: Seconds to wait for a connection.
        """
        self.shown = url.shown
        _refuse_unreadable(url)
        pool: ConnectionPool[Any] = ConnectionPool(
            url.target,
            connection_class=_Fenced,
            kwargs={"autocommit": True, "row_factory": dict_row},
            min_size=1,
            max_size=pool_size,
            timeout=timeout,
            open=False,
        )
        super().__init__(pool, serde=serde)
        # One call has one connection: LangGraph's lock, and pipelines that one connection would share, are for others.
        self.lock = nullcontext()  # type: ignore[assignment]
        self.supports_pipeline = False
        self.held = Held(_engine(url.target, pool_size), pool_size, pool.close)
        self.leases = Leases(self.engine.dialect.name, self.query, self.in_thread)
        self._pool = pool
        try:
            self._once(lambda: _migrate(url.target, timeout))
        except BaseException:
            self.close()
            raise
        pool.open()

    def setup(self) -> None:
        """Nothing is left to do: the tables are there once the store is open."""

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See `Saver.put`. Each field is packed by itself, but for what JSON brings back as it was."""
        values = {
            field: value if _stays(value) else self.serde.packed(value, field)
            for field, value in checkpoint["channel_values"].items()
        }
        return super().put(config, {**checkpoint, "channel_values": values}, metadata, new_versions)

    def attempt(self, work: Callable[[], T]) -> T:
        """Do work on the store, once more if its connection was lost; what its driver raises becomes a named error."""
        self.refuse_if_useless()
        try:
            return work()
        except Exception as error:
            if not _is_lost(error):
                self._raise_named(error)
        # Each piece of work is one transaction that can be repeated. The other idle connections may be lost as well.
        self._pool.check()
        return self._once(work)

    def _once(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception as error:
            self._raise_named(error)

    def _raise_named(self, error: Exception) -> NoReturn:
        cause = _cause(error)
        why = str(cause).strip().partition("\n")[0] or type(cause).__name__
        if isinstance(cause, _FULL):
            raise StoreFull(self.shown, why) from error
        if isinstance(cause, _READ_ONLY):
            raise StoreReadOnly(self.shown, why) from error
        if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
            raise StoreUnreachable(self.shown, why) from error
        raise error


def _stays(value: Any) -> bool:
    """Whether LangGraph's saver stores a value so that it comes back as what it is."""
    if type(value) is str:
        return value.isprintable()  # no NUL, and no half of a character, which JSON in PostgreSQL cannot hold
    return type(value) in (bool, int, type(None), DeltaSnapshot)


def _cause(error: Exception) -> Exception:
    """The driver's own error, which SQLAlchemy puts inside its own."""
    return getattr(error, "orig", error)


def _is_lost(error: Exception) -> bool:
    cause = _cause(error)
    return isinstance(cause, psycopg.OperationalError) and not isinstance(cause, (PoolTimeout, *_FULL))


def _refuse_unreadable(url: StoreUrl) -> None:
    try:
        psycopg.conninfo.conninfo_to_dict(url.target)
    except psycopg.Error:  # its text may hold the password
        raise InvalidStoreUrl(url.shown, "libpq cannot read it") from None


def _migrate(target: str, timeout: float) -> None:
    """Make or renew the tables, one process at a time."""
    with psycopg.connect(
        target, autocommit=True, row_factory=dict_row, connect_timeout=math.ceil(timeout)
    ) as connection:
        _wait_for_migration(connection, timeout)
        PostgresSaver(connection).setup()
        connection.execute(CREATE.encode())


def _wait_for_migration(connection: psycopg.Connection[Any], timeout: float) -> None:
    """Asked again and again, not waited for: a waiting statement would block the building of an index elsewhere."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        row = connection.execute("SELECT pg_try_advisory_lock(%s) AS mine", (_MIGRATION_LOCK,)).fetchone()
        if row and row["mine"]:
            return
        time.sleep(0.02)
    raise pg.LockNotAvailable("another process is still setting up the tables")


def _engine(target: str, pool_size: int) -> Engine:
    from sqlalchemy import create_engine

    return create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(target), pool_size=pool_size, pool_pre_ping=True
    )
