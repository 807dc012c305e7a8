"""The ledger's tables, on any database of SQLAlchemy's. Each change is one statement that names what it found.

Every transaction begins with a write, so that SQLite never has to turn a reader into a writer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import QueuePool
from sqlalchemy.schema import CreateIndex, CreateTable

from agentkit import clock
from agentkit.errors import EffectSuperseded, LedgerUnavailable
from agentkit.ledger.entries import Call, Claim, Effect, fingerprint
from agentkit.ledger.outcomes import loads

__all__ = ["Table", "open_engine"]

_BUSY: Final = 10.0  # seconds that a writer waits for another one, in SQLite


class _Utc(sa.types.TypeDecorator[datetime]):
    """A time with its zone, also where the database has none."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is None or value.tzinfo is not None:
            return value
        return value.replace(tzinfo=UTC)


_META = sa.MetaData()
_EFFECTS = sa.Table(
    "agentkit_effects",
    _META,
    sa.Column("key", sa.String(36), primary_key=True),
    sa.Column("call_key", sa.String(36), nullable=False),
    sa.Column("effect_name", sa.Text),
    sa.Column("thread_id", sa.Text),
    sa.Column("call_id", sa.Text),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("args", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("status", sa.String(8), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("outcome", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("settled_by", sa.Text),
    sa.Column("started_at", _Utc, nullable=False),
    sa.Column("finished_at", _Utc),
)
_BY_STATUS = sa.Index("agentkit_effects_by_status", _EFFECTS.c.status, _EFFECTS.c.started_at)
_SERVED = sa.Table(
    "agentkit_effects_served",
    _META,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("key", sa.String(36), nullable=False, index=True),
    sa.Column("call_key", sa.String(36), nullable=False),
    sa.Column("thread_id", sa.Text),
    sa.Column("call_id", sa.Text),
    sa.Column("served_at", _Utc, nullable=False),
)
_OPEN: Final = ("started", "in_doubt")


def open_engine(url: str) -> sa.Engine:
    """An engine of the ledger's own.

    Args:
        url: As `agentkit.checkpoint.open` takes it, or any of SQLAlchemy's.
    """
    parsed = sa.make_url("sqlite://" if url == "memory:" else url)
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite":
        return sa.create_engine(parsed, pool_pre_ping=True, hide_parameters=True)
    in_memory = parsed.database in (None, "", ":memory:")
    # A database in memory lives in its connection, so there is one, for one user at a time.
    pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0} if in_memory else {}
    arguments = {"timeout": _BUSY, "check_same_thread": False}
    engine = sa.create_engine(parsed, hide_parameters=True, connect_args=arguments, **pool)
    if not in_memory:
        sa.event.listen(engine, "connect", _use_wal)
    return engine


def _use_wal(connection: Any, record: Any) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # a claim outlives a power cut, or it is worth nothing


def _now() -> datetime:
    return datetime.fromtimestamp(clock.wall(), UTC)


class Table:
    """The entries of one database."""

    def __init__(self, engine: sa.Engine) -> None:
        """Use this engine; the tables are made at first use."""
        self.engine = engine
        self.name = engine.url.render_as_string(hide_password=True)
        self._lock = Lock()
        self._made = False

    @contextmanager
    def writing(self, doing: str) -> Iterator[sa.Connection]:
        """A short transaction of the ledger's own.

        Raises:
            LedgerUnavailable: If the database does not do it.
        """
        try:
            self._make()
            with self.engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise self._unavailable(doing, error) from getattr(error, "orig", None)

    def _unavailable(self, doing: str, error: SQLAlchemyError) -> LedgerUnavailable:
        cause = error.orig if isinstance(error, DBAPIError) else error
        return LedgerUnavailable(self.name, doing, type(cause).__name__)

    def _make(self) -> None:
        with self._lock:
            if self._made:
                return
            try:
                self._create()
            except DBAPIError:  # another process was at it in the same moment
                self._create()
            self._made = True

    def _create(self) -> None:
        with self.engine.begin() as connection:
            for table in _META.sorted_tables:
                connection.execute(CreateTable(table, if_not_exists=True))
                for index in table.indexes:
                    connection.execute(CreateIndex(index, if_not_exists=True))

    # ---- one call

    def insert(self, call: Call) -> bool:
        """Begin the first attempt; False if the effect has an entry."""
        try:
            with self.writing("record the call") as connection:
                connection.execute(_EFFECTS.insert().values(key=call.key, attempt=1, **_beginning(call)))
        except IntegrityError:
            return False
        return True

    def again(self, call: Call, found: Effect) -> bool:
        """Begin another attempt; False if the entry is no longer what was found."""
        with self.writing("record the call") as connection:
            begun = sa.update(_EFFECTS).where(*_as_found(found)).values(attempt=found.attempt + 1, **_beginning(call))
            return bool(connection.execute(begun).rowcount)

    def finish(self, claim: Claim, status: str, outcome: str | None) -> bool:
        """Record what came of an attempt; False if another one was begun meanwhile."""
        values = {"status": status, "outcome": outcome, "finished_at": _now()}
        with self.writing("record the result") as connection:
            return bool(connection.execute(sa.update(_EFFECTS).where(*_of(claim)).values(values)).rowcount)

    def break_off(self, claim: Claim, status: str, error: str) -> None:
        """Record that an attempt ended with an exception, unless it was committed before."""
        values = {"status": status, "error": error, "finished_at": _now()}
        with self.writing("record the failure") as connection:
            open_one = (*_of(claim), _EFFECTS.c.status == "started")
            connection.execute(sa.update(_EFFECTS).where(*open_one).values(values))

    def forget(self, claim: Claim) -> None:
        """Take an attempt back that paused before it was committed."""
        with self.writing("record the pause") as connection:
            connection.execute(sa.delete(_EFFECTS).where(*_of(claim), _EFFECTS.c.status == "started"))

    @contextmanager
    def committing(self, claim: Claim) -> Iterator[sa.Connection]:
        """A transaction that records the effect as done, and holds whatever else is done in it.

        Raises:
            EffectSuperseded: If another attempt was begun meanwhile; nothing is written.
            LedgerUnavailable: If the transaction cannot be begun.
        """
        with self._connected() as connection, connection.begin():
            self._mark_done(connection, claim)
            yield connection
            if claim.result is not None:
                connection.execute(sa.update(_EFFECTS).where(*_of(claim)).values(outcome=claim.result))

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        try:
            connection = self.engine.connect()
        except SQLAlchemyError as error:
            raise self._unavailable("begin a transaction", error) from getattr(error, "orig", None)
        with connection:
            yield connection

    def _mark_done(self, connection: sa.Connection, claim: Claim) -> None:
        """Write the end first: from here on no other attempt can begin, until the transaction ends."""
        done = sa.update(_EFFECTS).where(*_of(claim), _EFFECTS.c.status == "started")
        try:
            marked = connection.execute(done.values(status="done", finished_at=_now())).rowcount
        except SQLAlchemyError as error:
            raise self._unavailable("begin a transaction", error) from getattr(error, "orig", None)
        if not marked:
            raise EffectSuperseded(claim.call.tool, claim.call.key, happened=False)

    # ---- entries

    def read(self, key: str) -> Effect | None:
        """The entry of an effect."""
        with self.writing("read an entry") as connection:
            row = connection.execute(sa.select(_EFFECTS).where(_EFFECTS.c.key == key)).one_or_none()
        return None if row is None else _effect(row)

    def open_since(self, before: datetime) -> list[Effect]:
        """Entries in doubt, and those that were started before a time and have no end."""
        found = sa.select(_EFFECTS).where(
            sa.or_(
                _EFFECTS.c.status == "in_doubt", sa.and_(_EFFECTS.c.status == "started", _EFFECTS.c.started_at < before)
            )
        )
        with self.writing("read its entries") as connection:
            return [_effect(row) for row in connection.execute(found.order_by(_EFFECTS.c.started_at))]

    def latest(self, status: str | None, thread_id: str | None, limit: int) -> list[Effect]:
        """Entries, the latest first."""
        found = sa.select(_EFFECTS).order_by(_EFFECTS.c.started_at.desc()).limit(limit)
        for column, wanted in ((_EFFECTS.c.status, status), (_EFFECTS.c.thread_id, thread_id)):
            found = found if wanted is None else found.where(column == wanted)
        with self.writing("read its entries") as connection:
            return [_effect(row) for row in connection.execute(found)]

    def doubt(self, found: Effect) -> None:
        """Record that nobody knows what became of a started attempt."""
        with self.writing("record a doubt") as connection:
            connection.execute(sa.update(_EFFECTS).where(*_as_found(found)).values(status="in_doubt"))

    def settle(self, found: Effect, status: str, outcome: str | None, by: str | None) -> bool:
        """Settle a doubt about an attempt; False if the entry is no longer open, or another attempt was begun."""
        where = (_EFFECTS.c.key == found.key, _EFFECTS.c.attempt == found.attempt, _EFFECTS.c.status.in_(_OPEN))
        values = {"status": status, "outcome": outcome, "settled_by": by, "finished_at": _now()}
        with self.writing("settle a doubt") as connection:
            return bool(connection.execute(sa.update(_EFFECTS).where(*where).values(values)).rowcount)

    def serve(self, call: Call) -> None:
        """Record that a call was given the recorded result."""
        row = {"key": call.key, "call_key": call.call_key, "thread_id": call.thread_id, "call_id": call.call_id}
        with self.writing("record who was given a result") as connection:
            connection.execute(_SERVED.insert().values(served_at=_now(), **row))

    def served(self, key: str) -> list[dict[str, Any]]:
        """Who was given the recorded result of an effect."""
        with self.writing("read its entries") as connection:
            rows = connection.execute(sa.select(_SERVED).where(_SERVED.c.key == key).order_by(_SERVED.c.id))
            return [{name: value for name, value in row._mapping.items() if name != "id"} for row in rows]

    def prune(self, before: datetime, *, dry_run: bool) -> int:
        """Delete entries that ended before a time, never open ones; how many."""
        ended = sa.and_(_EFFECTS.c.status.not_in(_OPEN), _EFFECTS.c.finished_at < before)
        with self.writing("prune its entries") as connection:
            if dry_run:
                return int(connection.execute(sa.select(sa.func.count()).where(ended)).scalar_one())
            keys = sa.select(_EFFECTS.c.key).where(ended)
            connection.execute(sa.delete(_SERVED).where(_SERVED.c.key.in_(keys)))
            return int(connection.execute(sa.delete(_EFFECTS).where(ended)).rowcount)


def _beginning(call: Call) -> dict[str, Any]:
    return {
        "call_key": call.call_key,
        "effect_name": call.effect_name,
        "thread_id": call.thread_id,
        "call_id": call.call_id,
        "tool": call.tool,
        "args": call.args_json,
        "fingerprint": fingerprint(call.args_json),
        "status": "started",
        "outcome": None,
        "error": None,
        "started_at": _now(),
        "finished_at": None,
    }


def _of(claim: Claim) -> tuple[Any, ...]:
    return (_EFFECTS.c.key == claim.call.key, _EFFECTS.c.attempt == claim.attempt)


def _as_found(found: Effect) -> tuple[Any, ...]:
    return (_EFFECTS.c.key == found.key, _EFFECTS.c.attempt == found.attempt, _EFFECTS.c.status == found.status)


def _effect(row: Any) -> Effect:
    kept = dict(row._mapping)
    outcome = kept.pop("outcome")
    return Effect(args=json.loads(kept.pop("args")), outcome=None if outcome is None else loads(outcome), **kept)
