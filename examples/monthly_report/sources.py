"""A dozen sources, each slow: stand-ins for warehouses, billing systems and spreadsheets that answer in their own time.

Their figures are made from the month's name, so a report can be compared with another one of the same month.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

__all__ = ["SOURCES", "Source"]


@dataclass(frozen=True)
class Source:
    """Where one line of the report comes from."""

    name: str
    title: str
    read: Callable[[Random], str]

    def pull(self, month: str, seconds: float) -> str:
        """Ask the source, and wait for its answer."""
        time.sleep(seconds)
        return self.read(Random(f"{month}/{self.name}"))


def _euros(low: int, high: int) -> Callable[[Random], str]:
    return lambda dice: f"{dice.randint(low, high):,} EUR"


def _count(low: int, high: int, unit: str = "") -> Callable[[Random], str]:
    return lambda dice: f"{dice.randint(low, high):,} {unit}".strip()


def _share(low: float, high: float) -> Callable[[Random], str]:
    return lambda dice: f"{dice.uniform(low, high):.1f} %"


SOURCES = (
    Source("orders", "Orders", _count(3_000, 9_000)),
    Source("revenue", "Revenue", _euros(200_000, 700_000)),
    Source("refunds", "Refunds", _euros(4_000, 20_000)),
    Source("new_customers", "New customers", _count(400, 1_500)),
    Source("returning", "Returning customers", _share(35, 60)),
    Source("visits", "Visits to the shop", _count(90_000, 250_000)),
    Source("conversion", "Visits that became orders", _share(2, 5)),
    Source("marketing", "Spent on marketing", _euros(15_000, 60_000)),
    Source("tickets", "Support tickets", _count(150, 900)),
    Source("delivery", "Median delivery time", _count(2, 6, "days")),
    Source("stock", "Articles out of stock", _count(0, 40)),
    Source("payroll", "Payroll", _euros(90_000, 140_000)),
)
