"""Rules of `Gates` about what goes wrong again and again, and the rules that it watches by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from agentkit.errors import ConfigurationError
from agentkit.exits import Reason
from agentkit.middleware.gate_budgets import StepBudget
from agentkit.middleware.gate_counts import Mark
from agentkit.middleware.gate_rules import Rule, Standing, Threshold

__all__ = ["DEFAULT_RULES", "ConsecutiveFailures", "RepeatedCall", "SameCallFailed"]


@dataclass(frozen=True)
class ConsecutiveFailures(Threshold):
    """Ends the run after `n` answers in a row of which every tool call failed; one that works starts the count anew."""

    reason: ClassVar[Reason] = "failures"
    advice: ClassVar[str] = "Try another way, or say what is missing."

    n: float = 3
    of: Literal["any", "tool"] = field(default="any", kw_only=True)
    """`"any"`: all calls of an answer are looked at together. `"tool"`: each tool (or unknown name) by itself."""

    def __post_init__(self) -> None:
        """Refuse a rule that can never work as meant.

        Raises:
            ConfigurationError: As every threshold, and if `of` is neither `"any"` nor `"tool"`.
        """
        super().__post_init__()
        if self.of not in ("any", "tool"):
            raise ConfigurationError(f"ConsecutiveFailures looks at 'any' tool or at each 'tool', not {self.of!r}.")

    def _count(self, standing: Standing) -> tuple[float, str]:
        if self.of == "any":
            times = standing.counts["failed_answers"]
            return times, f"every tool call of the last {times} answers failed"
        tools = standing.counts["failed_tools"]
        worst = max(tools, key=lambda tool: tools[tool], default="")
        return tools.get(worst, 0), f"`{worst}` failed in {tools.get(worst, 0)} answers in a row"


@dataclass(frozen=True)
class SameCallFailed(Threshold):
    """Ends the run when one call, same tool and same arguments, failed `n` times without succeeding between."""

    reason: ClassVar[Reason] = "repeated_call"
    advice: ClassVar[str] = "Sent again it will hardly help: change its arguments, or say what is missing."

    n: float = 2

    def _count(self, standing: Standing) -> tuple[float, str]:
        times, tool = _most(standing.counts["failed_calls"])
        return times, f"the same call of `{tool}` failed {times} times"


@dataclass(frozen=True)
class RepeatedCall(Threshold):
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
