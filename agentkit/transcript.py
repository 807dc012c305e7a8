"""Well-formed message histories: what a strict provider accepts, and how to mend what is not.

All functions are pure. A call is identified by its AI message, its position in it and its id: real transcripts reuse
ids for other calls, so an answer counts only for the AI message it follows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, Literal, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    InvalidToolCall,
    ToolCall,
    ToolMessage,
)

__all__ = [
    "REWRITTEN",
    "SYNTHETIC",
    "UNKNOWN_OUTCOME",
    "close_calls",
    "closing_results",
    "is_well_formed",
    "last_turn",
    "open_invalid_calls",
    "pending_calls",
    "unique_ids",
    "well_formed",
    "with_calls",
]

SYNTHETIC: Final = "agentkit_synthetic"
"""Key in a ToolMessage's `additional_kwargs` that marks a result which no tool gave."""

REWRITTEN: Final = "agentkit_rewritten"
"""Key in a ToolMessage's `additional_kwargs` that marks the result of another call than the one that was asked for. Its
value is the note that stands before the result and says so."""

UNKNOWN_OUTCOME: Final = "agentkit_unknown_outcome"
"""Key in a ToolMessage's `additional_kwargs` that marks an error result of a call which may have taken effect."""

_NO_RESULT: Final = (
    "No result was recorded for this call of `{name}`: it was interrupted or withdrawn before it was answered, "
    "and whether it took effect is unknown. Check before calling it again."
)
_UNREADABLE: Final = (
    "Tool call {name} with id {id} could not be executed - arguments were malformed or truncated.{why} "
    "Send the call again with complete arguments, as one JSON object."
)
_CALL_BLOCKS: Final = frozenset({"tool_use", "function_call", "tool_call"})


def last_turn(messages: Sequence[AnyMessage]) -> tuple[AIMessage | None, list[ToolMessage]]:
    """The last AI message and the tool results after it; (None, []) where there is none."""
    results: list[Any] = []
    for message in reversed(messages):
        role = _role(type(message))
        if role == "ai":
            return cast(AIMessage, message), results[::-1]
        if role == "tool":
            results.append(message)
    return None, []


def pending_calls(messages: Sequence[AnyMessage], apart: Iterable[str] = ()) -> list[ToolCall]:
    """The last AI message's calls that have no result, without those of the tools named in `apart`."""
    ai, results = last_turn(messages)
    if ai is None:
        return []
    answered = {result.tool_call_id for result in results}
    return [call for call in ai.tool_calls if call["id"] not in answered and call["name"] not in apart]


def open_invalid_calls(messages: Sequence[AnyMessage]) -> list[InvalidToolCall]:
    """The last AI message's unreadable calls that have an id and no result."""
    ai, results = last_turn(messages)
    if ai is None:
        return []
    answered = {result.tool_call_id for result in results}
    return [call for call in ai.invalid_tool_calls if call["id"] is not None and call["id"] not in answered]


def close_calls(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The history with an error result, right after its message, for each call that nothing answered.

    Only what is missing is added, so this may be stored. Results that stand further down stay where they are
    (`well_formed` moves them for the request).
    """
    if is_well_formed(messages):
        return list(messages)
    mended: list[AnyMessage] = []
    for head, rest in _turns(messages):
        if head is not None:
            mended.append(head)
            if head.tool_calls or head.invalid_tool_calls:
                mended.extend(_made_up(head, {m.tool_call_id for m in rest if isinstance(m, ToolMessage)}))
        mended.extend(rest)
    return mended


def closing_results(messages: Sequence[AnyMessage], why: str) -> list[AnyMessage]:
    """Error results for the last AI message's open calls, when the run ends with them: they are not executed.

    Args:
        messages: The history.
        why: What ended the run, as a clause.
    """
    open_calls = [*pending_calls(messages), *open_invalid_calls(messages)]
    return [
        _result(str(call["id"]), call["name"] or "unknown", f"Not executed: {why}.")
        for call in open_calls
        if call["id"] is not None
    ]


def well_formed(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The history as a strict provider accepts it, for one request; never stored.

    Each call answered exactly once, right after its message; no results without a call; no calls without a name or an
    id; ids unique in their message; no call that stands only as a content block.
    """
    if is_well_formed(messages):
        return list(messages)
    sent: list[AnyMessage] = []
    for head, rest in _turns(messages):
        if head is not None:
            sent.extend(_turn(head, [m for m in rest if isinstance(m, ToolMessage)]))
        sent.extend(m for m in rest if not isinstance(m, ToolMessage))
    return sent


def is_well_formed(messages: Sequence[AnyMessage]) -> bool:
    """Whether a history is certainly well-formed; nearly all are, and on a long one a closer look takes long."""
    waiting: set[str | None] = set()
    message: Any
    for message in messages:
        role = _role(message.__class__)
        if role == "tool":
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(message.tool_call_id)
        elif waiting:
            return False
        elif role == "ai":
            if message.invalid_tool_calls or type(message.content) is not str:
                return False
            calls = message.tool_calls
            if len(calls) == 1 and calls[0]["name"] and calls[0]["id"]:
                waiting.add(calls[0]["id"])
            elif calls:
                waiting = {call["id"] for call in calls if call["name"] and call["id"]}
                if len(waiting) != len(calls):
                    return False
    return not waiting


@cache
def _role(kind: type) -> Literal["ai", "tool", "other"]:
    """What messages of a class are here; to ask pydantic of each message takes ten times as long."""
    return "ai" if issubclass(kind, AIMessage) else "tool" if issubclass(kind, ToolMessage) else "other"


def _turns(messages: Sequence[AnyMessage]) -> Iterator[tuple[AIMessage | None, list[AnyMessage]]]:
    """The history cut before each AI message: that message (None for what comes before the first) and what follows."""
    head: AIMessage | None = None
    rest: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, AIMessage):
            yield head, rest
            head, rest = message, []
        else:
            rest.append(message)
    yield head, rest


