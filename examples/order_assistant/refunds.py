"""When the shop pays money back, and the record of it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import date
from typing import Any

from examples.order_assistant.errors import ShopError
from examples.order_assistant.money import Money

__all__ = ["REFUND_DAYS", "Refundable", "find_order", "record", "refundable"]

REFUND_DAYS = 30
"""A delivered order can be refunded until this many days after its delivery."""

_OBSTACLES = {
    "already_refunded": "the order {number} has been refunded in full",
    "in_transit": "the order {number} is on its way; it can be refunded once it is delivered",
    "too_late": "the order {number} was delivered more than " + str(REFUND_DAYS) + " days ago",
}


@dataclass(frozen=True)
class Refundable:
    """What may be paid back for an order today, in minor units of its currency."""

    refunded: int
    """Paid back so far."""
    up_to: int
    """The most that may still be paid back; 0 when there is an obstacle."""
    obstacle: str | None
    """`already_refunded`, `in_transit`, `too_late`, or None."""


def find_order(connection: sqlite3.Connection, customer_id: str, number: str | None, asked: str) -> sqlite3.Row:
    """The customer's order of that number.

    Args:
        connection: The shop's database.
        customer_id: Whose order it has to be.
        number: The number in canonical form; None finds nothing.
        asked: The number as it was typed, for the message.

    Raises:
        ShopError: `order_not_found`, in the same words whether nobody or somebody else has that order.
    """
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM orders WHERE number = ? AND customer_id = ?", (number, customer_id)
    ).fetchone()
    if row is None:
        shown = number or " ".join(asked.split())[:40]
        raise ShopError(
            "order_not_found",
            f"this customer has no order {shown!r}; numbers look like ORD-12345, and the profile lists the latest ones",
        )
    return row


def refundable(connection: sqlite3.Connection, order: sqlite3.Row, today: date) -> Refundable:
    """Apply the refund rules to one order."""
    [refunded] = connection.execute(
        "SELECT coalesce(sum(minor), 0) FROM refunds WHERE order_number = ?", (order["number"],)
    ).fetchone()
    delivered = connection.execute(
        "SELECT delivered_on FROM shipments WHERE order_number = ?", (order["number"],)
    ).fetchone()
    left = order["paid_minor"] - refunded
    obstacle = None
    if left <= 0 or order["status"] == "cancelled":
        obstacle = "already_refunded"
    elif order["status"] == "shipped":
        obstacle = "in_transit"
    elif order["status"] == "delivered" and (today - date.fromisoformat(delivered["delivered_on"])).days > REFUND_DAYS:
        obstacle = "too_late"
    return Refundable(refunded, 0 if obstacle else left, obstacle)


def record(
    connection: sqlite3.Connection, order: sqlite3.Row, minor: int | None, reason: str, key: str, today: date
) -> dict[str, Any]:
    """Pay back, inside the caller's write transaction, or find what the same key paid back before.

    Raises:
        ShopError: A rule forbids it.
    """
    row = connection.execute("SELECT * FROM refunds WHERE idempotency_key = ?", (key,)).fetchone()
    if row is None:
        amount = _allowed_amount(refundable(connection, order, today), order, minor)
        row = connection.execute(
            "INSERT INTO refunds (order_number, minor, reason, created_on, idempotency_key) VALUES (?, ?, ?, ?, ?) "
            "RETURNING *",
            (order["number"], amount, reason, today.isoformat(), key),
        ).fetchone()
    state = refundable(connection, order, today)
    if order["status"] == "processing" and state.refunded == order["paid_minor"]:
        connection.execute("UPDATE orders SET status = 'cancelled' WHERE number = ?", (order["number"],))
    currency = order["currency"]
    return {
        "refund": f"RF-{row['id']:05d}",
        "number": order["number"],
        "amount": Money(row["minor"], currency).as_json(),
        "created_on": row["created_on"],
        "refunded_in_all": Money(state.refunded, currency).as_json(),
        "paid": Money(order["paid_minor"], currency).as_json(),
    }


def _allowed_amount(state: Refundable, order: sqlite3.Row, minor: int | None) -> int:
    if state.obstacle:
        raise ShopError(state.obstacle, _OBSTACLES[state.obstacle].format(number=order["number"]))
    amount = state.up_to if minor is None else minor
    if amount <= 0:
        raise ShopError("bad_amount", f"{amount} minor units cannot be refunded; the amount has to be positive")
    if amount > state.up_to:
        most, asked = Money(state.up_to, order["currency"]), Money(amount, order["currency"])
        raise ShopError(
            "amount_too_high", f"{asked} is more than the {most} that is left to refund ({most.minor} minor)"
        )
    return amount
