"""Tool results in the customer's language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from examples.order_assistant.planner.history import Result
from examples.order_assistant.planner.phrases import Phrases

__all__ = ["comparison", "failure", "found", "history", "order", "profile", "rating", "track"]

Data = Mapping[str, Any]
_SHOWN_EVENTS = 3


def failure(phrases: Phrases, result: Result, **mentioned: str) -> str:
    """Why a tool could not help. `mentioned` is what the customer named: `number`, `product`."""
    template = phrases.errors.get(result.error or "other", phrases.errors["other"])
    return template.format_map({"number": "", "product": "", "text": result.text, **mentioned})


def profile(phrases: Phrases, data: Data) -> str:
    """The customer's details."""
    return phrases.say["profile"].format_map({**data, "joined": _day(phrases, data["joined_on"])})


def history(phrases: Phrases, data: Data) -> str:
    """The latest orders, one a line."""
    rows = [
        phrases.say["history_row"].format(
            number=row["number"], placed=_day(phrases, row["placed_on"]), status=phrases.status[row["status"]]
        )
        for row in data["recent_orders"]
    ]
    return "\n".join([phrases.say["history"], *rows]) if rows else phrases.say["no_history"]


def order(phrases: Phrases, data: Data) -> str:
    """One order with its lines and amounts."""
    say = phrases.say
    text = [
        say["order"].format(
            number=data["number"], placed=_day(phrases, data["placed_on"]), status=phrases.status[data["status"]]
        )
    ]
    for line in data["lines"]:
        text.append(
            say["line"].format(quantity=line["quantity"], name=line[phrases.name_key], total=line["total"]["text"])
        )
    text.append(say["paid"].format(paid=data["paid"]["text"]))
    if data["refunded"]["minor"]:
        text.append(say["refunded"].format(refunded=data["refunded"]["text"]))
    return "\n".join(text)


def track(phrases: Phrases, data: Data) -> str:
    """Where a parcel is."""
    say = phrases.say
    if not data["events"]:
        return say["not_shipped"].format(number=data["number"], status=phrases.status[data["status"]])
    text = [
        say["track"].format(
            number=data["number"],
            carrier=data["carrier"],
            shipped=_day(phrases, data["shipped_on"]),
            tracking=data["tracking_number"],
        )
    ]
    for event in data["events"][:_SHOWN_EVENTS]:
        words = phrases.event[event["event"]]
        text.append(say["event"].format(at=event["happened_at"], place=event["place"], event=words))
    arrived = data["delivered_on"]
    text.append(
        say["delivered"].format(delivered=_day(phrases, arrived))
        if arrived
        else say["expected"].format(expected=_day(phrases, data["expected_on"]))
    )
    return "\n".join(text)


def found(phrases: Phrases, data: Data) -> str:
    """Products, one a line."""
    say = phrases.say
    rows = [
        say["product"].format(
            name=product[phrases.name_key],
            price=product["price"]["text"],
            stock=say["in_stock" if product["stock"] else "sold_out"],
        )
        for product in data["products"]
    ]
    if not rows:
        return say["nothing_found"].format(query=data["query"])
    return "\n".join([say["found"], *rows, *([say["ask_reviews"]] if len(rows) > 1 else [])])


def rating(phrases: Phrases, data: Data, shown: int = 3) -> str:
    """A product's rating and its latest reviews."""
    template = phrases.say["rating" if data["count"] else "unrated"]
    text = [
        template.format(
            name=data[phrases.name_key], price=data["price"]["text"], average=data["average"], count=data["count"]
        )
    ]
    for review in data["recent"][:shown]:
        stars = "★" * review["rating"] + "☆" * (5 - review["rating"])
        text.append(phrases.say["review"].format(stars=stars, body=review["body"]))
    return "\n".join(text)


def comparison(phrases: Phrases, products: Sequence[Data]) -> str:
    """Several ratings and which is best."""
    text = [rating(phrases, data, shown=1) for data in products]
    rated = sorted((data for data in products if data["count"]), key=lambda data: -data["average"])
    if len(rated) > 1:
        best, *others = rated
        if best["average"] == others[0]["average"]:
            text.append(phrases.say["even"].format(average=best["average"]))
        else:
            averages = ", ".join(str(data["average"]) for data in others)
            name = best[phrases.name_key]
            text.append(phrases.say["better"].format(name=name, average=best["average"], others=averages))
    return "\n".join(text)


def _day(phrases: Phrases, iso: str) -> str:
    return phrases.day(date.fromisoformat(iso))
