"""Commands of tools to a parent graph: kept until the whole batch is answered, then sent as one.

The engine would leave at once with the first of them, and lose the others and the results of the calls beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langgraph.types import Command

from agentkit.state import HANDOVER, updates_of
from agentkit.transcript import last_turn

__all__ = ["collected", "leave"]

State = Mapping[str, Any]


def collected(outputs: Any, calls: Sequence[ToolCall], state: State) -> Any:
    """What calls returned, with commands to a parent graph kept until the whole batch is answered."""
    if not isinstance(outputs, list) or not any(_leads_out(output) for output in outputs):
        return outputs
    ai, _ = last_turn(state["messages"])
    if ai is not None and len(ai.tool_calls) == 1:
        return outputs  # nothing to wait for
    kept = [output for output in outputs if not _leads_out(output)]
    leaving = [output for output in outputs if _leads_out(output)]
    ids = {call["id"] for call in calls}
    answers = [
        m for command in leaving for m in _messages(command) if isinstance(m, ToolMessage) and m.tool_call_id in ids
    ]
    return [*kept, Command(update={HANDOVER: leaving, "messages": answers})]


def _leads_out(output: Any) -> bool:
    return isinstance(output, Command) and output.graph == Command.PARENT


def leave(state: State) -> Command[Any]:
    """One command to the parent graph made of all that the batch returned, with every call answered."""
    leaving: list[Command[Any]] = list(state[HANDOVER])
    ai, results = last_turn(state["messages"])
    updates: list[tuple[str, Any]] = []
    messages: list[Any] = []
    for command in leaving:
        for key, value in updates_of(command):
            if key == "messages":
                messages.extend(value if isinstance(value, list) else [value])
            elif (key, value) not in updates:
                updates.append((key, value))
    if messages:
        updates.append(("messages", _answered(messages, ai, results)))
    gotos: list[Any] = []
    for command in leaving:
        for goto in command.goto if isinstance(command.goto, list | tuple) else [command.goto]:
            if goto and goto not in gotos:
                gotos.append(goto)
    return Command(graph=Command.PARENT, update=updates, goto=gotos)


def _answered(messages: list[Any], ai: AIMessage | None, results: Sequence[ToolMessage]) -> list[Any]:
    """The messages with the whole batch answered, where they hold the message that asked for it."""
    place = max((i for i, m in enumerate(messages) if ai is not None and getattr(m, "id", None) == ai.id), default=None)
    if place is None:
        return messages
    there = {m.tool_call_id for m in messages[place + 1 :] if isinstance(m, ToolMessage)}
    missing = [result for result in results if result.tool_call_id not in there]
    end = place + 1
    while end < len(messages) and isinstance(messages[end], ToolMessage):
        end += 1
    return [*messages[:end], *missing, *messages[end:]]


def _messages(command: Command[Any]) -> list[Any]:
    found = dict(updates_of(command)).get("messages") or []
    return found if isinstance(found, list) else [found]
