"""The bank: accounts and transfers in a SQLite file. Each transfer has a key, and a key is booked once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Bank", "Refused"]

_SCHEMA = """
create table if not exists account (name text primary key, cents integer not null check (cents >= 0));
create table if not exists transfer (key text primary key, recipient text not null, cents integer not null);
"""
_OPENING = {"house": 500_000, "ann": 0, "ben": 12_000, "cleo": 98_000}


class Refused(ValueError):
    """A transfer that the bank does not make."""


class Bank:
    """Accounts by name; all transfers come from the house's account."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._open() as db:
            db.executescript(_SCHEMA)
            db.executemany("insert or ignore into account values (?, ?)", _OPENING.items())

    def transfer(self, key: str, recipient: str, amount: float) -> str:
        """Book a transfer; the same key again books nothing and says the same."""
        cents = round(amount * 100)
        with self._open() as db:
            if cents <= 0:
                raise Refused("an amount must be more than 0")
            if db.execute("select 1 from account where name = ?", [recipient]).fetchone() is None:
                raise Refused(f"there is no account {recipient!r}; there are {', '.join(_OPENING)}")
            if db.execute("select 1 from transfer where key = ?", [key]).fetchone() is None:
                if self._balance(db, "house") < cents:
                    raise Refused("the house does not have that much")
                db.execute("insert into transfer values (?, ?, ?)", [key, recipient, cents])
                db.execute("update account set cents = cents - ? where name = 'house'", [cents])
                db.execute("update account set cents = cents + ? where name = ?", [cents, recipient])
        return f"{amount:,.2f} transferred to {recipient}"

    def balances(self) -> dict[str, float]:
        """What is on each account."""
        with self._open() as db:
            return {name: cents / 100 for name, cents in db.execute("select name, cents from account order by name")}

    def transfers(self) -> list[tuple[str, float]]:
        """What was transferred, in order: to whom and how much."""
        with self._open() as db:
            rows = db.execute("select recipient, cents from transfer order by rowid")
            return [(recipient, cents / 100) for recipient, cents in rows]

    @staticmethod
    def _balance(db: sqlite3.Connection, name: str) -> int:
        return int(db.execute("select cents from account where name = ?", [name]).fetchone()[0])

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self._path)
        try:
            with db:
                yield db
        finally:
            db.close()
