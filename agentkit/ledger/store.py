"""`Ledger`: the record of effects, for tools that take part in it and operators who read it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from agentkit import clock
from agentkit.errors import (
    InvalidSettlement,
    NotJournaled,
    UnknownEffect,
)
from agentkit.ledger.entries import Effect, Settlement, Status
from agentkit.ledger.journal import Journal
from agentkit.ledger.outcomes import as_result, dumps

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Ledger", "Transaction"]

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


class Ledger(Journal):
    """The record of effects in one database: SQLite, PostgreSQL, or whatever else SQLAlchemy speaks to.

    Usable from any thread, event loop and process at once. The tables `agentkit_effects` and `agentkit_effects_served`
    are made at first use; nothing is connected before.

    Args:
        where: A URL (`"sqlite:///effects.db"`, `"postgresql://user:password@host/database"`, `"memory:"`), or a
            SQLAlchemy `Engine`, for example the one of your application, so that tools can take part in the ledger's
            transactions.

    Raises:
        InvalidStoreUrl: If the URL cannot be read.
        MissingDependency: If SQLAlchemy or the database's driver is missing; the message names the extra.
    """

    def close(self) -> None:
        """Close the connections of a ledger that was opened by its URL. An engine of yours stays as it is."""
        if self._closer is not None:
            self._closer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ---- for tools

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """The running call's transaction: what is written in it, and that the call took effect, are committed together.

        For a tool that writes to the ledger's own database. An exception that leaves the block undoes both.

        Yields:
            A SQLAlchemy `Connection`, in a transaction that is committed at the end of the block. Do not commit it.

        Raises:
            NotJournaled: Outside of a call that an `EffectLedger` with this ledger records, or the second time in one.
            EffectSuperseded: If another attempt at the effect was begun meanwhile. Nothing is written.
            LedgerUnavailable: If the database cannot be reached.
        """
        claim = self._claim()
        if claim.used:
            raise NotJournaled("the call has had its transaction")
        claim.used = True
        try:
            with self._table.committing(claim) as claim.connection:
                yield claim.connection
            claim.committed = True
        finally:
            claim.connection = None

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Transaction]:
        """As `transaction`, for async tools: a thread of its own does the work, and the loop goes on.

        Yields:
            A `Transaction`; write with `await transaction.run_sync(function, ...)`.
        """
        thread, context = ThreadPoolExecutor(1, "agentkit-ledger"), copy_context()
        run: Any = partial(asyncio.get_running_loop().run_in_executor, thread, context.run)  # type: ignore[arg-type]
        scope = self.transaction()
        try:
            try:
                connection = await asyncio.shield(run(scope.__enter__))
            except asyncio.CancelledError as error:
                thread.submit(context.run, _undo, scope, error)  # once it has been entered
                raise
            try:
                yield Transaction(connection, run)
            except BaseException as error:
                await asyncio.shield(run(_undo, scope, error))
                raise
            await asyncio.shield(run(scope.__exit__, None, None, None))
        finally:
            thread.shutdown(wait=False)

    def record(self, result: Any) -> None:
        """In a transaction: record what the tool is about to return, to be given again should the process die first.

        Without it, a call that was committed just before a crash is known to have taken effect, but not its result.

        Args:
            result: As the tool returns it.

        Raises:
            NotJournaled: Outside of `transaction`.
            UnrecordableResult: If it cannot be given again as what it is.
        """
        claim = self._claim()
        if claim.connection is None:
            raise NotJournaled("`record` belongs inside of its block")
        call = claim.call
        claim.result = dumps(as_result(result, call.tool, str(call.call_id)), call.tool)

    # ---- for operators

    def in_doubt(self, *, started_before: timedelta = timedelta(minutes=15)) -> list[Effect]:
        """The effects of which nobody knows whether they happened, oldest first.

        Args:
            started_before: A call that was started longer ago than this and has no end is listed too: its process
                probably died. Choose more than the slowest tool takes. Default: 15 minutes.
        """
        return self._table.open_since(_ago(started_before))

    def effects(self, *, status: Status | None = None, thread_id: str | None = None, limit: int = 100) -> list[Effect]:
        """Entries, the latest first.

        Args:
            status: Only those. Default: all.
            thread_id: Only those of calls of this thread. Default: all.
            limit: At most so many. Default: 100.
        """
        return self._table.latest(status, thread_id, limit)

    def get(self, key: str) -> Effect:
        """An entry by its key.

        Raises:
            UnknownEffect: If there is none.
        """
        if (found := self._table.read(key)) is None:
            raise UnknownEffect(key)
        return found

    def served(self, key: str) -> list[dict[str, Any]]:
        """Which calls were given the recorded result of an effect instead of being executed, oldest first."""
        return self._table.served(key)

    def settle(self, key: str, settlement: Settlement) -> Effect:
        """Settle a doubt: from now on the effect counts as done, or as not done and free to be executed.

        Args:
            key: The effect's key.
            settlement: What became of it.

        Returns:
            The entry as it is now.

        Raises:
            UnknownEffect: If there is no such effect.
            InvalidSettlement: If it is not open any more, or the outcome is `"unknown"`.
        """
        found = self.get(key)
        if settlement.outcome == "unknown":
            raise InvalidSettlement("'unknown' settles nothing; leave it open.")
        if not self.settle_attempt(found, settlement):
            raise InvalidSettlement(f"the effect {key!r} is not in doubt; it is {self.get(key).status!r}.")
        return self.get(key)

    def prune(self, older_than: timedelta, *, dry_run: bool = False) -> int:
        """Delete entries that ended longer ago than this. Open ones stay, however old.

        A call whose entry is gone is a new one: keep entries for as long as a thread may be resumed, and for as long as
        an effect that the application names (`key=`) must not happen again.

        Args:
            older_than: The age.
            dry_run: Only count. Default: no.

        Returns:
            How many entries.
        """
        return self._table.prune(_ago(older_than), dry_run=dry_run)

    async def ain_doubt(self, *, started_before: timedelta = timedelta(minutes=15)) -> list[Effect]:
        """As `in_doubt`."""
        return await asyncio.to_thread(partial(self.in_doubt, started_before=started_before))

    async def aget(self, key: str) -> Effect:
        """As `get`."""
        return await asyncio.to_thread(self.get, key)

    async def aserved(self, key: str) -> list[dict[str, Any]]:
        """As `served`."""
        return await asyncio.to_thread(self.served, key)

    async def asettle(self, key: str, settlement: Settlement) -> Effect:
        """As `settle`."""
        return await asyncio.to_thread(self.settle, key, settlement)

    async def aprune(self, older_than: timedelta, *, dry_run: bool = False) -> int:
        """As `prune`."""
        return await asyncio.to_thread(partial(self.prune, older_than, dry_run=dry_run))


class Transaction:
    """A call's transaction in async code."""

    def __init__(self, connection: Connection, run: Callable[..., Any]) -> None:
        """Wrap the connection; `run` calls a function in its thread."""
        self._connection = connection
        self._run = run

    async def run_sync(
        self, function: Callable[Concatenate[Connection, P], ResultT], *args: P.args, **kwargs: P.kwargs
    ) -> ResultT:
        """Call a function with the connection, in the transaction's thread; its result comes back.

        Args:
            function: `function(connection, ...)`, with a SQLAlchemy `Connection`.
            args: What else it takes.
            kwargs: What else it takes, by name.
        """
        result: ResultT = await self._run(partial(function, self._connection, *args, **kwargs))
        return result


def _undo(scope: AbstractContextManager[Any], error: BaseException) -> None:
    try:
        scope.__exit__(type(error), error, error.__traceback__)
    except BaseException as raised:
        if raised is not error:
            raise


def _ago(age: timedelta) -> datetime:
    return datetime.fromtimestamp(clock.wall(), UTC) - age
