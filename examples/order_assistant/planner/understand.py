"""What a customer's message asks for."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from examples.order_assistant.planner.phrases import Phrases
from examples.order_assistant.planner.phrases_en import ENGLISH
from examples.order_assistant.planner.phrases_zh import CHINESE

__all__ = ["LANGUAGES", "Draft", "Memory", "Request", "understand"]

LANGUAGES = {"en": ENGLISH, "zh": CHINESE}

# A message with an order number asks for that order, even if it also looks like one of these.
_WEAKER_THAN_A_NUMBER = frozenset(
    ("unknown", "search", "greet", "thanks", "help", "latest", "history", "profile", "reviews", "bye")
)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_LETTER = re.compile(r"[A-Za-z]{2}")
# `\b` is no help here: Chinese characters count as word characters.
_NUMBER = re.compile(r"(?<![0-9A-Za-z])(?:ORD[-\s#]*|#)?[0-9]{5}(?![0-9])", re.IGNORECASE)
_ODD_NUMBER = re.compile(
    r"(?:\bORD[-\s#]*|\border\s+(?:no\.?\s*|number\s*)?#?|订单号?\s*)(?P<number>[0-9]+)", re.IGNORECASE
)
_DIGITS = r"[0-9][0-9,]*(?:\.[0-9]{1,2})?"
_AMOUNT = re.compile(
    rf"(?P<sign>[$€¥])\s?(?P<after>{_DIGITS})|(?P<before>{_DIGITS})\s?(?P<word>euros?\b|eur\b|欧元|dollars?\b|usd\b|bucks\b"
    r"|美元|美金|yuan\b|rmb\b|cny\b|元|块钱?|人民币)",
    re.IGNORECASE,
)
_CURRENCIES = {
    **dict.fromkeys(("€", "euro", "euros", "eur", "欧元"), "EUR"),
    **dict.fromkeys(("$", "dollar", "dollars", "usd", "bucks", "美元", "美金"), "USD"),
    **dict.fromkeys(("¥", "yuan", "rmb", "cny", "元", "块", "块钱", "人民币"), "CNY"),
}


@dataclass(frozen=True)
class Draft:
    """A refund that waits for the customer's yes."""

    order: str
    minor: int | None
    """None: all that is left."""
    reason: str


@dataclass(frozen=True)
class Memory:
    """What earlier turns left behind."""

    language: str = "en"
    order: str | None = None
    """The order talked about last: "it"."""
    products: tuple[str, ...] = ()
    """SKUs of the products listed last: "them"."""
    draft: Draft | None = None


@dataclass(frozen=True)
class Request:
    """A message, understood."""

    goal: str
    """A key of `goals.GOALS`."""
    language: str
    text: str
    """The message in Unicode form NFKC."""
    order: str | None = None
    """The order number in it, as typed."""
    latest: bool = False
    """The newest order is meant."""
    amount: tuple[int, str] | None = None
    """Minor units and currency."""
    products: tuple[str, ...] = ()
    """Product names for reviews; empty when they only point back."""
    query: str = ""
    """What to search for."""

    @property
    def phrases(self) -> Phrases:
        """The words of the message's language."""
        return LANGUAGES[self.language]


def understand(text: str, memory: Memory) -> Request:
    """Find the goal of a message and what it mentions."""
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'").strip()
    language = _language(text, memory)
    phrases = LANGUAGES[language]
    amount = _AMOUNT.search(text)
    without_amount = _AMOUNT.sub(" ", text)
    number = _NUMBER.search(without_amount) or _ODD_NUMBER.search(without_amount)
    goal = _goal(text, phrases, memory, number is not None, amount is not None)
    return Request(
        goal=goal,
        language=language,
        text=text,
        order=(number.groupdict().get("number") or number[0]) if number else None,
        latest=phrases.latest.search(text) is not None,
        amount=_amount(amount) if amount else None,
        products=_products(text, phrases) if goal in ("reviews", "compare") else (),
        query=_query(text, phrases) if goal == "search" else "",
    )


def _language(text: str, memory: Memory) -> str:
    if _CHINESE.search(text):
        return "zh"
    return "en" if _LETTER.search(_NUMBER.sub("", text)) else memory.language


def _goal(text: str, phrases: Phrases, memory: Memory, has_number: bool, has_amount: bool) -> str:
    if phrases.yes.fullmatch(text):
        return "confirm" if memory.draft else "unasked_yes"
    if memory.draft and phrases.no.search(text):
        return "decline"
    goal = next((goal for goal, pattern in phrases.goals if pattern.search(text)), "unknown")
    if has_number and goal in _WEAKER_THAN_A_NUMBER:
        return "order"
    # "Only the kettle" is about the refund that waits, and "20 dollars" about the order talked about last.
    about_refund = memory.draft or (memory.order and has_amount)
    return "refund" if goal == "unknown" and about_refund else goal


def _amount(match: re.Match[str]) -> tuple[int, str]:
    digits = (match["after"] or match["before"]).replace(",", "")
    units, _, cents = digits.partition(".")
    return int(units) * 100 + int(cents.ljust(2, "0")), _CURRENCIES[(match["sign"] or match["word"]).lower()]


def _products(text: str, phrases: Phrases) -> tuple[str, ...]:
    names = (name.strip() for name in phrases.product_split.split(phrases.product_noise.sub(" ", text)))
    return tuple(" ".join(name.split()) for name in names if not phrases.pronoun.fullmatch(name))


def _query(text: str, phrases: Phrases) -> str:
    match = phrases.query.search(text)
    return match["query"].strip(" ?!.,吗呢么的") if match else ""
