"""Leases on threads, and the fence that keeps whoever lost one from writing.

A lease is a row with an epoch that only grows. A run writes with its epoch in the config; the saver compares it with
the row in the very transaction that writes, so a process that was frozen and wakes up after somebody else took the
thread over changes nothing. All times are the database's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_core.runnables import RunnableConfig

from agentkit.errors import LeaseLost, ThreadBusy

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["EPOCH", "Lease", "Leases", "checked_epoch", "writing"]

EPOCH: Final = "agentkit_epoch"
"""The key under `configurable` that holds a run's epoch."""

CREATE: Final = """
CREATE TABLE IF NOT EXISTS agentkit_leases (
    thread_id TEXT PRIMARY KEY,
    epoch BIGINT NOT NULL,
    owner TEXT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL
)"""

_NOW: Final = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "extract(epoch from clock_timestamp())",
}
_TAKE: Final = """
INSERT INTO agentkit_leases (thread_id, epoch, owner, expires_at) VALUES (:thread_id, 1, :owner, {now} + :ttl)
ON CONFLICT (thread_id) DO UPDATE
    SET epoch = agentkit_leases.epoch + 1, owner = excluded.owner, expires_at = excluded.expires_at
    WHERE agentkit_leases.expires_at <= {now} OR agentkit_leases.owner = excluded.owner
RETURNING epoch, expires_at"""
_RENEW: Final = """
UPDATE agentkit_leases SET expires_at = {now} + :ttl WHERE thread_id = :thread_id AND epoch = :epoch
RETURNING expires_at"""
_RELEASE: Final = (
    "UPDATE agentkit_leases SET expires_at = 0, owner = '' WHERE thread_id = :thread_id AND epoch = :epoch"
)
_HELD: Final = "SELECT thread_id, epoch, owner, expires_at FROM agentkit_leases WHERE expires_at > {now}"

_writing: ContextVar[tuple[str, int] | None] = ContextVar("agentkit_writing", default=None)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a thread for a while."""

    thread_id: str
    epoch: int
    """Grows each time the thread changes hands."""
    owner: str
    expires_at: datetime
    """By the database's clock."""
    ttl: float = 0.0
    """How long it was taken for, in seconds."""


@contextmanager
def writing(config: RunnableConfig) -> Iterator[None]:
    """Whatever is written inside is checked against the epoch in the config, if it has one."""
    configurable = config["configurable"]
    epoch = configurable.get(EPOCH)
    token = _writing.set(None if epoch is None else (str(configurable["thread_id"]), int(epoch)))
    try:
        yield
    finally:
        _writing.reset(token)


def checked_epoch(has_row: Callable[[str, int], bool]) -> None:
    """Refuse to go on if what is being written carries an epoch that its thread no longer has.

    Args:
        has_row: Whether the lease of a thread has an epoch; asked in the transaction that writes.

    Raises:
        LeaseLost: If somebody else has taken the thread over.
    """
    current = _writing.get()
    if current is not None and not has_row(*current):
        raise LeaseLost(*current)


class Leases:
    """The leases on the threads of one store. Each method has an async form, named with an `a` in front."""

    def __init__(
        self,
        dialect: str,
        query: Callable[[Callable[[Connection], Any]], Any],
        in_thread: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> None:
        """Take the kind of database, what runs work in a transaction of it, and what runs a call in a thread."""
        self._now = _NOW[dialect]
        self._query = query
        self._in_thread = in_thread

    def take(self, thread_id: str, owner: str, ttl: float | timedelta = 30.0) -> Lease:
        """Take a thread, or take it over where its lease has run out.

        Args:
            thread_id: The thread.
            owner: Who takes it. The same owner may take it again at once, with the next epoch.
            ttl: Seconds, or a timedelta, until the lease runs out unless it is renewed.

        Raises:
            ThreadBusy: If another owner's lease is alive.
        """
        seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else float(ttl)
        row = self._one(_TAKE, thread_id=thread_id, owner=owner, ttl=seconds)
        if row is None:
            held = self.held().get(thread_id)
            if held is None:  # it ran out between the two statements
                return self.take(thread_id, owner, ttl)
            raise ThreadBusy(thread_id, held.owner, held.expires_at.isoformat(timespec="seconds"))
        return Lease(thread_id, row[0], owner, _time(row[1]), seconds)

    def renew(self, lease: Lease) -> Lease:
        """Let a lease run for its whole time again.

        Raises:
            LeaseLost: If somebody else has taken the thread over.
        """
        row = self._one(_RENEW, thread_id=lease.thread_id, epoch=lease.epoch, ttl=lease.ttl)
        if row is None:
            raise LeaseLost(lease.thread_id, lease.epoch)
        return replace(lease, expires_at=_time(row[0]))

    def release(self, lease: Lease) -> None:
        """Give a thread back. Nothing happens if somebody else has taken it over."""
        self._run(_RELEASE, thread_id=lease.thread_id, epoch=lease.epoch)

    def held(self) -> dict[str, Lease]:
        """The leases that are alive, by thread."""
        rows = self._run(_HELD)
        return {thread: Lease(thread, epoch, owner, _time(expires)) for thread, epoch, owner, expires in rows}

    async def atake(self, thread_id: str, owner: str, ttl: float | timedelta = 30.0) -> Lease:
        """As `take`."""
        taken: Lease = await self._in_thread(lambda: self.take(thread_id, owner, ttl))
        return taken

    async def arenew(self, lease: Lease) -> Lease:
        """As `renew`."""
        renewed: Lease = await self._in_thread(lambda: self.renew(lease))
        return renewed

    async def arelease(self, lease: Lease) -> None:
        """As `release`."""
        await self._in_thread(lambda: self.release(lease))

    async def aheld(self) -> dict[str, Lease]:
        """As `held`."""
        held: dict[str, Lease] = await self._in_thread(self.held)
        return held

    def _one(self, statement: str, **values: Any) -> Any:
        rows = self._run(statement, **values)
        return rows[0] if rows else None

    def _run(self, statement: str, **values: Any) -> list[Any]:
        from sqlalchemy import text

        clause = text(statement.format(now=self._now))

        def work(connection: Connection) -> list[Any]:
            done = connection.execute(clause, values)
            return list(done.all()) if done.returns_rows else []

        rows: list[Any] = self._query(work)
        return rows


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)
