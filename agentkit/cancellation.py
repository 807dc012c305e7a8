"""What a cancelled run leaves behind: the same record of unfinished steps, whatever the durability.

With `durability="exit"` the engine writes once, when the run is left, and notes the cancelled step only afterwards; the
note is lost, and a cancelled step looks as if it had never started. Here it is written after all.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.types import ERROR
from langgraph.graph.state import CompiledStateGraph

__all__ = ["recorded"]


async def recorded(
    chunks: AsyncGenerator[Any, None], graph: CompiledStateGraph[Any, Any, Any, Any], config: RunnableConfig | None
) -> AsyncGenerator[Any, None]:
    """The chunks of a run that writes at its exit; if it is cancelled, its unfinished steps are noted as such."""
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    except CancelledError as error:
        if config is not None and isinstance(graph.checkpointer, BaseCheckpointSaver):
            await _note(graph, graph.checkpointer, config, error)
        raise


async def _note(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    saver: BaseCheckpointSaver[Any],
    config: RunnableConfig,
    error: BaseException,
) -> None:
    snapshot = await graph.aget_state(config)
    for task in snapshot.tasks:
        if task.result is None and task.error is None and not task.interrupts:
            await saver.aput_writes(snapshot.config, [(ERROR, error)], task.id)
