"""One plan per goal.

A plan is a generator: it yields a round of tool calls, is sent their results, and returns what to say. It keeps nothing
between conversations, so `replay` can run it again from the message history.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from examples.order_assistant.planner import wording
from examples.order_assistant.planner.history import Call, Result
from examples.order_assistant.planner.understand import Draft, Memory, Request

__all__ = ["GOALS", "Plan", "Said"]


@dataclass(frozen=True)
class Said:
    """An answer and what it leaves in memory."""

    text: str
    order: str | None = None
    products: tuple[str, ...] = ()
    draft: Draft | None = None


Plan = Generator[tuple[Call, ...], tuple[Result, ...], Said]


def _phrase(key: str) -> Callable[[Request, Memory], Plan]:
    """A plan that says one fixed thing."""

    def plan(request: Request, memory: Memory) -> Plan:
        yield from ()  # a generator like the others, without calls
        return Said(request.phrases.say[key])

    return plan


def _call(tool: str, **arguments: object) -> Generator[tuple[Call, ...], tuple[Result, ...], Result]:
    [result] = yield (Call(tool, arguments),)
    return result


def _find_order(request: Request, memory: Memory) -> Generator[tuple[Call, ...], tuple[Result, ...], Result]:
    """The order that is meant: by number, else the newest if asked for, else "it", else the newest."""
    number = request.order or (None if request.latest else memory.order)
    if number is None:
        return (yield from _call("get_latest_order"))
    return (yield from _call("get_order", order_number=number))


def _order_failure(request: Request, result: Result, memory: Memory) -> Said:
    number = request.order or memory.order or ""
    return Said(wording.failure(request.phrases, result, number=number.upper()))


def _profile(request: Request, memory: Memory) -> Plan:
    result = yield from _call("get_profile")
    if result.error:
        return _order_failure(request, result, memory)
    return Said(wording.profile(request.phrases, result.data))


def _history(request: Request, memory: Memory) -> Plan:
    result = yield from _call("get_profile")
    if result.error:
        return _order_failure(request, result, memory)
    return Said(wording.history(request.phrases, result.data))


def _latest(request: Request, memory: Memory) -> Plan:
    result = yield from _call("get_latest_order")
    if result.error:
        return _order_failure(request, result, memory)
    return Said(wording.order(request.phrases, result.data), order=result.data["number"])


def _order(request: Request, memory: Memory) -> Plan:
    result = yield from _find_order(request, memory)
    if result.error:
        return _order_failure(request, result, memory)
    return Said(wording.order(request.phrases, result.data), order=result.data["number"])


def _track(request: Request, memory: Memory) -> Plan:
    number = request.order or (None if request.latest else memory.order)
    if number is None:
        latest = yield from _call("get_latest_order")
        if latest.error:
            return _order_failure(request, latest, memory)
        number = str(latest.data["number"])
    result = yield from _call("track_order", order_number=number)
    if result.error:
        return _order_failure(request, result, memory)
    return Said(wording.track(request.phrases, result.data), order=result.data["number"])


def _search(request: Request, memory: Memory) -> Plan:
    if not request.query:
        return Said(request.phrases.say["what_query"])
    result = yield from _call("search_products", query=request.query)
    if result.error:
        return Said(wording.failure(request.phrases, result))
    skus = tuple(product["sku"] for product in result.data["products"])
    return Said(wording.found(request.phrases, result.data), products=skus)


def _reviews(request: Request, memory: Memory) -> Plan:
    products = request.products or memory.products[:1]
    if not products:
        return Said(request.phrases.say["which_product"])
    return (yield from _look_up_reviews(request, products))


def _compare(request: Request, memory: Memory) -> Plan:
    products = request.products or memory.products[:2]
    if len(products) == 1:  # "compare it with the Ember Kettle"
        products = (*(sku for sku in memory.products[:1] if sku != products[0]), *products)
    if len(products) < 2:
        return Said(request.phrases.say["which_two"])
    return (yield from _look_up_reviews(request, products))


def _look_up_reviews(request: Request, products: tuple[str, ...]) -> Plan:
    """All look-ups in one round: they run side by side."""
    results = yield tuple(Call("get_reviews", {"product": product}) for product in products)
    phrases = request.phrases
    lines = [
        wording.failure(phrases, result, product=product)
        for product, result in zip(products, results, strict=True)
        if result.error
    ]
    answers = [result.data for result in results if not result.error]
    if len(answers) > 1:
        lines.insert(0, wording.comparison(phrases, answers))
    elif answers:
        lines.insert(0, wording.rating(phrases, answers[0]))
    return Said("\n".join(lines), products=tuple(data["sku"] for data in answers))


def _refund(request: Request, memory: Memory) -> Plan:
    """Look at the order, then ask; the money moves only in `_confirm`."""
    if memory.draft and not request.order and not request.latest:
        result = yield from _call("get_order", order_number=memory.draft.order)
    else:
        result = yield from _find_order(request, memory)
    if result.error:
        return _order_failure(request, result, memory)
    order = result.data
    number, up_to = str(order["number"]), order["refundable"]["up_to"]
    if obstacle := order["refundable"]["obstacle"]:
        return Said(wording.failure(request.phrases, Result({}, obstacle), number=number), order=number)
    say = request.phrases.say
    amount = request.amount
    if amount and amount[1] != up_to["currency"]:
        text = say["other_currency"].format(number=number, currency=up_to["currency"], most=up_to["text"])
        return Said(text, order=number)
    minor = amount[0] if amount else _total_of_mentioned_lines(request, order)
    if minor is not None and minor > up_to["minor"]:
        return Said(say["too_high"].format(number=number, most=up_to["text"]), order=number)
    wish = f"{memory.draft.reason}; {request.text}" if memory.draft else request.text
    draft = Draft(number, None if minor == up_to["minor"] else minor, wish)
    return Said(_question(request, order, draft), order=number, draft=draft)


def _question(request: Request, order: Mapping[str, Any], draft: Draft) -> str:
    say, up_to = request.phrases.say, order["refundable"]["up_to"]
    if draft.minor is None:
        left = say["left"] if order["refunded"]["minor"] else ""
        return say["confirm_all"].format(amount=up_to["text"], number=draft.order, left=left)
    sign = up_to["text"][0]
    amount = f"{sign}{draft.minor // 100:,}.{draft.minor % 100:02d}"
    return say["confirm_part"].format(amount=amount, most=up_to["text"], number=draft.order)


def _total_of_mentioned_lines(request: Request, order: Mapping[str, Any]) -> int | None:
    """What the products named in the message cost; None if none is named, or all are."""
    words = request.text.casefold()
    named = [line["total"]["minor"] for line in order["lines"] if any(name in words for name in _names(line))]
    return sum(named) if 0 < len(named) < len(order["lines"]) else None


def _names(line: Mapping[str, Any]) -> list[str]:
    """What people may call a product: the words of its name, and the pairs of characters of the Chinese one."""
    chinese = line["name_zh"]
    return [*line["name"].casefold().split(), *(chinese[i : i + 2] for i in range(len(chinese) - 1))]


def _confirm(request: Request, memory: Memory) -> Plan:
    draft = memory.draft
    if draft is None:
        return Said(request.phrases.say["nothing_pending"])
    amount = {} if draft.minor is None else {"amount_minor": draft.minor}
    result = yield from _call("refund_order", order_number=draft.order, **amount, reason=draft.reason[:200])
    if result.error:
        return Said(wording.failure(request.phrases, result, number=draft.order), order=draft.order)
    data = result.data
    text = request.phrases.say["refund_done"].format(
        amount=data["amount"]["text"], number=data["number"], refund=data["refund"]
    )
    return Said(text, order=data["number"])


GOALS: Mapping[str, Callable[[Request, Memory], Plan]] = {
    **{key: _phrase(key) for key in ("greet", "help", "policy", "thanks", "bye", "unknown")},
    "unasked_yes": _phrase("nothing_pending"),
    "decline": _phrase("declined"),
    "profile": _profile,
    "history": _history,
    "latest": _latest,
    "order": _order,
    "track": _track,
    "search": _search,
    "reviews": _reviews,
    "compare": _compare,
    "refund": _refund,
    "confirm": _confirm,
}
"""Every goal that `understand` can find, with its plan."""
