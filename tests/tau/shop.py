"""A retail shop with sixteen tools over plain rows, as the recorded agents met it.

Written from the tools' descriptions and recorded results. A refused request answers with a text that begins
`Error:`; it does not raise, because that is what the recorded agents saw.
"""

from __future__ import annotations

import ast
import copy
import json
import operator
from collections import ChainMap, Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

__all__ = ["READS", "Shop", "Touched"]

Row = dict[str, Any]

READS = frozenset(
    {"find_user_id_by_email", "find_user_id_by_name_zip", "get_order_details", "get_product_details"}
    | {"get_user_details", "list_all_product_types", "calculate", "think", "transfer_to_human_agents"}
)

_OPERATORS: dict[type[ast.operator | ast.unaryop], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


class _Refused(Exception):
    """The shop says no; the text is the tool's answer."""


@dataclass(frozen=True)
class Touched:
    """The rows that a call reads or may change, as (table, key); key `*` is the whole table."""

    reads: frozenset[tuple[str, str]] = frozenset()
    writes: frozenset[tuple[str, str]] = frozenset()

    def disturbs(self, other: Touched) -> bool:
        """Whether one of the two changes a row that the other one looks at."""
        return _meet(self.writes, other.reads | other.writes) or _meet(other.writes, self.reads)


def _meet(left: frozenset[tuple[str, str]], right: frozenset[tuple[str, str]]) -> bool:
    return any(table == other and ("*" in (key, name) or key == name) for table, key in left for other, name in right)


class Shop:
    """One database and its tools; `tools()` are LangChain tools that work on this object's rows."""

    def __init__(self, folder: Path) -> None:
        self._users, self._orders, self._products = (
            ChainMap[str, Row]({}, json.loads((folder / f"{table}.json").read_text()))
            for table in ("users", "orders", "products")
        )
        self._specs: list[Row] = json.loads((folder / "tools.json").read_text())

    @property
    def _tables(self) -> dict[str, ChainMap[str, Row]]:
        """Each table: first the rows that were written, then the rows on disk."""
        return {"users": self._users, "orders": self._orders, "products": self._products}

    def reset(self) -> None:
        """Go back to the rows on disk."""
        for rows in self._tables.values():
            rows.maps[0].clear()

    def changed(self) -> dict[str, dict[str, Row]]:
        """The rows that differ from the ones on disk, by table and key."""
        differing = {
            table: {key: row for key, row in rows.maps[0].items() if row != rows.maps[1][key]}
            for table, rows in self._tables.items()
        }
        return {table: rows for table, rows in differing.items() if rows}

    def call(self, name: str, args: Mapping[str, Any]) -> str:
        """Run one tool and return its text."""
        try:
            answer: str | Row = getattr(self, f"_{name}")(**args)
        except _Refused as refusal:
            return f"Error: {refusal}"
        return answer if isinstance(answer, str) else json.dumps(answer)

    def tools(self) -> list[BaseTool]:
        """The tools, described to the model exactly as in the record."""
        return [self._tool(spec) for spec in self._specs]

    def _tool(self, spec: Row) -> BaseTool:
        name: str = spec["name"]

        def run(**arguments: Any) -> str:
            return self.call(name, arguments)

        return StructuredTool.from_function(
            run, name=name, description=spec["description"], args_schema=spec["parameters"]
        )

    def touched(self, name: str, args: Mapping[str, Any]) -> Touched:
        """The rows a call is concerned with, as far as its arguments tell."""
        if name.startswith("find_user"):
            return Touched(reads=frozenset({("users", "*")}))
        rows = set()
        if "order_id" in args:
            rows.add(("orders", args["order_id"]))
            if name not in READS and args["order_id"] in self._orders:  # a gift card's balance may change
                rows.add(("users", self._orders[args["order_id"]]["user_id"]))
        if "user_id" in args:
            rows.add(("users", args["user_id"]))
        return Touched(reads=frozenset(rows)) if name in READS else Touched(writes=frozenset(rows))

    # -- reads ---------------------------------------------------------------------------------------------------

    def _find_user_id_by_email(self, email: str) -> str:
        return self._find(lambda user: user["email"].lower() == email.lower())

    def _find_user_id_by_name_zip(self, first_name: str, last_name: str, zip: str) -> str:
        wanted = (first_name.lower(), last_name.lower(), zip)
        return self._find(
            lambda user: (
                (user["name"]["first_name"].lower(), user["name"]["last_name"].lower(), user["address"]["zip"])
                == wanted
            )
        )

    def _find(self, fits: Callable[[Row], bool]) -> str:
        for user_id, user in self._users.items():
            if fits(user):
                return user_id
        raise _Refused("user not found")

    def _get_user_details(self, user_id: str) -> Row:
        return _row(self._users, user_id, "user")

    def _get_order_details(self, order_id: str) -> Row:
        return _row(self._orders, order_id, "order")

    def _get_product_details(self, product_id: str) -> Row:
        return _row(self._products, product_id, "product")

    def _list_all_product_types(self) -> Row:
        return dict(sorted((product["name"], product["product_id"]) for product in self._products.values()))

    # -- neither reads nor writes --------------------------------------------------------------------------------

    def _calculate(self, expression: str) -> str:
        if not set(expression) <= set("0123456789+-*/(). "):
            raise _Refused("invalid characters in expression")
        try:
            return str(round(float(_value(ast.parse(expression, mode="eval").body)), 2))
        except (SyntaxError, ZeroDivisionError) as problem:
            raise _Refused(str(problem)) from None

    def _think(self, thought: str) -> str:
        return ""

    def _transfer_to_human_agents(self, summary: str) -> str:
        return "Transfer successful"

    # -- writes --------------------------------------------------------------------------------------------------

    def _modify_user_address(self, user_id: str, **address: str) -> Row:
        user = _writable(self._users, user_id, "user")
        user["address"] = _address(address)
        return user

    def _modify_pending_order_address(self, order_id: str, **address: str) -> Row:
        order = self._order(order_id, "pending", "modified")
        order["address"] = _address(address)
        return order

    def _cancel_pending_order(self, order_id: str, reason: str) -> Row:
        order = self._order(order_id, "pending", "cancelled")
        if reason not in ("no longer needed", "ordered by mistake"):
            raise _Refused("invalid reason")
        refunds = []
        for payment in order["payment_history"]:
            method = payment["payment_method_id"]
            refunds.append({"transaction_type": "refund", "amount": payment["amount"], "payment_method_id": method})
            self._credit(order, method, payment["amount"])
        order["status"] = "cancelled"
        order["cancel_reason"] = reason
        order["payment_history"].extend(refunds)
        return order

    def _modify_pending_order_payment(self, order_id: str, payment_method_id: str) -> Row:
        order = self._order(order_id, "pending", "modified")
        method = self._method(order, payment_method_id)
        history = order["payment_history"]
        if len(history) != 1 or history[0]["transaction_type"] != "payment":
            raise _Refused("there should be exactly one payment for a pending order")
        before, amount = history[0]["payment_method_id"], history[0]["amount"]
        if before == payment_method_id:
            raise _Refused("the new payment method should be different from the current one")
        if method["source"] == "gift_card" and method["balance"] < amount:
            raise _Refused("insufficient gift card balance to pay for the order")
        history += [
            {"transaction_type": "payment", "amount": amount, "payment_method_id": payment_method_id},
            {"transaction_type": "refund", "amount": amount, "payment_method_id": before},
        ]
        self._credit(order, payment_method_id, -amount)
        self._credit(order, before, amount)
        return order

    def _modify_pending_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Row:
        order = self._order(order_id, "pending", "modified")
        difference = self._swap_price(order, item_ids, new_item_ids)
        self._pay_difference(order, payment_method_id, difference, "the new items")
        kind = "payment" if difference > 0 else "refund"
        order["payment_history"].append(
            {"transaction_type": kind, "amount": abs(difference), "payment_method_id": payment_method_id}
        )
        self._credit(order, payment_method_id, -difference)
        for old, new in zip(item_ids, new_item_ids, strict=True):
            item = _item(order, old)
            variant = self._products[item["product_id"]]["variants"][new]
            item.update(item_id=new, price=variant["price"], options=variant["options"])
        order["status"] = "pending (item modified)"
        return order

    def _exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Row:
        order = self._order(order_id, "delivered", "exchanged")
        difference = round(self._swap_price(order, item_ids, new_item_ids), 2)
        self._pay_difference(order, payment_method_id, difference, "the price difference")
        order["status"] = "exchange requested"
        order["exchange_items"] = sorted(item_ids)
        order["exchange_new_items"] = sorted(new_item_ids)
        order["exchange_payment_method_id"] = payment_method_id
        order["exchange_price_difference"] = difference
        return order

    def _return_delivered_order_items(self, order_id: str, item_ids: list[str], payment_method_id: str) -> Row:
        order = self._order(order_id, "delivered", "returned")
        method = self._method(order, payment_method_id)
        original = order["payment_history"][0]["payment_method_id"]
        if method["source"] != "gift_card" and payment_method_id != original:
            raise _Refused("payment method should be either the original payment method or a gift card")
        if Counter(item_ids) - Counter(item["item_id"] for item in order["items"]):
            raise _Refused("some item not found")
        order["status"] = "return requested"
        order["return_items"] = sorted(item_ids)
        order["return_payment_method_id"] = payment_method_id
        return order

    # -- what the writes share -----------------------------------------------------------------------------------

    def _order(self, order_id: str, status: str, done: str) -> Row:
        if _row(self._orders, order_id, "order")["status"] != status:
            raise _Refused(f"non-{status} order cannot be {done}")
        return _writable(self._orders, order_id, "order")

    def _method(self, order: Row, method_id: str) -> Row:
        return _row(self._users[order["user_id"]]["payment_methods"], method_id, "payment method")

    def _credit(self, order: Row, method_id: str, amount: float) -> None:
        if self._method(order, method_id)["source"] == "gift_card":
            user = _writable(self._users, order["user_id"], "user")
            method = user["payment_methods"][method_id]
            method["balance"] = round(method["balance"] + amount, 2)

    def _pay_difference(self, order: Row, method_id: str, difference: float, what: str) -> None:
        method = self._method(order, method_id)
        if method["source"] == "gift_card" and method["balance"] < difference:
            raise _Refused(f"insufficient gift card balance to pay for {what}")

    def _swap_price(self, order: Row, old: Sequence[str], new: Sequence[str]) -> float:
        owned = Counter(item["item_id"] for item in order["items"])
        for item_id in old:
            if old.count(item_id) > owned[item_id]:
                raise _Refused(f"{item_id} not found")
        if len(old) != len(new):
            raise _Refused("the number of items to be exchanged should match")
        difference = 0.0
        for item_id, new_id in zip(old, new, strict=True):
            item = _item(order, item_id)
            variant = self._products[item["product_id"]]["variants"].get(new_id)
            if variant is None or not variant["available"]:
                raise _Refused(f"new item {new_id} not found or available")
            difference += variant["price"] - item["price"]
        return difference


def _row(table: Mapping[str, Row], key: str, what: str) -> Row:
    if key not in table:
        raise _Refused(f"{what} not found")
    return table[key]


def _writable(table: ChainMap[str, Row], key: str, what: str) -> Row:
    if key not in table.maps[0]:
        table[key] = copy.deepcopy(_row(table, key, what))
    return table[key]


def _item(order: Row, item_id: str) -> Row:
    found: Row = next(item for item in order["items"] if item["item_id"] == item_id)
    return found


def _address(parts: Mapping[str, str]) -> Row:
    return {key: parts[key] for key in ("address1", "address2", "city", "state", "country", "zip")}


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(operand))
    raise SyntaxError("invalid expression")
