"""The database of the crash runs: threads, the record of effects, and how a doubt about one is settled."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, Literal

from sqlalchemy import event, text

from agentkit import checkpoint
from agentkit.ledger import Doubt, Ledger, Settlement
from agentkit.middleware import EffectLedger
from tests.crash.world import Events, Outside

__all__ = ["JOURNALS", "Journal", "journal_of", "limit", "opened", "payments", "reported"]

Journal = Literal["none", "look", "tell", "transaction"]
JOURNALS: Final[tuple[Journal, ...]] = ("none", "look", "tell", "transaction")
"""How effects are recorded: not at all; with doubts that are settled by a look outside; with doubts that the model is
told of; or in one transaction with the effect itself, which leaves no doubt."""


@contextmanager
def opened(url: str, events: Events) -> Iterator[checkpoint.Saver]:
    """Open the database as a new process does; each statement is an event, as far as it can be watched."""
    with checkpoint.open(url, pool_size=4) as saver:
        events.around(saver, "put", "put_writes", "get_tuple")
        events.around(saver.leases, "take", "release")
        event.listen(
            saver.engine, "before_cursor_execute", lambda *_: events.happen("before a statement of the ledger")
        )
        event.listen(saver.engine, "commit", lambda *_: events.happen("before a commit"))
        event.listen(saver.engine, "checkout", lambda *_: events.check_out(+1))
        event.listen(saver.engine, "checkin", lambda *_: events.check_out(-1))
        if isinstance(connection := getattr(saver, "conn", None), sqlite3.Connection):
            events.is_busy = lambda: connection.in_transaction
            connection.set_trace_callback(lambda _: events.happen("in a transaction of the saver"))
        yield saver


def limit(saver: checkpoint.Saver, room: int | None) -> None:
    """Let the file grow by so many pages, and no more: SQLite then says what it says when a disk is full."""
    if room is not None:
        connection: sqlite3.Connection = saver.conn  # type: ignore[attr-defined]  # of an SQLite store
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + room}")


class Journaled(Ledger):
    """A ledger that tools know how to take part in, or not."""

    takes_part = False


def journal_of(saver: checkpoint.Saver, kind: Journal, outside: Outside, events: Events) -> EffectLedger | None:
    """The middleware that records effects, if any."""
    if kind == "none":
        return None
    ledger = Journaled(saver.engine)
    ledger.takes_part = kind == "transaction"
    events.around(ledger, "claim", "finish", "settle_attempt")
    if ledger.takes_part:
        with saver.engine.begin() as connection:
            connection.execute(text("CREATE TABLE IF NOT EXISTS payments (trial TEXT, what TEXT)"))

    def look(doubt: Doubt) -> Settlement:
        outside.doubt(f"charge {doubt.effect.args['what']}")
        if outside.has(doubt.call.key):
            return Settlement("done", result=f"charge {doubt.effect.args['what']}", by="the crash run")
        return Settlement("not_done", by="the crash run")

    return EffectLedger(ledger, on_doubt="tell" if kind == "tell" else look)


def payments(saver: checkpoint.Saver, kind: Journal, outside: Outside) -> list[str]:
    """The effects that took place in the database itself."""
    if kind != "transaction":
        return []
    with saver.engine.connect() as connection:
        rows = connection.execute(text("SELECT what FROM payments WHERE trial = :trial"), {"trial": outside.name})
        return [what for (what,) in rows]


def reported(journal: EffectLedger | None, outside: Outside) -> list[str]:
    """The effects of this trial that the ledger says are in doubt."""
    found = journal.ledger.in_doubt(started_before=timedelta()) if journal is not None else []
    return [f"charge {effect.args['what']}" for effect in found if effect.thread_id == outside.name]
