"""What a strict provider refuses in the body of a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["refusals"]


def refusals(body: Mapping[str, Any]) -> list[str]:
    """Why a strict provider would refuse this body: one line for each reason, empty if it would not.

    Args:
        body: The body of a request for chat completions (`messages`) or responses (`input`).
    """
    if "messages" in body:
        return [*_system(body["messages"]), *_pairs(body["messages"]), *_tools(body)]
    return _response_pairs(body["input"])


def _system(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    roles = [message["role"] for message in messages]
    late = [at for at, role in enumerate(roles) if role in ("system", "developer") and at > 0]
    nobody = [] if set(roles) - {"system", "developer"} else ["nothing but a system message"]
    return [f"message {at} is a system message, and not the first" for at in late] + nobody


def _pairs(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    found: list[str] = []
    asked: list[str] = []
    answered: list[str] = []
    for at, message in enumerate([*messages, {"role": "end"}]):
        if message["role"] == "tool":
            answered.append(message["tool_call_id"])
            continue
        if asked != answered:
            found.append(f"before message {at}: calls {asked} are answered by {answered}")
        calls = message.get("tool_calls") or []
        asked, answered = [call["id"] for call in calls], []
        found += [f"message {at}: {fault}" for call in calls for fault in _call(call)]
        found += [f"message {at}: two calls with id {id!r}" for id, times in Counter(asked).items() if times > 1]
        if message["role"] == "assistant" and not calls and not message.get("content"):
            found.append(f"message {at}: an assistant message with neither text nor calls")
    return found


def _call(call: Mapping[str, Any]) -> list[str]:
    faults = [] if call["id"] else ["a call without an id"]
    return faults if call["function"]["name"] else [*faults, "a call without a name"]


def _tools(body: Mapping[str, Any]) -> list[str]:
    names = Counter(tool["function"]["name"] for tool in body.get("tools", ()))
    return [f"tool {name!r} is offered {times} times" for name, times in names.items() if times > 1]


def _response_pairs(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each call must be answered once, after it was made and before anybody else speaks."""
    found: list[str] = []
    open_calls: list[str] = []
    for at, item in enumerate([*items, {"type": "end"}]):
        if item.get("type") == "function_call":
            open_calls.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] in open_calls:
                open_calls.remove(item["call_id"])
            else:
                found.append(f"item {at} answers {item['call_id']!r}, which is not an open call")
        elif open_calls:
            found.append(f"before item {at}: calls {open_calls} are not answered")
            open_calls = []
    return found
