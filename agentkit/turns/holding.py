"""Holding a thread while a turn goes on: taken, renewed, released.

A saver with `leases` (of `agentkit.checkpoint`) keeps them in its database, for all processes, and refuses the writes
of a holder that lost its lease. Other savers know none; there, turns of this process exclude each other, and no more.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Any, Final, Protocol
from uuid import uuid4
from weakref import WeakKeyDictionary

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import clock
from agentkit.errors import ConfigurationWarning, LeaseLost, ThreadBusy
from agentkit.events import emit

__all__ = ["Terms", "aheld", "held"]

_FIRST_PAUSE: Final = 0.02  # seconds between two tries to take a thread that is busy; doubled up to the last
_LAST_PAUSE: Final = 0.5


class Leases(Protocol):
    """What a saver offers as `leases`."""

    def take(self, thread_id: str, owner: str, ttl: float) -> Any:
        """Take a thread, or raise `ThreadBusy`."""
        ...

    def renew(self, lease: Any) -> Any:
        """Hold it for another `ttl`, or raise `LeaseLost`."""
        ...

    def release(self, lease: Any) -> None:
        """Give it back."""
        ...

    async def atake(self, thread_id: str, owner: str, ttl: float) -> Any:
        """As `take`."""
        ...

    async def arelease(self, lease: Any) -> None:
        """As `release`."""
        ...


@dataclass(frozen=True, slots=True)
class Terms:
    """How a thread is held."""

    thread_id: str
    owner: str
    ttl: float
    """Seconds after which a holder that does not renew is taken for dead."""
    wait: float
    """Seconds to wait for a thread that is busy."""

    @classmethod
    def of(cls, thread_id: str, owner: str | None, ttl: float, wait: float | None) -> Terms:
        """The terms as the caller gave them, or a name of its own and the time that a dead holder keeps it."""
        return cls(thread_id, owner or f"{os.getpid()}-{uuid4().hex[:12]}", ttl, ttl + 1 if wait is None else wait)


@contextmanager
def held(saver: BaseCheckpointSaver[Any], terms: Terms) -> Iterator[int | None]:
    """Hold the thread; the value is the lease's epoch, None where the saver checks none.

    Raises:
        ThreadBusy: If somebody else holds it for longer than `terms.wait`.
    """
    leases = _leases_of(saver)
    lease = None
    for pause in _pauses(terms):
        try:
            lease = leases.take(terms.thread_id, terms.owner, terms.ttl)
            break
        except ThreadBusy:
            if pause is None:
                raise
            clock.sleep(pause)
    renewal = _Renewal(leases, lease, terms.ttl)
    try:
        yield lease.epoch if lease is not None else None
    finally:
        renewal.end()
        with _told(terms):
            leases.release(renewal.lease)


@asynccontextmanager
async def aheld(saver: BaseCheckpointSaver[Any], terms: Terms) -> AsyncIterator[int | None]:
    """As `held`."""
    leases = _leases_of(saver)
    lease = None
    for pause in _pauses(terms):
        try:
            lease = await leases.atake(terms.thread_id, terms.owner, terms.ttl)
            break
        except ThreadBusy:
            if pause is None:
                raise
            await clock.asleep(pause)
    renewal = _Renewal(leases, lease, terms.ttl)
    try:
        yield lease.epoch if lease is not None else None
    finally:
        renewal.end()
        with _told(terms):
            await leases.arelease(renewal.lease)


@contextmanager
def _told(terms: Terms) -> Iterator[None]:
    """A thread that cannot be given back is no failure of its turn: the lease runs out by itself."""
    try:
        yield
    except Exception as error:
        failed = type(error).__name__
        text = f"the lease on thread {terms.thread_id!r} could not be given back: {failed}"
        emit("lease.not_released", text, level=logging.WARNING, thread=terms.thread_id, error_type=failed)


def _pauses(terms: Terms) -> Iterator[float | None]:
    """How long to sleep after each try; None after the last."""
    until = clock.monotonic() + terms.wait
    pause = _FIRST_PAUSE
    while (left := until - clock.monotonic()) > 0:
        yield min(pause, left)
        pause = min(pause * 2, _LAST_PAUSE)
    yield None


class _Renewal:
    """Renews a lease from a thread, which a busy event loop cannot keep from it."""

    def __init__(self, leases: Leases, lease: Any, ttl: float) -> None:
        self.lease = lease
        self._leases = leases
        self._every = ttl / 3
        self._over = Event()
        self._thread: Thread | None = None
        if not isinstance(leases, _InProcess):
            self._thread = Thread(target=self._renew, name="agentkit-lease", daemon=True)
            self._thread.start()

    def _renew(self) -> None:
        while not self._over.wait(self._every):
            try:
                self.lease = self._leases.renew(self.lease) or self.lease
            except LeaseLost:
                return  # the run learns of it at its next write, which the saver refuses
            except Exception:  # the database is away, and may be back before the lease ends
                continue

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()


# ---- savers without leases


@dataclass(frozen=True, slots=True)
class _Held:
    thread_id: str
    epoch: None = None


class _InProcess:
    """Leases for the turns of this process: it ends, and so do they."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._lock = Lock()

    def take(self, thread_id: str, owner: str, ttl: float) -> _Held:
        with self._lock:
            if thread_id in self._owners:
                raise ThreadBusy(thread_id, self._owners[thread_id], "it is given back")
            self._owners[thread_id] = owner
        return _Held(thread_id)

    def renew(self, lease: _Held) -> _Held:
        return lease

    def release(self, lease: _Held) -> None:
        with self._lock:
            self._owners.pop(lease.thread_id, None)

    async def atake(self, thread_id: str, owner: str, ttl: float) -> _Held:
        return self.take(thread_id, owner, ttl)

    async def arelease(self, lease: _Held) -> None:
        self.release(lease)


_IN_PROCESS: Final[WeakKeyDictionary[BaseCheckpointSaver[Any], _InProcess]] = WeakKeyDictionary()
_LOCK: Final = Lock()


def _leases_of(saver: BaseCheckpointSaver[Any]) -> Leases:
    own: Leases | None = getattr(saver, "leases", None)
    if own is not None:
        return own
    with _LOCK:
        if (known := _IN_PROCESS.get(saver)) is not None:
            return known
        made = _IN_PROCESS[saver] = _InProcess()
    if not isinstance(saver, InMemorySaver):
        warnings.warn(
            f"{type(saver).__name__} has no leases, so only the turns of this process exclude each other: another "
            "process could run the same thread at the same time. Open the saver with `agentkit.checkpoint.open`.",
            ConfigurationWarning,
            stacklevel=2,
        )
    return made
