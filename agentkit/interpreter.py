"""Walks the plan: a node of the graph starts at a stop and runs until the next boundary.

Where boundaries are is a policy. At the default granularity, `"hook"`, there is one after every stop: each hook, model
call and tool call is a node of its own, streamed, traced, interruptible and checkpointed by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from langchain_core.messages import ToolCall
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Send

from agentkit.routing import Router
from agentkit.topology import TOOLS, Stop

__all__ = ["Node", "Route", "Step"]


class Step(Protocol):
    """What is done at a stop."""

    def run(self, given: Any, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Do it, sync, and return the update of state."""
        ...

    async def arun(self, given: Any, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Do it, async."""
        ...


class Node(Runnable[Any, Any]):
    """A node of the graph, in both its sync and async form."""

    def __init__(self, stop: Stop, step: Step) -> None:
        """Start at a stop."""
        self.name = stop.name
        self._step = step

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run until the next boundary."""
        return self._step.run(input, get_runtime(), config or {})

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run until the next boundary."""
        return await self._step.arun(input, get_runtime(), config or {})


class Route(Runnable[Any, Any]):
    """The edge that leads on from a stop."""

    def __init__(self, stop: Stop, router: Router) -> None:
        """Lead on from a stop."""
        self.name = f"after {stop.name}"
        self._stop = stop
        self._router = router

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str | list[Send]:
        """The next node, or one dispatch per tool call."""
        return _dispatched(self._router.after(self._stop, input))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str | list[Send]:
        """The next node, or one dispatch per tool call."""
        return self.invoke(input, config)


def _dispatched(destination: str | Sequence[ToolCall]) -> str | list[Send]:
    return destination if isinstance(destination, str) else [Send(TOOLS, [call]) for call in destination]
