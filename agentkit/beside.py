"""What a tool wrap writes beside a call's result, without changing what wraps further out see of it.

In the loop it is noted aside and written once all wraps are done. Under LangChain's own factory nobody could do that,
and the result becomes a `Command`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from agentkit import executions

__all__ = ["also_for", "beside", "complete"]


def beside(result: Any, fields: Mapping[str, Any], writer: object) -> Any:
    """What a `wrap_tool_call` returns to write state fields together with a result.

    Args:
        result: What the call gave.
        fields: The state fields. Each needs a reducer if parallel calls write it.
        writer: The middleware. If a wrap further out calls it again, only what it writes last counts.
    """
    return result if executions.keep({**fields}, writer) else _with_fields(result, fields)


def also_for(result: Any, call_id: str, others: Sequence[str]) -> Any:
    """What a `wrap_tool_call` returns to answer other calls with the same result, as it is when all wraps are done.

    Args:
        result: What the call gave.
        call_id: The call's id.
        others: The ids of the other calls.
    """
    return result if executions.share(others) else _shared(result, call_id, others)


def complete(result: Any, call_id: str) -> Any:
    """The result of a call when all wraps are done, with what they want written beside it."""
    fields, others = executions.kept()
    result = _shared(result, call_id, others)
    for one in fields:
        result = _with_fields(result, one)
    return result


def _with_fields(result: Any, fields: Mapping[str, Any]) -> Any:
    """A call's result as one update of state that writes these fields too."""
    if isinstance(result, ToolMessage):
        return Command(update={"messages": [result], **fields})
    if _is_update(result) and not result.update.keys() & fields.keys():
        return replace(result, update={**result.update, **fields})
    return [*(result if isinstance(result, list) else [result]), Command(update={**fields})]


def _shared(result: Any, call_id: str, others: Sequence[str]) -> Any:
    """A call's result, and a copy of it for each of the others."""
    parts = result if isinstance(result, list) else [result]
    answer = next((m for part in parts for m in _messages(part) if m.tool_call_id == call_id), None)
    if answer is None or not others:
        return result
    copies = [answer.model_copy(update={"id": None, "tool_call_id": id}) for id in others]
    if isinstance(result, ToolMessage):
        return Command(update={"messages": [result, *copies]})
    return [*parts, Command(update={"messages": copies})]


def _messages(part: Any) -> list[ToolMessage]:
    if isinstance(part, ToolMessage):
        return [part]
    found = part.update.get("messages", []) if _is_update(part) else []
    return [m for m in found if isinstance(m, ToolMessage)]


def _is_update(part: Any) -> bool:
    return isinstance(part, Command) and isinstance(part.update, dict) and part.graph is None
