"""Rules of `Gates` about what a run may spend: steps, tool calls, tokens, money, time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from agentkit.exits import Exit, Reason
from agentkit.middleware.gate_counts import Spent
from agentkit.middleware.gate_rules import PER, Per, Standing, Threshold

__all__ = ["CostBudget", "Deadline", "Price", "StepBudget", "TokenBudget", "ToolCallBudget"]


@dataclass(frozen=True)
class StepBudget(Threshold):
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
        return self.n - self.left(standing), f"{made} model calls were made, {allowed} are allowed per {PER[per]}"


@dataclass(frozen=True)
class ToolCallBudget(Threshold):
    """Ends the run when the model asks for more than `n` tool calls. The batch that would exceed it is not started."""

    n: float
    tool: str | None = None
    """The tool whose calls are counted; None: all tools. Failed calls count, and so do unknown tools."""
    per: Per = field(default="run", kw_only=True)
    """Whether a user turn is counted or the whole thread."""

    def _count(self, standing: Standing) -> tuple[float, str]:
        made = self._of(standing.counts[self.per]["tool_calls"])
        of = f" of `{self.tool}`" if self.tool else ""
        return made, f"{made} calls{of} were made, {self.n:g} are allowed per {PER[self.per]}"

    def tripped(self, standing: Standing) -> Exit | None:
        """Why the run has to end: what is asked for now would exceed `n`."""
        made, what = self._count(standing)
        more = self._of(standing.asked)
        return Exit(self.reason, f"{what}, and {more} more were asked for") if more and made + more > self.n else None

    def _of(self, calls: Mapping[str, int]) -> int:
        return sum(calls.values()) if self.tool is None else calls.get(self.tool, 0)


@dataclass(frozen=True)
class TokenBudget(Threshold):
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
        return used, f"{used} tokens were used, {self.n:g} are allowed per {PER[self.per]}{_unreported(spent)}"

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
class CostBudget(Threshold):
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
        what = f"the model calls cost {cost:.4g}, {self.n:g} is allowed per {PER[self.per]}"
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
class Deadline(Threshold):
    """Ends the run when a user turn has been at work for `n` seconds. A pause, for a person say, is not counted.

    It is looked at before and after each model call: it stops the loop, not a call that hangs.
    """

    reason: ClassVar[Reason] = "deadline"

    def _count(self, standing: Standing) -> tuple[float, str]:
        elapsed = standing.counts["elapsed"]
        return elapsed, f"the run took {elapsed:.1f} seconds, {self.n:g} are allowed"


def _missing_usage(spent: Spent) -> str | None:
    return f"{spent['without_usage']} model calls reported no usage" if spent["without_usage"] else None


def _unreported(spent: Spent) -> str:
    missing = _missing_usage(spent)
    return f" ({missing})" if missing else ""
