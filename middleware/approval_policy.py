"""Which tool calls need a person's consent, and whose: rules as data, and the judgement of one call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from inspect import iscoroutinefunction
from typing import Any, Final, Literal, get_args

from agentkit.errors import ConfigurationError
from agentkit.events import emit
from agentkit.tools import contract_of

__all__ = ["ApprovalRule", "Case", "DecisionType", "Effect"]

DecisionType = Literal["approve", "edit", "reject", "respond"]
Effect = Literal["read", "write"]
Predicate = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]

_EVERY_DECISION: Final[tuple[DecisionType, ...]] = get_args(DecisionType)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """Calls that must be approved, and by whom. What is left out does not narrow the rule.

    Where several rules cover one call, all of them must be satisfied.
    """

    tool: str | Collection[str] = ()
    """Names of the tools it covers. Default: all."""

    effect: Effect | None = None
    """Tools it covers by what they do. A tool that does not say counts as a write."""

    risk: str | Collection[str] = ()
    """Tools it covers by the risk label of their contract."""

    when: Predicate | None = None
    """`when(args, state)`: whether it covers a call with these arguments. Asked once per call, when the model has made
    it, and again of what a call was edited into, so it must depend on nothing else. Where it fails, a person is
    asked."""

    approvers: int = 1
    """How many different people must approve."""

    among: Collection[str] = ()
    """Who may decide, as `by` names them. Default: anybody."""

    expires: float | timedelta | None = None
    """Seconds after which a decision comes too late, and counts as a rejection. Counted from the model's call."""

    allow: Collection[DecisionType] = _EVERY_DECISION
    """What may be decided; `reject` always may."""

    label: str = ""
    """Names the rule in questions and records, unique in a policy. Default: made from what it covers."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ConfigurationError: If a value makes no sense, or nobody could ever satisfy the rule.
        """
        wrong = next((text for is_wrong, text in self._faults() if is_wrong), None)
        if wrong:
            raise ConfigurationError(f"ApprovalRule({self.name}): {wrong}.")

    def _faults(self) -> Iterable[tuple[bool, str]]:
        yield self.effect not in (None, *get_args(Effect)), f"effect is 'read' or 'write', not {self.effect!r}"
        yield self.approvers < 1, f"approvers must be at least 1, not {self.approvers}"
        yield isinstance(self.among, str), f"among is a list of names; write among=({self.among!r},)"
        few = bool(self.among) and len(set(self.among)) < self.approvers
        yield few, f"{self.approvers} people must approve, but only {len(set(self.among))} may"
        yield isinstance(self.allow, str), f"allow is a list of decisions; write allow=({self.allow!r},)"
        unknown = sorted(set(self.allow) - {*_EVERY_DECISION})
        yield bool(unknown), f"allow names {unknown}; there are {', '.join(_EVERY_DECISION)}"
        yield iscoroutinefunction(self.when), "when is an async function; it must be a plain one"
        yield self.seconds is not None and self.seconds <= 0, f"expires must be above 0 seconds, not {self.expires}"

    @property
    def seconds(self) -> float | None:
        """The seconds after which a decision comes too late."""
        return self.expires.total_seconds() if isinstance(self.expires, timedelta) else self.expires

    @property
    def name(self) -> str:
        """The label, or one made from what the rule covers."""
        if self.label:
            return self.label
        parts = {
            "tool": "|".join(self.tools),
            "effect": self.effect,
            "risk": "|".join(_names(self.risk)),
            "when": _called(self.when),
            "approvers": None if self.approvers == 1 else self.approvers,
        }
        return ", ".join(f"{key}={value}" for key, value in parts.items() if value) or "every call"

    @property
    def tools(self) -> Collection[str]:
        """The tools it names; empty means all."""
        return _names(self.tool)

    def may_cover(self, name: str, tool: Any) -> bool:
        """Whether it covers calls of this tool, whatever their arguments."""
        contract = contract_of(tool)
        return (
            (not self.tool or name in self.tools)
            and (self.effect is None or (contract.effect == "read") == (self.effect == "read"))
            and (not self.risk or contract.risk in _names(self.risk))
        )

    def covers(self, args: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
        """Whether it covers a call with these arguments."""
        if self.when is None:
            return True
        try:
            return bool(self.when(args, state))
        except Exception as error:
            failed = type(error).__name__
            text = f"the condition of the approval rule {self.name!r} failed with {failed}; a person is asked"
            emit("approval.condition_failed", text, level=logging.WARNING, rule=self.name, error_type=failed)
            return True


@dataclass(frozen=True, slots=True)
class Case:
    """The rules that one call falls under, and since when it waits."""

    rules: tuple[ApprovalRule, ...] = ()
    asked_at: datetime | None = None

    @property
    def needs_name(self) -> bool:
        """Whether a decision must say whose it is."""
        return any(rule.among or rule.approvers > 1 for rule in self.rules)

    @property
    def allowed(self) -> tuple[DecisionType, ...]:
        """What may be decided."""
        return tuple(d for d in _EVERY_DECISION if d == "reject" or all(d in rule.allow for rule in self.rules))

    @property
    def expires_at(self) -> datetime | None:
        """After this a decision comes too late."""
        limits = [rule.seconds for rule in self.rules if rule.seconds is not None]
        return self.asked_at + timedelta(seconds=min(limits)) if limits and self.asked_at else None

    def missing(self, consents: Sequence[str | None]) -> int:
        """How many people must still approve."""
        return max((rule.approvers - len(_counted(rule, consents)) for rule in self.rules), default=0)

    def entitled(self, by: str | None) -> bool:
        """Whether this person may decide."""
        return any(not rule.among or by in rule.among for rule in self.rules)

    @property
    def among(self) -> list[str]:
        """Those who may decide; empty means anybody."""
        if any(not rule.among for rule in self.rules):
            return []
        return sorted({name for rule in self.rules for name in rule.among})


def _counted(rule: ApprovalRule, consents: Sequence[str | None]) -> set[str | None]:
    return {by for by in consents if not rule.among or by in rule.among}


def _names(names: str | Collection[str]) -> Collection[str]:
    return (names,) if isinstance(names, str) else names


def _called(predicate: Predicate | None) -> str | None:
    """A name for a predicate, the same in every process; lambdas go by their line."""
    code = getattr(predicate, "__code__", None)
    if code is not None and code.co_name == "<lambda>":
        return f"lambda:{code.co_firstlineno}"
    return getattr(predicate, "__qualname__", None) or (type(predicate).__name__ if predicate else None)
