"""What a run came to: in words for stderr, and as data for `--json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from agentkit.cli.screen import Code

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from agentkit.exits import Exit

__all__ = ["ANSWERED", "as_data", "code_of", "questions", "why"]

ANSWERED: Final = frozenset(("answer", "structured", "return_direct", "jump"))
"""The reasons of an ending that somebody asked for; all others are worth a word."""


def code_of(ended: Exit | None, paused: bool) -> Code:
    """The exit code of a run."""
    return Code.findings if paused or (ended is not None and ended.reason not in ANSWERED) else Code.fine


def why(ended: Exit | None) -> str | None:
    """Why a run ended, if not by an answer."""
    if ended is None or ended.reason in ANSWERED:
        return None
    detail = f": {ended.detail}" if ended.detail else ""
    return f"ended by {ended.reason}{detail}"


def questions(paused: StateSnapshot | Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a paused run waits for, one entry per question."""
    found = paused.get("__interrupt__", ()) if isinstance(paused, Mapping) else paused.interrupts
    return [{"id": one.id, "value": one.value} for one in found]


def as_data(thread: str | None, values: Any, old: set[str], ended: Exit | None, waiting: list[dict[str, Any]]) -> Any:
    """A run's result as plain data: the answer, the new messages, the other fields of state, and how it ended.

    Args:
        thread: The thread, if one is kept.
        values: The final state.
        old: Ids of the messages that were there before.
        ended: Why it ended.
        waiting: As `questions` returns them.
    """
    from langchain_core.messages import AIMessage, BaseMessage

    state = dict(values) if isinstance(values, Mapping) else {"value": values}
    messages = [one for one in state.pop("messages", ()) if isinstance(one, BaseMessage) and one.id not in old]
    state.pop("__interrupt__", None)
    last = messages[-1] if messages else None
    answered = isinstance(last, AIMessage) and not last.tool_calls
    return {
        "thread": thread,
        "status": "waiting" if waiting else "done",
        "exit": asdict(ended) if ended is not None else None,
        "answer": str(last.text) if answered and last is not None else None,
        "messages": [message_data(one) for one in messages],
        "waiting": waiting,
        "state": state,
    }


def message_data(message: Any) -> dict[str, Any]:
    """A message as plain data, without fields that say nothing."""
    data = message.model_dump(exclude_none=True)
    return {key: value for key, value in data.items() if value not in ({}, [], "") or key == "content"}
