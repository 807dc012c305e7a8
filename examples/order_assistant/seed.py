"""Fill an empty database with the demo shop: the same rows for the same seed, always."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

from examples.order_assistant.seed_data import (
    CARRIERS,
    CUSTOMERS,
    DEMO_ORDERS,
    HUBS,
    IMPORT_HUBS,
    PRODUCTS,
    REVIEWS,
    DemoOrder,
)

__all__ = ["REFERENCE_DATE", "SEED", "create_tables", "fill"]

REFERENCE_DATE = date(2026, 3, 16)
"""The shop's "today". All other dates are counted back from it, so a demo never goes stale."""
SEED = 20260316

_HISTORY_DAYS = 180
_RANDOM_ORDERS = 96
_NUMBERS_PER_DAY = 13
_PRICE = {product.sku: {"EUR": product.eur, "USD": product.usd, "CNY": product.cny} for product in PRODUCTS}
_PERSON = {f"C-{1001 + index}": person for index, person in enumerate(CUSTOMERS)}

# The tracking events of a parcel in each state, oldest first.
_JOURNEYS = {
    "shipped": ("picked_up", "sorting_centre", "out_for_delivery"),
    "customs": ("picked_up", "customs"),
    "failed": ("picked_up", "sorting_centre", "out_for_delivery", "delivery_failed"),
    "delivered": ("picked_up", "sorting_centre", "out_for_delivery", "delivered"),
}
_STORED_STATUS = {"shipped": "shipped", "customs": "shipped", "failed": "shipped"}
_LIKES = {1: "bad", 2: "bad", 3: "fair", 4: "good", 5: "good"}


@dataclass(frozen=True)
class _Numbered:
    """An order with its number and total."""

    number: str
    plan: DemoOrder

    @property
    def placed_on(self) -> date:
        return REFERENCE_DATE - timedelta(days=self.plan.days_ago)

    @property
    def currency(self) -> str:
        return _PERSON[self.plan.customer_id].currency

    @property
    def paid(self) -> int:
        return sum(_PRICE[sku][self.currency] * quantity for sku, quantity in self.plan.lines)


def create_tables(connection: sqlite3.Connection) -> None:
    """Run `schema.sql` statement by statement, inside the caller's transaction."""
    statement = ""
    for line in Path(__file__).with_name("schema.sql").read_text(encoding="utf-8").splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def fill(connection: sqlite3.Connection, seed: int = SEED) -> None:
    """Insert the demo data, inside the caller's transaction.

    Args:
        connection: A connection to a database that has the tables and no rows.
        seed: Start of the random numbers; equal seeds give equal rows.
    """
    rng = random.Random(seed)
    connection.execute("INSERT INTO settings VALUES ('today', ?)", (REFERENCE_DATE.isoformat(),))
    _fill_people(connection, rng)
    _fill_products(connection, rng)
    for order in _numbered([*DEMO_ORDERS, *_random_orders(rng)]):
        _fill_order(connection, order)
        if order.plan.state not in ("processing", "cancelled"):
            _fill_shipment(connection, order, rng)
    _fill_reviews(connection, rng)


def _fill_people(connection: sqlite3.Connection, rng: random.Random) -> None:
    for customer_id, person in _PERSON.items():
        joined = REFERENCE_DATE - timedelta(days=_HISTORY_DAYS + rng.randrange(20, 900))
        connection.execute(
            "INSERT INTO customers VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                customer_id,
                person.name,
                person.email,
                person.locale,
                person.currency,
                person.address,
                joined.isoformat(),
            ),
        )


def _fill_products(connection: sqlite3.Connection, rng: random.Random) -> None:
    for product in PRODUCTS:
        connection.execute(
            "INSERT INTO products VALUES (?, ?, ?, ?, ?, ?)",
            (
                product.sku,
                product.name,
                product.name_zh,
                product.category,
                product.keywords,
                rng.choice((0, 4, 12, 60)),
            ),
        )
        prices = [(product.sku, currency, minor) for currency, minor in _PRICE[product.sku].items()]
        connection.executemany("INSERT INTO prices VALUES (?, ?, ?)", prices)


