"""A conversation as turns: what the customer said, and which tools were called for it with what result."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

__all__ = ["Call", "Result", "Turn", "turns"]

_CODE = re.compile(r"\b([a-z]+(?:_[a-z]+)+): ")


@dataclass(frozen=True)
class Call:
    """A tool call the planner wants."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What became of one call."""

    data: Mapping[str, Any]
    """The tool's answer; empty after a failure."""
    error: str | None = None
    """The error code, `other` when there is none, or None after a success."""
    text: str = ""
    """The tool's own words after a failure."""


@dataclass(frozen=True)
class Turn:
    """One message of the customer and the rounds of tool calls made for it."""

    text: str
    rounds: tuple[tuple[Result, ...], ...]
    """Finished rounds, in order; the results of a round are in the order of its calls."""


def turns(messages: Sequence[BaseMessage]) -> list[Turn]:
    """Cut a message history at the customer's messages.

    What comes before the first of them is left out, and so is a round some of whose calls have no result.
    """
    found: list[Turn] = []
    for index, message in enumerate(messages):
        if isinstance(message, HumanMessage):
            found.append(Turn(str(message.text), ()))
        elif isinstance(message, AIMessage) and message.tool_calls and found:
            results = _results(message.tool_calls, messages[index + 1 :])
            if results is not None:
                found[-1] = Turn(found[-1].text, (*found[-1].rounds, results))
    return found


def _results(calls: Sequence[ToolCall], later: Sequence[BaseMessage]) -> tuple[Result, ...] | None:
    answers: dict[str, ToolMessage] = {}
    for message in later:
        if not isinstance(message, ToolMessage):
            break
        answers[message.tool_call_id] = message
    if any(call["id"] not in answers for call in calls):
        return None
    return tuple(_read(answers[str(call["id"])]) for call in calls)


def _read(message: ToolMessage) -> Result:
    text = str(message.text)
    if message.status != "error":
        try:
            data = json.loads(text)
        except ValueError:
            data = None
        if isinstance(data, dict):
            return Result(data)
    if text.startswith("Not executed"):  # by whoever had to consent
        return Result({}, "not_executed", text)
    code = _CODE.search(text)
    return Result({}, code[1] if code else "other", text[code.end() :] if code else text)
