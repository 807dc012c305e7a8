"""What the shop can tell a customer: profile, orders, parcels, products, reviews.

Every question about an order carries the customer's id into the SQL, so another customer's order cannot be told
from one that does not exist.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from examples.order_assistant import database, refunds, search
from examples.order_assistant.errors import ShopError
from examples.order_assistant.money import Money

__all__ = ["Shop", "normalise_number"]

_ORDER_NUMBER = re.compile(r"(?:ORD)?[-#\s]*([0-9]{5})", re.IGNORECASE)
_RECENT_ORDERS = 5
_RECENT_REVIEWS = 3


def normalise_number(text: str) -> str | None:
    """The canonical form `ORD-12345` of an order number as people type it, or None if it is none."""
    match = _ORDER_NUMBER.fullmatch(unicodedata.normalize("NFKC", text).strip().lstrip("#"))
    return f"ORD-{match[1]}" if match else None


@dataclass(frozen=True)
class Shop:
    """The shop behind one database file. Safe to share between threads: each call opens its own connection."""

    path: Path
    """The SQLite file, as `database.prepare` returned it."""

    @classmethod
    def open(cls, path: str | Path) -> Shop:
        """Open the shop, creating and seeding the file on first use.

        Raises:
            DatabaseUnusable: The file cannot be opened or created.
        """
        return cls(database.prepare(Path(path)))

    def customer_id(self, text: str) -> str | None:
        """The customer that an id or a full name means; for whoever starts the assistant, not for the model."""
        with database.connect(self.path) as connection:
            for row in connection.execute("SELECT id, name FROM customers"):
                if text.strip().casefold() in (row["id"].casefold(), row["name"].casefold()):
                    return str(row["id"])
        return None

    def profile(self, customer_id: str) -> dict[str, Any]:
        """The customer's details and their latest order numbers.

        Raises:
            ShopError: `customer_not_found`.
        """
        with database.connect(self.path) as connection:
            customer = _customer(connection, customer_id)
            recent = connection.execute(
                "SELECT number, placed_on, status FROM orders WHERE customer_id = ? "
                "ORDER BY placed_on DESC, number DESC LIMIT ?",
                (customer_id, _RECENT_ORDERS),
            ).fetchall()
            return {
                **dict(customer),
                "today": _today(connection).isoformat(),
                "recent_orders": [dict(r) for r in recent],
            }

    def latest_order(self, customer_id: str) -> dict[str, Any]:
        """The customer's newest order, as `order` shows it.

        Raises:
            ShopError: `no_orders`.
        """
        with database.connect(self.path) as connection:
            row = connection.execute(
                "SELECT number FROM orders WHERE customer_id = ? ORDER BY placed_on DESC, number DESC LIMIT 1",
                (customer_id,),
            ).fetchone()
            if row is None:
                raise ShopError("no_orders", "this customer has not ordered anything yet")
            return _order(connection, customer_id, row["number"])

    def order(self, customer_id: str, number: str) -> dict[str, Any]:
        """One of the customer's orders: lines, amounts, and what could be refunded today.

        Raises:
            ShopError: `order_not_found`, also for other customers' orders.
        """
        with database.connect(self.path) as connection:
            return _order(connection, customer_id, number)

    def tracking(self, customer_id: str, number: str) -> dict[str, Any]:
        """Where an order's parcel is, newest event first.

        Raises:
            ShopError: `order_not_found`, also for other customers' orders.
        """
        with database.connect(self.path) as connection:
            order = refunds.find_order(connection, customer_id, normalise_number(number), number)
            facts: dict[str, Any] = {"number": order["number"], "status": order["status"], "events": []}
            shipment = connection.execute(
                "SELECT carrier, tracking_number, shipped_on, expected_on, delivered_on FROM shipments "
                "WHERE order_number = ?",
                (order["number"],),
            ).fetchone()
            if shipment is not None:
                events = connection.execute(
                    "SELECT happened_at, place, event FROM tracking_events WHERE tracking_number = ? "
                    "ORDER BY position DESC",
                    (shipment["tracking_number"],),
                ).fetchall()
                facts |= {**dict(shipment), "events": [dict(event) for event in events]}
            return facts

    def find_products(self, customer_id: str, query: str) -> dict[str, Any]:
        """Products that fit the words of `query`, best first, priced in the customer's currency.

        Raises:
            ShopError: `empty_query`.
        """
        with database.connect(self.path) as connection:
            currency = _customer(connection, customer_id)["currency"]
            found = search.find(_products(connection, currency), query)
            return {"query": query, "products": [_product(row) for row in found]}

    def reviews(self, customer_id: str, product: str) -> dict[str, Any]:
        """What buyers say about one product, named by SKU or in words; reviews in the customer's language first.

        Raises:
            ShopError: `product_not_found` or `product_ambiguous`.
        """
        with database.connect(self.path) as connection:
            customer = _customer(connection, customer_id)
            row = search.pick(_products(connection, customer["currency"]), product)
            reviews = connection.execute(
                "SELECT rating, body, written_on FROM reviews JOIN customers ON customers.id = customer_id "
                "WHERE sku = ? ORDER BY locale = ? DESC, written_on DESC, reviews.id",
                (row["sku"], customer["locale"]),
            ).fetchall()
            ratings = [review["rating"] for review in reviews]
            return {
                **_product(row),
                "average": round(sum(ratings) / len(ratings), 1) if ratings else None,
                "count": len(ratings),
                "by_stars": {str(stars): ratings.count(stars) for stars in range(5, 0, -1)},
                "recent": [dict(review) for review in reviews[:_RECENT_REVIEWS]],
            }

    def refund(self, customer_id: str, number: str, minor: int | None, reason: str, key: str) -> dict[str, Any]:
        """Refund an order, or part of it, once per key.

        Args:
            customer_id: Who asks.
            number: The order.
            minor: Amount in minor units of the order's currency; None refunds all that is left.
            reason: Why, in the customer's words.
            key: Names this one wish; repeating it returns the recorded refund instead of paying again.

        Raises:
            ShopError: `order_not_found`, `already_refunded`, `in_transit`, `too_late`, `bad_amount` or
                `amount_too_high`.
        """
        with database.transaction(self.path) as connection:
            return self.refund_within(connection, customer_id, number, minor, reason, key)

    def refund_within(
        self, connection: sqlite3.Connection, customer_id: str, number: str, minor: int | None, reason: str, key: str
    ) -> dict[str, Any]:
        """As `refund`, in a transaction of the caller's on the shop's database."""
        order = refunds.find_order(connection, customer_id, normalise_number(number), number)
        return refunds.record(connection, order, minor, reason, key, _today(connection))


def _today(connection: sqlite3.Connection) -> date:
    [value] = connection.execute("SELECT value FROM settings WHERE key = 'today'").fetchone()
    return date.fromisoformat(value)


def _customer(connection: sqlite3.Connection, customer_id: str) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute("SELECT * FROM customers WHERE id = ?", (customer_id,)).fetchone()
    if row is None:
        raise ShopError("customer_not_found", f"there is no customer {customer_id!r}")
    return row


def _order(connection: sqlite3.Connection, customer_id: str, number: str) -> dict[str, Any]:
    order = refunds.find_order(connection, customer_id, normalise_number(number), number)
    currency = order["currency"]
    lines = connection.execute(
        "SELECT sku, name, name_zh, quantity, quantity * unit_minor AS minor "
        "FROM order_lines JOIN products USING (sku) WHERE order_number = ? ORDER BY position",
        (order["number"],),
    ).fetchall()
    state = refunds.refundable(connection, order, _today(connection))
    return {
        "number": order["number"],
        "placed_on": order["placed_on"],
        "status": order["status"],
        "lines": [
            {key: line[key] for key in ("sku", "name", "name_zh", "quantity")}
            | {"total": Money(line["minor"], currency).as_json()}
            for line in lines
        ],
        "paid": Money(order["paid_minor"], currency).as_json(),
        "refunded": Money(state.refunded, currency).as_json(),
        "refundable": {"up_to": Money(state.up_to, currency).as_json(), "obstacle": state.obstacle},
    }


def _products(connection: sqlite3.Connection, currency: str) -> list[sqlite3.Row]:
    return connection.execute(
        "SELECT * FROM products JOIN prices USING (sku) WHERE currency = ? ORDER BY sku", (currency,)
    ).fetchall()


def _product(row: sqlite3.Row) -> dict[str, Any]:
    return {
        "sku": row["sku"],
        "name": row["name"],
        "name_zh": row["name_zh"],
        "price": Money(row["minor"], row["currency"]).as_json(),
        "stock": row["stock"],
    }
