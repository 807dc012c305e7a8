"""The rules of `Gates`: small frozen objects that read the counts and say when enough is enough.

`rule | rule` trips when either does, `rule & rule` when both do. Where a rule has `nudge_at`, the model is told first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from agentkit.errors import ConfigurationError
from agentkit.exits import Exit, Reason
from agentkit.middleware.gate_counts import Counts, Mark, Spent

__all__ = [
    "DEFAULT_RULES",
    "ConsecutiveFailures",
    "CostBudget",
    "Deadline",
    "Price",
    "RepeatedCall",
    "Rule",
    "SameCallFailed",
    "Standing",
    "StepBudget",
    "TokenBudget",
    "ToolCallBudget",
]

Per = Literal["run", "thread"]
_PER = {"run": "user turn", "thread": "thread"}


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
class _Threshold(Rule):
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
            ConfigurationError: If a threshold is not positive, the nudge would not come before the end, or `per` is
                neither `"run"` nor `"thread"`.
        """
        name = type(self).__name__
        if not self.n > 0:
            raise ConfigurationError(f"{name}({self.n}) would end every run before it starts; give more than 0.")
        if self.nudge_at is not None and not 0 < self.nudge_at < self.n:
            raise ConfigurationError(
                f"{name}({self.n}, nudge_at={self.nudge_at}) can never nudge; nudge_at must lie between 0 and {self.n}."
            )
        if getattr(self, "per", "run") not in _PER:
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


@dataclass(frozen=True)
class StepBudget(_Threshold):
    """Ends the run when the model has answered `n` times and still asks for tools, which are then not executed.

    How many are left after the current one stands in the state field `remaining_steps`, which any hook or tool may read
    or write: what is written there holds for the rest of the user turn.
    """

    n: float = 10
    per: Per = field(default="run", kw_only=True)
    """Whether a user turn is counted or the whole thread."""

    def left(self, standing: Standing) -> int:
        """How many answers are left."""
        if standing.last_step is not None:
            return standing.last_step - standing.counts["run"]["steps"]
        return int(self.n) - standing.counts[self.per]["steps"]

    def _count(self, standing: Standing) -> tuple[float, str]:
        per = "run" if standing.last_step is not None else self.per
        allowed = int(self.n) if standing.last_step is None else standing.last_step
        made = standing.counts[per]["steps"]
        return self.n - self.left(standing), f"{made} model calls were made, {allowed} are allowed per {_PER[per]}"


@dataclass(frozen=True)
class ToolCallBudget(_Threshold):
    """Ends the run when the model asks for more than `n` tool calls. The batch that would exceed it is not started."""

    n: float
    tool: str | None = None
    """The tool whose calls are counted; None: all tools. Failed calls count, and so do unknown tools."""
    per: Per = field(default="run", kw_only=True)
    """Whether a user turn is counted or the whole thread."""

    def _count(self, standing: Standing) -> tuple[float, str]:
        made = self._of(standing.counts[self.per]["tool_calls"])
        of = f" of `{self.tool}`" if self.tool else ""
        return made, f"{made} calls{of} were made, {self.n:g} are allowed per {_PER[self.per]}"

    def tripped(self, standing: Standing) -> Exit | None:
        """Why the run has to end: what is asked for now would exceed `n`."""
        made, what = self._count(standing)
        more = self._of(standing.asked)
        return Exit(self.reason, f"{what}, and {more} more were asked for") if more and made + more > self.n else None

    def _of(self, calls: Mapping[str, int]) -> int:
        return sum(calls.values()) if self.tool is None else calls.get(self.tool, 0)


