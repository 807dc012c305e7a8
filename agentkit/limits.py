"""Default brakes of the loop: what a run may spend before it is ended, and how that is counted.

The counts stand in state under one private key, so they survive pause and resume; a new user turn starts them anew.
Only the model step writes them, so parallel calls cannot race on them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage
from typing_extensions import TypedDict

from agentkit.exits import Exit
from agentkit.transcript import last_turn

__all__ = ["Limits"]

_UNLIMITED: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Brakes that no healthy run meets. Each counts per user turn and survives pause and resume.

    Where one is met the run ends through the usual exit path, with a closing message and a reason in `exit_of`.
    The two that concern a required structured answer raise instead, since there is no answer to give.
    """

    model_calls: int = 100
    """Model calls per user turn, retries included; 1,542 recorded conversations needed at most 30."""

    malformed_answers: int = 3
    """Answers in a row that hold only calls which could not be read."""

    structured_retries: int = 3
    """Tries for a required structured answer; then `MissingStructuredOutput` is raised."""

    same_call_failures: int = 5
    """Failures of one call, same tool and same arguments, with no success of it between."""

    failed_turns: int = 20
    """Answers in a row of which every call failed, whatever the calls."""

    @classmethod
    def none(cls) -> Limits:
        """Limits that never end a run; only the engine's recursion limit is left."""
        return cls(
            model_calls=_UNLIMITED,
            malformed_answers=_UNLIMITED,
            structured_retries=_UNLIMITED,
            same_call_failures=_UNLIMITED,
            failed_turns=_UNLIMITED,
        )

    def __post_init__(self) -> None:
        """Refuse limits below one.

        Raises:
            ValueError: If a limit is below one.
        """
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"Limits.{name} must be at least 1, not {getattr(self, name)}; see Limits.none()")


class Tally(TypedDict, total=False):
    """What the loop has counted since the last user turn. Plain data, so that any saver can store it."""

    allowed: int  # model calls that are left of an outer run's steps, if there is one
    model_calls: int
    malformed: int
    structured: int
    failed_turns: int
    failed: dict[str, int]  # failures by call
    stopped: bool


def count_results(tally: Tally, messages: Sequence[AnyMessage]) -> Tally:
    """The tally with the results of the last answer's calls counted; a parallel batch counts once."""
    ai, results = last_turn(messages)
    if ai is None or not ai.tool_calls or not results:
        return tally
    status: dict[str | None, str] = {result.tool_call_id: result.status for result in results}
    answered = [call for call in ai.tool_calls if call["id"] in status]
    if not answered:
        return tally
    if not tally.get("failed") and all(status[call["id"]] == "success" for call in answered):
        return {**tally, "failed": {}, "failed_turns": 0}  # nothing to tell calls apart for
    outcome = {_key(call): status[call["id"]] for call in answered}
    failed = {key: n for key, n in tally.get("failed", {}).items() if outcome.get(key) != "success"}
    for key, result in outcome.items():
        if result == "error":
            failed[key] = failed.get(key, 0) + 1
    all_failed = all(result == "error" for result in outcome.values())
    return {**tally, "failed": failed, "failed_turns": tally.get("failed_turns", 0) + 1 if all_failed else 0}


def count_reply(tally: Tally, reply: AIMessage | None, attempts: int, *, structured_failed: bool) -> Tally:
    """The tally after a model step.

    Args:
        tally: What was counted before it.
        reply: The model's answer.
        attempts: How often the model was called for it.
        structured_failed: Whether a structured answer was required and did not validate.
    """
    malformed = reply is not None and bool(reply.invalid_tool_calls) and not reply.tool_calls
    return {
        **tally,
        "model_calls": tally.get("model_calls", 0) + attempts,
        "malformed": tally.get("malformed", 0) + 1 if malformed else 0,
        "structured": tally.get("structured", 0) + 1 if structured_failed else 0,
    }


def before_call(limits: Limits, tally: Tally) -> Exit | None:
    """Why the model may not be called again, if so."""
    spent = tally.get("model_calls", 0)
    allowed = min(limits.model_calls, tally.get("allowed", limits.model_calls))
    if spent >= allowed:
        return Exit("step_budget", f"{spent} model calls were made, {allowed} are allowed per user turn", "limits")
    for key, n in tally.get("failed", {}).items():
        if n >= limits.same_call_failures:
            return Exit("repeated_call", f"the call {_shown(key)} failed {n} times", "limits")
    if (turns := tally.get("failed_turns", 0)) >= limits.failed_turns:
        return Exit("failures", f"every tool call of the last {turns} answers failed", "limits")
    return None


def after_reply(limits: Limits, tally: Tally) -> Exit | None:
    """Why the run ends with this reply, if so."""
    if (n := tally.get("malformed", 0)) >= limits.malformed_answers:
        return Exit("failures", f"the model's tool calls could not be read {n} times in a row", "limits")
    return None


def closing_text(ending: Exit) -> str:
    """What the user is told when a limit ends the run."""
    return f"I had to stop before I was done: {ending.detail}."


def _key(call: Mapping[str, Any]) -> str:
    """One text for calls that are the same: tool and arguments, whatever the order of keys."""
    return f"{call['name']}({json.dumps(call['args'], sort_keys=True, default=str, ensure_ascii=False)})"


def _shown(key: str, length: int = 80) -> str:
    name = key.split("(", 1)[0]
    return f"`{name}`" if len(key) > length else f"`{key}`"
