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

__all__ = ["continued", "settle", "settled"]

Graph = CompiledStateGraph[Any, Any, Any, Any]


def continued(graph: Graph, input: Any, config: RunnableConfig | None) -> RunnableConfig | None:
    """The stored thread that this input is a new message of, if it is one."""
    at: Mapping[str, Any] = {
        **(graph.config or {}).get("configurable", {}),
        **(config or {}).get("configurable", {}),
    }
    resumes = input is None or isinstance(input, Command)
    stored = isinstance(graph.checkpointer, BaseCheckpointSaver) and "thread_id" in at
    return RunnableConfig(configurable={**at}) if stored and not resumes and "checkpoint_id" not in at else None


def settle(graph: Graph, thread: RunnableConfig) -> None:
    """Write what the finished tasks of an unfinished step returned; the others are given up."""
    if _is_half_done(graph.get_state(thread)):
        graph.update_state(thread, None, as_node=END)


async def settled(chunks: AsyncGenerator[Any, None], graph: Graph, thread: RunnableConfig) -> AsyncGenerator[Any, None]:
    """The chunks of a run that starts after `settle`."""
    if _is_half_done(await graph.aget_state(thread)):
        await graph.aupdate_state(thread, None, as_node=END)
    async with aclosing(chunks):
        async for chunk in chunks:
            yield chunk


def _is_half_done(snapshot: StateSnapshot) -> bool:
    done = [task.result is not None for task in snapshot.tasks]
    return any(done) and not all(done)
