"""Is every tool call answered where a strict provider wants it answered?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from agentkit.testing.model import ScriptedModel

__all__ = ["assert_paired", "pairing_problems"]

_CALL_BLOCKS = ("tool_use", "function_call", "tool_call", "invalid_tool_call")


def pairing_problems(messages: Iterable[BaseMessage]) -> list[str]:
    """What a strict provider would refuse in a message history.

    Each tool call, whether it was parsed, could not be parsed, or stands in the message only as a content block,
    must have a name and an id that is unique in its message, and must be answered by exactly one result, directly
    after its message and before any other message. A result must answer such a call.

    Args:
        messages: The history, for example `model.requests[0].messages`.

    Returns:
        One line for each problem, with the position of the message; empty if the history is well formed.
    """
    problems: list[str] = []
    waiting: dict[str, int] = {}  # call id -> results still to come
    asked_at = 0

    def close() -> None:
        problems.extend(f"call {id!r} of message {asked_at} has no result" for id, left in waiting.items() if left)
        waiting.clear()

    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            id = message.tool_call_id
            if id not in waiting:
                problems.append(f"message {at} is a result for {id!r}, which the message before does not call")
            elif not waiting[id]:
                problems.append(f"message {at} is one more result for {id!r}")
            else:
                waiting[id] -= 1
            continue
        close()
        if isinstance(message, AIMessage):
            asked_at = at
            problems += _open(message, at, waiting)
    close()
    return problems


def _open(message: AIMessage, at: int, waiting: dict[str, int]) -> list[str]:
    """Note the calls of a message as waiting; return what is wrong with the calls themselves."""
    problems = []
    for name, id in _calls(message):
        if not name:
            problems.append(f"message {at} has a call without a name (id {id!r})")
        if not id:
            problems.append(f"message {at} has a call without an id (name {name!r})")
        elif id in waiting:
            problems.append(f"message {at} has two calls with the id {id!r}")
        else:
            waiting[id] = 1
    return problems


def _calls(message: AIMessage) -> list[tuple[Any, Any]]:
    """Name and id of each call. A block that repeats a listed call is that call."""
    listed = [(c["name"], c["id"]) for c in [*message.tool_calls, *message.invalid_tool_calls]]
    matched = Counter(id for _, id in listed)
    only_blocks = []
    for block in message.content:
        if isinstance(block, dict) and block.get("type") in _CALL_BLOCKS:
            id = block.get("call_id") or block.get("id")
            if matched[id]:
                matched[id] -= 1
            else:
                only_blocks.append((block.get("name"), id))
    return listed + only_blocks


def assert_paired(*what: ScriptedModel | Mapping[str, Any] | Sequence[BaseMessage]) -> None:
    """Assert that histories are well formed; see `pairing_problems`.

    Args:
        *what: Scripted models, of which every request is looked at; states or results with a `messages` entry;
            lists of messages.

    Raises:
        AssertionError: If there is a problem. The message lists them all.
    """
    problems: list[str] = []
    for number, item in enumerate(what, 1):
        if isinstance(item, ScriptedModel):
            for i, request in enumerate(item.requests, 1):
                problems += [f"request {i}: {p}" for p in pairing_problems(request.messages)]
        else:
            messages = item["messages"] if isinstance(item, Mapping) else item
            problems += [f"history {number}: {p}" for p in pairing_problems(messages)]
    assert not problems, "tool calls and results do not pair:\n" + "\n".join(problems)