@dataclass(frozen=True)
class TokenBudget(_Threshold):
    """Ends the run when its model calls have used `n` tokens, prompts and answers together.

    What counts is what the provider reports for each reply, those that were asked again among them. Failed attempts
    report nothing.
    """

    reason: ClassVar[Reason] = "token_budget"

    per: Per = field(default="run", kw_only=True)
    """Whether a user turn is counted or the whole thread."""
    assume: int | None = field(default=None, kw_only=True)
    """Tokens that a call without reported usage counts as. None: it is not counted, and a warning is logged."""

    def _count(self, standing: Standing) -> tuple[float, str]:
        spent = standing.counts[self.per]
        used = sum(usage["input"] + usage["output"] for usage in spent["usage"].values())
        used += spent["without_usage"] * (self.assume or 0)
        return used, f"{used} tokens were used, {self.n:g} are allowed per {_PER[self.per]}{_unreported(spent)}"

    def blind(self, standing: Standing) -> str | None:
        """Whether calls without usage were left out."""
        return _missing_usage(standing.counts[self.per]) if self.assume is None else None


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, per million tokens, in any currency."""

    input: float
    output: float
    cached: float | None = None
    """Price of prompt tokens that the provider read from its cache; None: the same as `input`."""


@dataclass(frozen=True)
class CostBudget(_Threshold):
    """Ends the run when its model calls have cost `n`, in the currency of the prices."""

    reason: ClassVar[Reason] = "cost_budget"

    prices: Mapping[str, Price]
    """By model name as the provider reports it, or the beginning of it; `"*"`: every other model."""
    per: Per = field(default="run", kw_only=True)
    """Whether a user turn is counted or the whole thread."""
    assume: float | None = field(default=None, kw_only=True)
    """What a call counts as whose usage or price is unknown. None: it is not counted, and a warning is logged."""

    def _count(self, standing: Standing) -> tuple[float, str]:
        spent = standing.counts[self.per]
        cost = (spent["without_usage"] + self._unpriced(spent)) * (self.assume or 0.0)
        for model, usage in spent["usage"].items():
            if price := self._price(model):
                cached = price.input if price.cached is None else price.cached
                fresh = usage["input"] - usage["cached"]
                cost += (fresh * price.input + usage["cached"] * cached + usage["output"] * price.output) / 1e6
        what = f"the model calls cost {cost:.4g}, {self.n:g} is allowed per {_PER[self.per]}"
        return cost, what + _unreported(spent)

    def blind(self, standing: Standing) -> str | None:
        """Whether calls without usage or price were left out."""
        if self.assume is not None:
            return None
        spent = standing.counts[self.per]
        unknown = sorted(model or "(unnamed)" for model in spent["usage"] if not self._price(model))
        unpriced = f"no price is known for {', '.join(unknown)}" if unknown else None
        return "; ".join(found for found in (_missing_usage(spent), unpriced) if found) or None

    def _price(self, model: str) -> Price | None:
        fitting = [name for name in self.prices if model.startswith(name)]
        return self.prices[max(fitting, key=len)] if fitting else self.prices.get("*")

    def _unpriced(self, spent: Spent) -> int:
        return sum(usage["calls"] for model, usage in spent["usage"].items() if not self._price(model))


@dataclass(frozen=True)
class Deadline(_Threshold):
    """Ends the run when a user turn has been at work for `n` seconds. A pause, for a person say, is not counted.

    It is looked at before and after each model call: it stops the loop, not a call that hangs.
    """

    reason: ClassVar[Reason] = "deadline"

    def _count(self, standing: Standing) -> tuple[float, str]:
        elapsed = standing.counts["elapsed"]
        return elapsed, f"the run took {elapsed:.1f} seconds, {self.n:g} are allowed"


@dataclass(frozen=True)
class ConsecutiveFailures(_Threshold):
    """Ends the run after `n` answers in a row of which every tool call failed; one that works starts the count anew."""

    reason: ClassVar[Reason] = "failures"
    advice: ClassVar[str] = "Try another way, or say what is missing."

    n: float = 3
    of: Literal["any", "tool"] = field(default="any", kw_only=True)
    """`"any"`: all calls of an answer are looked at together. `"tool"`: each tool (or unknown name) by itself."""

    def _count(self, standing: Standing) -> tuple[float, str]:
        if self.of == "any":
            times = standing.counts["failed_answers"]
            return times, f"every tool call of the last {times} answers failed"
        tools = standing.counts["failed_tools"]
        worst = max(tools, key=lambda tool: tools[tool], default="")
        return tools.get(worst, 0), f"`{worst}` failed in {tools.get(worst, 0)} answers in a row"


@dataclass(frozen=True)
class SameCallFailed(_Threshold):
    """Ends the run when one call, same tool and same arguments, failed `n` times without succeeding between."""

    reason: ClassVar[Reason] = "repeated_call"
    advice: ClassVar[str] = "Sent again it will hardly help: change its arguments, or say what is missing."

    n: float = 2

    def _count(self, standing: Standing) -> tuple[float, str]:
        times, tool = _most(standing.counts["failed_calls"])
        return times, f"the same call of `{tool}` failed {times} times"


@dataclass(frozen=True)
class RepeatedCall(_Threshold):
    """Ends the run when one call gave the same result `n` times with no successful write between.

    The order of arguments does not matter, and calls of unknown tools count. A result that differs, as a poll's that
    goes on, starts the count anew. What is a write, the tools' contract says, or `Gates(writes=...)`.
    """

    reason: ClassVar[Reason] = "repeated_call"
    advice: ClassVar[str] = "Its result will not change: use the one you have."

    n: float = 3
    exempt: tuple[str, ...] = field(default=(), kw_only=True)
    """Tools that may be called again and again, to wait for something."""

    def _count(self, standing: Standing) -> tuple[float, str]:
        marks = {key: mark for key, mark in standing.counts["same_calls"].items() if mark["tool"] not in self.exempt}
        times, tool = _most(marks)
        return times, f"the same call of `{tool}` gave the same result {times} times"


DEFAULT_RULES: tuple[Rule, ...] = (
    StepBudget(10),
    SameCallFailed(3, nudge_at=2),
    ConsecutiveFailures(3, nudge_at=2),
    RepeatedCall(3, nudge_at=2),
)
"""What `Gates()` watches: thresholds that hardly ever harmed a conversation which went well (docs/middleware/gates)."""


def _most(marks: Mapping[str, Mark]) -> tuple[int, str]:
    worst = max(marks.values(), key=lambda mark: mark["times"], default=None)
    return (worst["times"], worst["tool"]) if worst else (0, "")


def _missing_usage(spent: Spent) -> str | None:
    return f"{spent['without_usage']} model calls reported no usage" if spent["without_usage"] else None


def _unreported(spent: Spent) -> str:
    missing = _missing_usage(spent)
    return f" ({missing})" if missing else ""