def _made_up(message: AIMessage, answered: Container[str | None]) -> Iterator[ToolMessage]:
    """An honest error result for each of a message's calls that has an id and no answer."""
    for call in message.invalid_tool_calls:
        if call["id"] is not None and call["id"] not in answered:
            why = f" ({call['error']}.)" if call.get("error") else ""
            yield _result(call["id"], call["name"] or "unknown", _UNREADABLE.format(**_named(call), why=why))
    for valid in message.tool_calls:
        if valid["id"] is not None and valid["id"] not in answered:
            yield _result(valid["id"], valid["name"], _NO_RESULT.format(name=valid["name"]))


def _named(call: InvalidToolCall) -> dict[str, str]:
    return {"name": call["name"] or "unknown", "id": str(call["id"])}


def _result(id: str, name: str, text: str) -> ToolMessage:
    return ToolMessage(text, tool_call_id=id, name=name, status="error", additional_kwargs={SYNTHETIC: True})


def _turn(message: AIMessage, results: list[ToolMessage]) -> Iterator[AnyMessage]:
    """One AI message without calls that cannot be sent, and its results, each once, in the order they came."""
    calls = [c for c in message.tool_calls if c["name"] and c["id"]]
    invalid = [c for c in message.invalid_tool_calls if c["name"] and c["id"] is not None]
    unique, readable = unique_ids([*calls, *invalid]), len(calls)
    ids = {c["id"] for c in unique}
    if unique != [*message.tool_calls, *message.invalid_tool_calls]:
        message = with_calls(message, unique[:readable], unique[readable:])
    message = _without_loose_blocks(message, ids)
    yield message
    if not ids:
        return
    renamed = _renamed([*calls, *invalid], unique)
    seen: set[str | None] = set()
    for result in results:
        if result.tool_call_id in seen and renamed.get(result.tool_call_id):
            result = result.model_copy(update={"tool_call_id": renamed[result.tool_call_id].pop(0)})
        if result.tool_call_id in ids and result.tool_call_id not in seen:
            seen.add(result.tool_call_id)
            yield result
    yield from _made_up(message, seen)


def _renamed(calls: Sequence[Any], unique: Sequence[Any]) -> dict[str, list[str]]:
    """For each repeated id, the new ids that its later calls were given."""
    found: dict[str, list[str]] = {}
    for old, new in zip(calls, unique, strict=True):
        if old["id"] != new["id"]:
            found.setdefault(str(old["id"]), []).append(str(new["id"]))
    return found


def unique_ids(calls: Sequence[Any]) -> list[Any]:
    """The calls, readable or not, later ones that repeat an id under a new id (`id#2`)."""
    taken = {call["id"] for call in calls}
    seen: set[str | None] = set()
    unique: list[Any] = []
    for call in calls:
        if call["id"] is not None and call["id"] in seen:
            number = 2
            while f"{call['id']}#{number}" in taken:
                number += 1
            call = {**call, "id": f"{call['id']}#{number}"}
            taken.add(call["id"])
        seen.add(call["id"])
        unique.append(call)
    return unique


def _without_loose_blocks(message: AIMessage, ids: Container[str | None]) -> AIMessage:
    """The message without content blocks that hold a call which is not among its calls."""
    if not isinstance(message.content, list):
        return message
    kept = [block for block in message.content if not _is_loose(block, ids)]
    return message if len(kept) == len(message.content) else message.model_copy(update={"content": kept})


def _is_loose(block: Any, ids: Container[str | None]) -> bool:
    if not isinstance(block, dict) or block.get("type") not in _CALL_BLOCKS:
        return False
    return (block.get("call_id") or block.get("id")) not in ids


def with_calls(message: AIMessage, calls: list[ToolCall], invalid: list[InvalidToolCall]) -> AIMessage:
    """The message with these calls. The provider's raw copy of the old ones is dropped, or it would be sent instead."""
    extra = {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"}
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": invalid, "additional_kwargs": extra})
