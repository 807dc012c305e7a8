"""Find products by the words people use for them, in English or Chinese."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from fractions import Fraction

from examples.order_assistant.errors import ShopError

__all__ = ["find", "pick"]

_LIMIT = 5
_WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]+")
_FILLER = frozenset(("a", "an", "the", "of", "for", "in", "with", "and", "or", "my", "your", "some", "any", "set"))


def find(products: Sequence[sqlite3.Row], query: str) -> list[sqlite3.Row]:
    """Up to five products that fit at least half as well as the best one, best first.

    Raises:
        ShopError: `empty_query`: no searchable word in it.
    """
    terms = _terms(query)
    if not terms:
        raise ShopError("empty_query", "the query has no word to search for; name a kind of product, e.g. 'headphones'")
    scores = [(_score(row, terms), row) for row in products]
    best = max(score for score, _ in scores)
    fitting = [(score, row) for score, row in scores if score > 0 and score * 2 >= best]
    return [row for _, row in sorted(fitting, key=lambda pair: (-pair[0], pair[1]["stock"] == 0))][:_LIMIT]


def pick(products: Sequence[sqlite3.Row], text: str) -> sqlite3.Row:
    """The one product that a SKU or a name means.

    Raises:
        ShopError: `product_not_found` or `product_ambiguous`, the latter with the candidates.
    """
    for row in products:
        if text.strip().upper() == row["sku"]:
            return row
    terms = _terms(text)
    matches = [(_score(row, terms), row) for row in products if _coverage(row, terms) >= Fraction(3, 5)]
    if not matches:
        raise ShopError("product_not_found", f"there is no product {text.strip()[:40]!r}; search for it first")
    best = max(score for score, _ in matches)
    winners = [row for score, row in matches if score == best]
    if len(winners) > 1:
        names = ", ".join(f"{row['name']} ({row['sku']})" for row in winners[:_LIMIT])
        raise ShopError("product_ambiguous", f"{text.strip()[:40]!r} may be {names}; name one, or give its SKU")
    return winners[0]


def _terms(text: str) -> list[str]:
    """Latin words without plural, and pairs of neighbouring Chinese characters (Chinese writes no spaces)."""
    terms: list[str] = []
    for word in _WORD.findall(text.lower()):
        if word.isascii():
            if word not in _FILLER:
                terms.append(word.removesuffix("s") if len(word) > 3 else word)
        else:
            terms.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
    return terms


def _haystacks(row: sqlite3.Row) -> tuple[str, str]:
    name = f"{row['name']} {row['name_zh']}".lower()
    return name, f"{name} {row['category']} {row['keywords']}".lower()


def _score(row: sqlite3.Row, terms: Sequence[str]) -> int:
    """A word in the name counts twice as much as one in the keywords."""
    name, everything = _haystacks(row)
    return sum(2 if term in name else term in everything for term in terms)


def _coverage(row: sqlite3.Row, terms: Sequence[str]) -> Fraction:
    everything = _haystacks(row)[1]
    return Fraction(sum(term in everything for term in terms), max(1, len(terms)))
