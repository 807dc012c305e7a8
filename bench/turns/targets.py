"""What each row should at most be, for each granularity, beside what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.turns.measuring import Result

ITSELF = ""
"""Not a ratio: the value of the row."""


@dataclass(frozen=True)
class Target:
    """The most that a row should be, as a share of another contender's; None where nothing was set."""

    row: str
    turn: float | None
    hook: float | None = None
    against: str = "langchain"


TARGETS = (
    Target("S1", 0.40, 0.65),
    Target("S1", 1.80, against="bare"),
    Target("S1", 0.36, against="pydantic-ai"),
    Target("S1", 0.38, against="openai-agents"),
    Target("S1h", 0.25, 0.80),
    Target("S1w", 0.32),
    Target("S1s", 0.40),
    Target("S2-0", 0.55),
    Target("S2-0", 0.40, against="pydantic-ai"),
    Target("S2-0", 0.36, against="openai-agents"),
    Target("S2-3", 0.30),
    Target("S2-10", 0.16, 0.90),
    Target("S3-100", 0.27),
    Target("S3-200", 0.19, 0.45),
    Target("S3-400", 0.14),
    Target("S3-100.bytes", 0.025),
    Target("S3-200.bytes", 0.015),
    Target("S3.exp.bytes", 1.10, 1.10, ITSELF),
    Target("S3.exp.time", 1.25, against=ITSELF),
    Target("S3-100.load", 2.2),
    Target("S4", 0.80, 0.85),
    Target("S4", 1.12, against="bare"),
    Target("S5", 0.58, 0.58),
    Target("S5", 1.12, against="bare"),
    Target("S5a", 0.96),
    Target("S5a", 1.12, against="bare"),
    Target("S6", 0.45, 0.50),
    Target("S6s", 0.50),
    Target("S7", 0.90),
    Target("S7m", 0.10),
    Target("S7r", 0.97),
    Target("S7c", 0.92),
    Target("S7b", 1.0),
    Target("S8", 0.36),
)


@dataclass(frozen=True)
class Verdict:
    """A target of one granularity, and what was measured: a median and the middle half."""

    most: float | None
    measured: Mapping[str, float] | None

    @property
    def met(self) -> bool | None:
        """Whether the median is within it; None where there is no target, or nothing was measured."""
        return None if self.most is None or self.measured is None else self.measured["median"] <= self.most


def verdict(target: Target, granularity: str, results: Sequence[Result]) -> Verdict:
    """Compare."""
    most: float | None = getattr(target, granularity)
    row: Result | None = next((result for result in results if result["row"] == target.row), None)
    if row is None:
        return Verdict(most, None)
    found: Mapping[str, Any] = row["values"] if target.against == ITSELF else row["ratios"]
    return Verdict(most, found.get(granularity if target.against == ITSELF else f"{granularity} / {target.against}"))
