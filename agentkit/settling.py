"""A new message on a thread whose batch of tool calls is only half done: what was done is kept.

The engine drops the results of a step that did not finish as a whole when new input comes. Effects would then have no
result in the history, and decisions no record.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

__all__ = ["is_new_turn", "settle", "settled"]

Graph = CompiledStateGraph[Any, Any, Any, Any]


def is_new_turn(graph: Graph, input: Any, config: RunnableConfig | None) -> bool:
    """Whether this input is a new message at the end of a thread that is stored."""
    at: Mapping[str, Any] = (config or {}).get("configurable", {})
    resumes = input is None or isinstance(input, Command)
    stored = isinstance(graph.checkpointer, BaseCheckpointSaver) and "thread_id" in at
    return stored and not resumes and "checkpoint_id" not in at


def settle(graph: Graph, config: RunnableConfig) -> None:
    """Write what the finished tasks of an unfinished step returned; the others are given up."""
    if _is_half_done(graph.get_state(config)):
        graph.update_state(config, None, as_node=END)


async def settled(chunks: AsyncGenerator[Any, None], graph: Graph, config: RunnableConfig) -> AsyncGenerator[Any, None]:
    """The chunks of a run that starts after `settle`."""
    if _is_half_done(await graph.aget_state(config)):
        await graph.aupdate_state(config, None, as_node=END)
    async with aclosing(chunks):
        async for chunk in chunks:
            yield chunk


def _is_half_done(snapshot: StateSnapshot) -> bool:
    done = [task.result is not None for task in snapshot.tasks]
    return any(done) and not all(done)
