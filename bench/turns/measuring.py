"""Rounds: every contender of a scenario once in each, so that what disturbs the machine disturbs all alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.turns.scenario import CONTENDERS, OURS, Prepared, Row, as_it_stands

Result = dict[str, Any]
"""A row as it is written down: `row`, `what`, `unit`, `rounds`, `values` by contender, `ratios` by `"turn / bare"` and
so on; each of the last two a median and the middle half."""


@dataclass
class Measured:
    """The values of a scenario: by contender, for each round and row."""

    rows: Sequence[Row]
    rounds: dict[str, list[Sequence[float]]] = field(default_factory=dict)

    def results(self) -> list[Result]:
        """The rows."""
        return [self._result(place, row) for place, row in enumerate(self.rows)]

    def _result(self, place: int, row: Row) -> Result:
        values = {
            name: [of_round[place] for of_round in self.rounds[name]] for name in CONTENDERS if name in self.rounds
        }
        ratios = {
            f"{ours} / {other}": spread([a / b for a, b in zip(values[ours], values[other], strict=True)])
            for ours in OURS
            for other in values
            if other not in OURS and min(values[other]) > 0
        }
        return {
            "row": row.name,
            "what": row.what,
            "unit": row.unit,
            "rounds": len(values[OURS[0]]),
            "values": {name: spread(each) for name, each in values.items()},
            "ratios": ratios,
        }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, and where the middle half of the values begins and ends."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return {"median": round(middle, 4), "low": round(low, 4), "high": round(high, 4)}


def measure(prepared: Prepared, rounds: int, tell: Callable[[int, str], None] = lambda number, name: None) -> Measured:
    """Once to warm up, then round by round, each contender first in turn.

    Args:
        prepared: The scenario.
        rounds: How many.
        tell: Is told the round, 0 for the warm-up, and the contender whose turn it is.
    """
    found = Measured(prepared.rows)
    names = list(prepared.samplers)
    with as_it_stands():
        for number in range(0 if prepared.warm else 1, rounds + 1):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                tell(number, name)
                values = prepared.samplers[name]()
                if number:
                    found.rounds.setdefault(name, []).append(values)
    return found
