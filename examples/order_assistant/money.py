"""Amounts of money as integer minor units, and their text for people."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["CURRENCIES", "Money"]

CURRENCIES = {"EUR": "€", "USD": "$", "CNY": "¥"}
"""The shop's currencies and their signs. All of them have 100 minor units."""

_TEXT = re.compile(r"(?P<sign>[€$¥])(?P<units>\d+|\d{1,3}(?:,\d{3})+)(?:\.(?P<cents>\d{2}))?")


@dataclass(frozen=True, order=True)
class Money:
    """An amount in one currency."""

    minor: int
    """The amount in minor units (cents, fen)."""
    currency: str
    """`EUR`, `USD` or `CNY`."""

    def __post_init__(self) -> None:
        """Refuse a currency the shop does not trade in."""
        if self.currency not in CURRENCIES:
            raise ValueError(f"unknown currency {self.currency!r}; the shop trades in {', '.join(CURRENCIES)}")

    def __str__(self) -> str:
        """The amount as people write it, for example `€1,249.00`."""
        units, cents = divmod(abs(self.minor), 100)
        return f"{'-' if self.minor < 0 else ''}{CURRENCIES[self.currency]}{units:,}.{cents:02d}"

    @classmethod
    def parse(cls, text: str) -> Money:
        """Read what `str()` writes; thousands separators and cents may be missing.

        Raises:
            ValueError: `text` is not an amount in one of the shop's currencies.
        """
        negative, body = text.startswith("-"), text.removeprefix("-")
        match = _TEXT.fullmatch(body)
        if match is None:
            raise ValueError(f"{text!r} is not an amount; write it like €1,249.00")
        minor = int(match["units"].replace(",", "")) * 100 + int(match["cents"] or 0)
        currency = next(code for code, sign in CURRENCIES.items() if sign == match["sign"])
        return cls(-minor if negative else minor, currency)

    def as_json(self) -> dict[str, object]:
        """The form tool results carry: text for people, minor units for arithmetic."""
        return {"text": str(self), "minor": self.minor, "currency": self.currency}
