"""What a rule of `Gates` is: a small frozen object that reads the counts and says when enough is enough.

`rule | rule` trips when either does, `rule & rule` when both do. Where a rule has `nudge_at`, the model is told first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from numbers import Number
from typing import ClassVar, Literal

from agentkit.errors import ConfigurationError
from agentkit.exits import Exit, Reason
from agentkit.middleware.gate_counts import Counts

__all__ = ["PER", "Per", "Rule", "Standing", "Threshold"]

Per = Literal["run", "thread"]
PER = {"run": "user turn", "thread": "thread"}


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands when its rules are asked."""

    counts: Counts
    asked: Counter[str] = field(default_factory=Counter)
    """Calls that the model asks for now and that were not started, by tool."""
    last_step: int | None = None
    """The number of steps after which the run ends, where somebody set `remaining_steps`."""


class Rule:
    """A rule. Derive from it to write your own; only `tripped` must be written."""

    def tripped(self, standing: Standing) -> Exit | None:
        """Why the run has to end, if so."""
        raise NotImplementedError

    def nudge(self, standing: Standing) -> str | None:
        """What the model is told before it comes to that, if anything."""
        return None

    def blind(self, standing: Standing) -> str | None:
        """What the rule could not count, if anything; it is logged."""
        return None

    def parts(self) -> Iterator[Rule]:
        """The rules that this one is made of."""
        yield self

    def __or__(self, other: Rule) -> Rule:
        return _Either((self, other))

    def __and__(self, other: Rule) -> Rule:
        return _Both((self, other))


@dataclass(frozen=True)
class _Joined(Rule):
    rules: tuple[Rule, ...]

    def blind(self, standing: Standing) -> str | None:
        return "; ".join(found for rule in self.rules if (found := rule.blind(standing))) or None

    def parts(self) -> Iterator[Rule]:
        for rule in self.rules:
            yield from rule.parts()


class _Either(_Joined):
    def tripped(self, standing: Standing) -> Exit | None:
        return next((ended for rule in self.rules if (ended := rule.tripped(standing))), None)

    def nudge(self, standing: Standing) -> str | None:
        return "\n".join(told for rule in self.rules if (told := rule.nudge(standing))) or None


class _Both(_Joined):
    def tripped(self, standing: Standing) -> Exit | None:
        ended = [rule.tripped(standing) for rule in self.rules]
        found = [one for one in ended if one]
        return Exit(found[0].reason, "; ".join(one.detail for one in found)) if len(found) == len(ended) else None

    def nudge(self, standing: Standing) -> str | None:
        """Only when each part is near its end or past it, and one of them has something to say."""
        told = [rule.nudge(standing) for rule in self.rules]
        near = [said or rule.tripped(standing) for said, rule in zip(told, self.rules, strict=True)]
        return ("\n".join(said for said in told if said) or None) if all(near) else None


@dataclass(frozen=True)
class Threshold(Rule):
    """A rule that trips when a count reaches `n`, and nudges from `nudge_at` on."""

    reason: ClassVar[Reason] = "step_budget"
    advice: ClassVar[str] = "Finish with what you have."

    n: float
    """The count at which the run ends."""
    nudge_at: float | None = field(default=None, kw_only=True)
    """The count from which the model is told, in each request, that the end is near. None: it is not told."""

    def __post_init__(self) -> None:
        """Refuse a rule that can never work as meant.

        Raises:
            ConfigurationError: If a threshold is no number or not positive, the nudge would not come before the end, or
                `per` is neither `"run"` nor `"thread"`.
        """
        name = type(self).__name__
        for value in (self.n, self.nudge_at):
            if value is not None and not isinstance(value, Number):
                raise ConfigurationError(f"{name} counts up to a number, not {value!r}.")
        if not self.n > 0:
            raise ConfigurationError(f"{name}({self.n}) would end every run before it starts; give more than 0.")
        if self.nudge_at is not None and not 0 < self.nudge_at < self.n:
            raise ConfigurationError(
                f"{name}({self.n}, nudge_at={self.nudge_at}) can never nudge; nudge_at must lie between 0 and {self.n}."
            )
        if getattr(self, "per", "run") not in PER:
            raise ConfigurationError(f"{name} counts per 'run' (a user turn) or per 'thread', not {self.per!r}.")  # type: ignore[attr-defined]

    def _count(self, standing: Standing) -> tuple[float, str]:
        """The count, and a clause that says what it is."""
        raise NotImplementedError

    def tripped(self, standing: Standing) -> Exit | None:
        """Why the run has to end: the count reached `n`."""
        count, what = self._count(standing)
        return Exit(self.reason, what) if count >= self.n else None

    def nudge(self, standing: Standing) -> str | None:
        """What the model is told from `nudge_at` on."""
        count, what = self._count(standing)
        return f"{what}. {self.advice}" if self.nudge_at is not None and count >= self.nudge_at else None
