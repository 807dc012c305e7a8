"""What a middleware does with the ledger: ask for the right to execute a call, and record what came of it.

These calls block, so async code makes them in a thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import finalize

from agentkit.errors import EffectSuperseded, InvalidStoreUrl, LedgerUnavailable, MissingDependency, NotJournaled
from agentkit.events import emit
from agentkit.ledger.entries import Call, Claim, Effect, Found, Settlement, judge
from agentkit.ledger.outcomes import as_result, dumps

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from agentkit.ledger.table import Table

__all__ = ["Journal"]

_open: ContextVar[tuple[tuple[Journal, Claim], ...]] = ContextVar("agentkit_open_effects", default=())


class Journal:
    """The entries of one database, as calls come and go."""

    def __init__(self, where: str | Engine) -> None:
        """Use this database; nothing is connected yet."""
        self._table = _table(where)
        # an engine of the caller's is theirs to close
        self._closer = finalize(self, self._table.engine.dispose) if isinstance(where, str) else None

    def __repr__(self) -> str:
        """The ledger with its database, without a password."""
        return f"Ledger({self._table.name!r})"

    @property
    def engine(self) -> Engine:
        """The engine, for tables of your own beside the ledger's."""
        return self._table.engine

    def claim(self, call: Call) -> Claim | Found:
        """Ask for the right to execute a call.

        Returns:
            The right, which nobody else has; or what is known of the effect and forbids it.

        Raises:
            LedgerUnavailable: If the database cannot be reached: then the call must not be executed.
        """
        while True:
            if self._table.insert(call):
                return Claim(call, 1)
            if (found := self._table.read(call.key)) is None:
                continue  # pruned, or taken back, in this moment
            verdict = judge(found, call)
            if verdict != "run":
                if verdict == "doubt" and found.status == "started":
                    self._table.doubt(found)
                return Found(found, verdict)
            if self._table.again(call, found):
                return Claim(call, found.attempt + 1)

    def finish(self, claim: Claim, result: Any, *, failed: bool) -> None:
        """Record the result of an execution.

        Raises:
            EffectSuperseded: If another attempt was begun meanwhile and both may have taken effect.
            UnrecordableResult: If the result cannot be recorded. That the effect happened is.
        """
        status = "failed" if failed and not claim.committed else "done"
        try:
            kept = dumps(result, claim.call.tool)
        except TypeError:
            self._write(claim, status, None)
            raise
        self._write(claim, status, kept)

    def _write(self, claim: Claim, status: str, outcome: str | None) -> None:
        try:
            is_ours = self._table.finish(claim, status, outcome)
        except LedgerUnavailable as error:  # the result is known and goes on; who looks here later finds a doubt
            self._log(claim, error)
            return
        if not is_ours and not claim.call.repeatable and status == "done":
            raise EffectSuperseded(claim.call.tool, claim.call.key, happened=not claim.call.transactional)

    def break_off(self, claim: Claim, error: Exception) -> None:
        """Record that an execution ended with an exception: a transactional tool is undone, any other in doubt."""
        status = "failed" if claim.call.transactional else "in_doubt"
        try:
            self._table.break_off(claim, status, type(error).__name__)
        except LedgerUnavailable as unavailable:  # the tool's own error is what the caller has to see
            self._log(claim, unavailable)

    def take_back(self, claim: Claim) -> None:
        """Record that an execution paused before it was committed: it will begin anew."""
        try:
            self._table.forget(claim)
        except LedgerUnavailable as error:
            self._log(claim, error)

    def settle_attempt(self, found: Effect, settlement: Settlement) -> bool:
        """Settle a doubt about this attempt; False if there is none any more."""
        done = settlement.outcome == "done"
        outcome = None
        if done and settlement.result is not None:
            outcome = dumps(as_result(settlement.result, found.tool, str(found.call_id)), found.tool)
        return self._table.settle(found, "done" if done else "failed", outcome, settlement.by)

    def serve(self, call: Call) -> None:
        """Record that a call was given the recorded result."""
        self._table.serve(call)

    @contextmanager
    def opened(self, claim: Claim) -> Iterator[None]:
        """Make a claim the running call's, so that its tool finds its transaction."""
        token = _open.set((*_open.get(), (self, claim)))
        try:
            yield
        finally:
            _open.reset(token)

    def is_open(self, call: Call) -> bool:
        """Whether the running call is recorded already: by another middleware, further out, in the same database."""
        return any(claim.call.key == call.key and self._is_beside(ledger) for ledger, claim in _open.get())

    def _is_beside(self, other: Journal) -> bool:
        url = self.engine.url
        return other.engine is self.engine or (bool(url.database) and other.engine.url == url)

    def _log(self, claim: Claim, error: LedgerUnavailable) -> None:
        tool, failed = claim.call.tool, type(error).__name__
        text = f"the end of a call of {tool} could not be recorded: {failed}"
        emit("ledger.unrecorded", text, level=logging.ERROR, tool=tool, effect_key=claim.call.key, error_type=failed)

    def _claim(self) -> Claim:
        for ledger, claim in reversed(_open.get()):
            if ledger is self:
                return claim
        raise NotJournaled("no call is being recorded here")


def _table(where: str | Engine) -> Table:
    shown = where.partition(":")[0] if isinstance(where, str) else "an engine"
    extra = "postgres" if shown.startswith("postgres") else "sqlite"
    try:
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError

        from agentkit.ledger.table import Table, open_engine
    except ImportError:
        raise MissingDependency("sqlalchemy", extra, "a ledger") from None
    if not isinstance(where, str):
        return Table(where)
    try:
        return Table(open_engine(where))
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise InvalidStoreUrl(f"{shown}:***", "SQLAlchemy cannot read it, or knows no such database") from None
    except ModuleNotFoundError as missing:
        if extra == "postgres":
            raise MissingDependency("psycopg[binary,pool]", extra, "a ledger in PostgreSQL") from None
        raise InvalidStoreUrl(f"{shown}:***", f"the package {missing.name} for it is not installed") from None
