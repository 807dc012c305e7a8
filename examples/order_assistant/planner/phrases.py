"""What the planner knows of a language: how people ask for things, and how it answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date

__all__ = ["Phrases", "alternatives"]


def alternatives(*patterns: str) -> re.Pattern[str]:
    """One case-insensitive pattern that matches any of `patterns`."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


@dataclass(frozen=True)
class Phrases:
    """One language. The patterns see text in Unicode form NFKC: full-width digits and punctuation are ASCII there."""

    goals: tuple[tuple[str, re.Pattern[str]], ...]
    """Goal and what asks for it; the first that matches anywhere in the text wins."""
    yes: re.Pattern[str]
    """Matches a whole message that agrees and says nothing else."""
    no: re.Pattern[str]
    """Matches the start of a message that declines."""
    latest: re.Pattern[str]
    """Words for the newest order."""
    query: re.Pattern[str]
    """Finds what to search for, as the group `query`."""
    product_noise: re.Pattern[str]
    """Everything in a question about reviews that is no part of a product's name."""
    product_split: re.Pattern[str]
    """What stands between two product names."""
    pronoun: re.Pattern[str]
    """Matches a whole name that only points back at products mentioned before."""
    name_key: str
    """The field of a tool result that holds a product's name in this language."""
    stop: str
    """The mark between two sentences, with its space."""
    day: Callable[[date], str]
    """Writes a date."""
    say: Mapping[str, str]
    """Templates of the answers."""
    errors: Mapping[str, str]
    """What to say about a tool's error code; `{text}` is the tool's own text."""
    status: Mapping[str, str]
    """An order's status in words."""
    event: Mapping[str, str]
    """A tracking event in words."""
