"""Granularity `"hook"`: a node of the graph is one stop of the plan, a hook, the model or a tool call.

`walk` has the other one, where a node goes on from stop to stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.channels import EphemeralValue
from langgraph.channels.base import BaseChannel
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Send

from agentkit._compat import read_state
from agentkit.handover import leave
from agentkit.local_state import after, can_fold, is_plain
from agentkit.pool import unseen
from agentkit.routing import DECIDING, Destination, Router
from agentkit.state import HANDOVER, TALLY
from agentkit.topology import TOOLS, Stop

__all__ = ["HookRoute", "Node", "Route", "Step"]


class Step(Protocol):
    """What is done at a stop."""

    def run(self, given: Any, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Do it, sync, and return the update of state."""
        ...

    async def arun(self, given: Any, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Do it, async."""
        ...


class Node(Runnable[Any, Any]):
    """A node with a boundary after its one stop."""

    def __init__(self, stop: Stop, step: Step, *, passes: bool = False) -> None:
        """Run one stop; where it `passes`, a jump of the hook before it goes on to the end of the line."""
        self.name = stop.name
        self._step = step
        self._is_tools = stop.kind == "tools"
        self._passes = passes

    @property
    def tools_by_name(self) -> Mapping[str, Any]:
        """The tools that run here, which pictures of the graph show."""
        tools: Mapping[str, Any] = getattr(self._step, "tools_by_name", {})
        return tools

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the stop."""
        if not self._is_tools and input.get(HANDOVER):
            return leave(input)
        if self._passes and _is_jumping(input):
            return {"jump_to": input["jump_to"]}
        return self._step.run(input, get_runtime(), unseen(config or {}))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the stop."""
        if not self._is_tools and input.get(HANDOVER):
            return leave(input)
        if self._passes and _is_jumping(input):
            return {"jump_to": input["jump_to"]}
        return await self._step.arun(input, get_runtime(), config or {})


def _is_jumping(state: Mapping[str, Any]) -> bool:
    """Whether a hook has jumped, in a run that no limit has ended."""
    return state.get("jump_to") is not None and not (state.get(TALLY) or {}).get("stopped")


class Route(Runnable[Any, Any]):
    """The edge that leads on from a stop."""

    def __init__(self, stop: Stop, router: Router) -> None:
        """Lead on from a stop."""
        self.name = f"after {stop.name}"
        self._stop = stop
        self._router = router

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str | list[Send]:
        """The next node, or one dispatch per tool call."""
        destination = self._next(input)
        return destination if isinstance(destination, str) else [Send(TOOLS, [call]) for call in destination]

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str | list[Send]:
        """The next node, or one dispatch per tool call."""
        return self.invoke(input, config)

    def _next(self, state: Mapping[str, Any]) -> Destination:
        return self._router.after(self._stop, state)


class HookRoute(Route):
    """The edge that leads on from a node with one stop.

    It is given what the node returned, and applies that to the few fields that decide. LangGraph would copy every field
    of the state and apply all that was written once more, at each edge of each turn.
    """

    def __init__(self, stop: Stop, router: Router, channels: Mapping[str, BaseChannel[Any, Any, Any]]) -> None:
        """Lead on from a stop, over a state of these fields."""
        super().__init__(stop, router)
        self._fields = tuple(channels)
        self._deciding = {field: channels[field] for field in DECIDING if field in channels}
        self._is_short = can_fold(self._deciding)
        self._kept = tuple(key for key, one in self._deciding.items() if not isinstance(one, EphemeralValue))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str | list[Send]:
        """The next node, or one dispatch per tool call."""
        if self._stop.rule == "line" and (input is None or (isinstance(input, dict) and not input.get("jump_to"))):
            return self._stop.following
        return super().invoke(self._state(input, config or {}))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str | list[Send]:
        """The next node, or one dispatch per tool call."""
        return self.invoke(input, config)

    def _state(self, returned: Any, config: RunnableConfig) -> Mapping[str, Any]:
        """The state as the stop left it."""
        if not self._is_short or not is_plain(returned):
            return read_state(config, self._fields, written=True)
        return after(self._deciding, read_state(config, self._kept), returned)