def _random_orders(rng: random.Random) -> Iterator[DemoOrder]:
    others = [customer_id for customer_id in _PERSON if customer_id not in {order.customer_id for order in DEMO_ORDERS}]
    for _ in range(_RANDOM_ORDERS):
        days_ago = rng.randrange(_HISTORY_DAYS)
        skus = rng.sample([product.sku for product in PRODUCTS], rng.choice((1, 1, 2, 3)))
        state, refunded = "delivered", rng.choices(("no", "part", "full"), (12, 1, 1))[0]
        if days_ago < 2:
            state, refunded = "processing", "no"
        elif days_ago < 8:
            state, refunded = rng.choice(("shipped", "customs")), "no"
        elif rng.random() < 0.05:
            state, refunded = "cancelled", "full"
        yield DemoOrder(
            rng.choice(others), days_ago, state, tuple((sku, rng.choice((1, 1, 1, 2))) for sku in skus), refunded
        )


def _numbered(plans: list[DemoOrder]) -> Iterator[_Numbered]:
    """Give numbers that rise with the date; of one day the demo orders come first, so theirs never change."""
    used: Counter[int] = Counter()
    for plan in sorted(plans, key=lambda plan: -plan.days_ago):
        day = _HISTORY_DAYS - plan.days_ago
        yield _Numbered(f"ORD-{20000 + day * _NUMBERS_PER_DAY + used[day]}", plan)
        used[day] += 1


def _fill_order(connection: sqlite3.Connection, order: _Numbered) -> None:
    plan = order.plan
    status = _STORED_STATUS.get(plan.state, plan.state)
    connection.execute(
        "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)",
        (order.number, plan.customer_id, order.placed_on.isoformat(), status, order.currency, order.paid),
    )
    for position, (sku, quantity) in enumerate(plan.lines, start=1):
        row = (order.number, position, sku, quantity, _PRICE[sku][order.currency])
        connection.execute("INSERT INTO order_lines VALUES (?, ?, ?, ?, ?)", row)
    if plan.refunded != "no":
        minor = order.paid if plan.refunded == "full" else order.paid // 4
        refunded_on = min(order.placed_on + timedelta(days=9), REFERENCE_DATE)
        connection.execute(
            "INSERT INTO refunds (order_number, minor, reason, created_on, idempotency_key) VALUES (?, ?, ?, ?, ?)",
            (order.number, minor, "arranged by phone", refunded_on.isoformat(), f"seed:{order.number}"),
        )


def _fill_shipment(connection: sqlite3.Connection, order: _Numbered, rng: random.Random) -> None:
    locale = _PERSON[order.plan.customer_id].locale
    journey = _JOURNEYS[order.plan.state]
    shipped = order.placed_on + timedelta(days=1)
    # Hours between events, stretched so that the last one never lies after the reference date.
    available = (datetime.combine(REFERENCE_DATE, time(9)) - datetime.combine(shipped, time(8))) / timedelta(hours=1)
    step = max(1.0, min(26.0, available / len(journey)))
    moments = [datetime.combine(shipped, time(8)) + timedelta(hours=step * index) for index in range(len(journey))]
    delivered = moments[-1].date().isoformat() if journey[-1] == "delivered" else None
    expected = delivered or (REFERENCE_DATE + timedelta(days=rng.choice((1, 2, 3)))).isoformat()
    tracking = f"{rng.choice('ABCDEFGH')}{rng.randrange(10**9, 10**10)}"
    connection.execute(
        "INSERT INTO shipments VALUES (?, ?, ?, ?, ?, ?)",
        (tracking, order.number, rng.choice(CARRIERS[locale]), shipped.isoformat(), expected, delivered),
    )
    hubs = IMPORT_HUBS[locale] if "customs" in journey else HUBS[locale]
    for position, (event, moment) in enumerate(zip(journey, moments, strict=True), start=1):
        place = hubs[min(position, len(hubs)) - 1]
        row = (tracking, position, moment.isoformat(sep=" ", timespec="minutes"), place, event)
        connection.execute("INSERT INTO tracking_events VALUES (?, ?, ?, ?, ?)", row)


def _fill_reviews(connection: sqlite3.Connection, rng: random.Random) -> None:
    for product in PRODUCTS:
        for customer_id in rng.sample(sorted(_PERSON), rng.randrange(5, 11)):
            rating = min(5, max(1, product.liked + rng.choice((-2, -1, 0, 0, 0, 1))))
            body = rng.choice(REVIEWS[_PERSON[customer_id].locale, _LIKES[rating]])
            written = REFERENCE_DATE - timedelta(days=rng.randrange(1, _HISTORY_DAYS))
            connection.execute(
                "INSERT INTO reviews (sku, customer_id, rating, body, written_on) VALUES (?, ?, ?, ?, ?)",
                (product.sku, customer_id, rating, body, written.isoformat()),
            )
