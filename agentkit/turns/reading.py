"""Where a thread stands: whether its last turn is over, waits, or broke off. Pure functions of snapshots."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import All, StateSnapshot

from agentkit.exits import Result, read_exit
from agentkit.run import AgentGraph

__all__ = ["TURN", "broke_off", "has_message", "is_last_turn", "paused_after", "result_of", "turn_of"]

TURN: Final = "agentkit_turn"
"""The key in a checkpoint's metadata that names the message whose turn wrote it."""


def turn_of(snapshot: StateSnapshot) -> str | None:
    """The message whose turn the thread's last run belongs to, if it was a turn."""
    named = (snapshot.metadata or {}).get(TURN)
    return named if isinstance(named, str) else None


def is_last_turn(snapshot: StateSnapshot, message_id: str) -> bool:
    """Whether the message's turn is the thread's last."""
    users = [message.id for message in _messages(snapshot) if isinstance(message, HumanMessage)]
    return message_id in (turn_of(snapshot), users[-1] if users else None)


def has_message(snapshot: StateSnapshot, message_id: str) -> bool:
    """Whether the message stands in the history."""
    return any(message.id == message_id for message in _messages(snapshot))


def broke_off(graph: CompiledStateGraph[Any, Any, Any, Any], snapshot: StateSnapshot) -> bool:
    """Whether the thread's last run stopped before its end without waiting for anybody, apart from static pauses."""
    # `next` is empty already when the step's results are kept, before the checkpoint that takes them in
    if not snapshot.tasks or _meets(graph.interrupt_before_nodes, [task.name for task in snapshot.tasks]):
        return False
    waiting = {interrupt.id for interrupt in snapshot.interrupts}
    pauses = [any(interrupt.id in waiting for interrupt in task.interrupts) for task in snapshot.tasks]
    is_open = [task.result is None and not paused for task, paused in zip(snapshot.tasks, pauses, strict=True)]
    return any(is_open) or not any(pauses)


def paused_after(graph: CompiledStateGraph[Any, Any, Any, Any], previous: StateSnapshot) -> bool:
    """Whether a run that went on from this state pauses at the next one (`interrupt_after`)."""
    return _meets(graph.interrupt_after_nodes, [task.name for task in previous.tasks])


def result_of(graph: CompiledStateGraph[Any, Any, Any, Any], snapshot: StateSnapshot) -> Any:
    """What `invoke` returned, or would have, when the thread came to this state."""
    channels = graph.output_channels
    if isinstance(channels, str):
        return snapshot.values.get(channels)
    values = {key: snapshot.values[key] for key in channels if key in snapshot.values}
    if snapshot.interrupts:
        return {**values, "__interrupt__": list(snapshot.interrupts)}
    return Result(values, read_exit(snapshot.values)) if isinstance(graph, AgentGraph) else values


def _messages(snapshot: StateSnapshot) -> list[BaseMessage]:
    messages = snapshot.values.get("messages") if isinstance(snapshot.values, dict) else None
    return [message for message in messages or () if isinstance(message, BaseMessage)]


def _meets(nodes: All | Collection[str], names: Collection[str]) -> bool:
    return bool(names) and (nodes == "*" or any(name in nodes for name in names))
