"""What the ledger keeps, as plain data, and what is to be done about a call that it knows already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from agentkit.errors import InvalidSettlement

__all__ = ["Call", "Claim", "Doubt", "Effect", "Found", "Settlement", "Status", "Verdict", "judge"]

Status = Literal["started", "done", "failed", "in_doubt"]
"""`started`: it is executed now, or was when its process died. `done`: it took effect. `failed`: it did not.
`in_doubt`: nobody knows."""
Verdict = Literal["run", "recorded", "other_arguments", "doubt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call that is about to be executed."""

    key: str
    """Names the effect."""
    call_key: str
    """Names the call: its idempotency key. The same as `key` unless the application names effects itself."""
    effect_name: str | None = None
    """The application's name of the effect, e.g. an order's number."""
    thread_id: str | None
    call_id: str | None
    tool: str
    args: Mapping[str, Any] = field(repr=False)
    repeatable: bool = False
    """Executing it again with the same key is harmless."""
    transactional: bool = False
    """Its effect happens in the ledger's transaction or not at all."""

    @property
    def args_json(self) -> str:
        """The arguments as JSON, keys in order."""
        return json.dumps(dict(self.args), sort_keys=True, default=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One entry of the ledger."""

    key: str
    call_key: str
    effect_name: str | None
    thread_id: str | None
    call_id: str | None
    tool: str
    args: dict[str, Any] = field(repr=False)
    fingerprint: str = field(repr=False)
    """A hash of the arguments."""
    status: Status
    attempt: int
    """How often it was started, counted from 1."""
    outcome: Any = field(default=None, repr=False)
    """What the model was given: a message, a command, or a list of them. None: nothing is recorded."""
    error: str | None = None
    """The class of the exception that ended the last attempt."""
    settled_by: str | None = None
    """Who settled a doubt about it."""
    started_at: datetime
    finished_at: datetime | None = None


@dataclass(slots=True)
class Claim:
    """The right to execute a call, once."""

    call: Call
    attempt: int
    connection: Any = None
    """The open transaction, while the tool is in it."""
    used: bool = False
    """Whether the tool has entered its transaction."""
    committed: bool = False
    """Whether the effect was committed, together with the entry."""
    result: Any = None
    """What the tool wants recorded with it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A call that may not simply be executed."""

    effect: Effect
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Doubt:
    """An effect of which nobody knows whether it happened, and the call that asks for it now."""

    effect: Effect
    """What was started, with which arguments, when."""
    call: Call
    """What is asked for now: the same call on a resumed run, or another one for the same effect."""

    @property
    def id(self) -> str:
        """Names this doubt: another one about the same effect, after another attempt, has another id."""
        return f"{self.effect.key}#{self.effect.attempt}"


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of an effect that was in doubt.

    Args:
        outcome: `"done"`: it took effect. `"not_done"`: it did not, and nothing works on it any more: it may be
            executed. `"unknown"`: nobody knows yet; the model is told not to repeat it.
        result: What the tool would have returned, where it is known.
        by: Who says so, for the record.

    Raises:
        InvalidSettlement: If `outcome` is none of these.
    """

    outcome: Literal["done", "not_done", "unknown"]
    result: Any = None
    by: str | None = None

    def __post_init__(self) -> None:
        if self.outcome not in ("done", "not_done", "unknown"):
            raise InvalidSettlement(f"its outcome is 'done', 'not_done' or 'unknown', not {self.outcome!r}.")
        if self.outcome != "done" and self.result is not None:
            raise InvalidSettlement(f"only what is done has a result, and this is {self.outcome!r}.")


def fingerprint(args_json: str) -> str:
    """A hash of arguments, to tell whether two calls have the same."""
    return sha256(args_json.encode()).hexdigest()


def judge(effect: Effect, call: Call) -> Verdict:
    """What is to be done about a call whose effect stands in the ledger.

    Args:
        effect: The entry.
        call: The call that asks for it.
    """
    same_arguments = effect.fingerprint == fingerprint(call.args_json)
    same = effect.call_key == call.call_key and same_arguments
    if effect.status == "done":
        return "recorded" if same_arguments else "other_arguments"
    if effect.status == "failed":
        return "recorded" if same and effect.outcome is not None else "run"
    return "run" if call.transactional or (call.repeatable and same) else "doubt"
