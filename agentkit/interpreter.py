"""Walks the plan: a node of the graph starts at a stop and runs until the next boundary.

Where boundaries are is a policy:

- `"hook"`: after every stop. Each hook, model call and tool call is a node of its own.
- `"turn"`: after a turn of the loop. The model and all hooks around it are one node, the tools the other.

What was done in a node is never repeated: when a later stop of it fails or pauses, the node returns what was written so
far, and a node of its own starts at that stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.channels import EphemeralValue
from langgraph.channels.base import BaseChannel
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command, Send

from agentkit._compat import is_resumed, read_state
from agentkit.errors import ForgottenPause
from agentkit.handover import leave
from agentkit.local_state import LocalState, after, can_fold, is_plain
from agentkit.pool import unseen
from agentkit.routing import DECIDING, Destination, Router
from agentkit.state import FAILURE, HANDOVER, POSITION, TALLY
from agentkit.topology import END, MODEL, TOOLS, Plan, Stop

__all__ = ["HookRoute", "Node", "Route", "Step", "TurnNode", "TurnRoute", "at_start"]


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


# ---- granularity "turn"

_AT: Final = "at"  # go on at this stop
_PAUSED: Final = "paused"  # go on at this stop, which paused when it was not alone in its node
_AFTER: Final = "after"  # this stop is done, and the tools it led to


def at_start(plan: Plan) -> tuple[str, str]:
    """The position of a run that starts."""
    return (_AT, plan.entry)


@dataclass(slots=True)
class _Walk:
    """One node's way along the plan, from a stop to the next boundary."""

    router: Router
    state: LocalState
    stop: Stop
    moved: bool = False
    must_pause: bool = False
    """Whether the first stop has paused before and was not answered yet."""
    position: tuple[str, str] | None = None
    """Where the run stands when the node is left; None while it walks."""

    def took(self, result: Any) -> None:
        """A stop is done: go on to the next, or up to the boundary."""
        if self.must_pause:
            raise ForgottenPause(*self.stop.name.rsplit(".", 1))
        self.state.apply(result)
        self.moved = True
        destination = self.router.after(self.stop, self.state.values)
        if not isinstance(destination, str) or destination == END:
            self.position = (_AFTER, self.stop.name)
        elif destination == self.router.plan.loop_entry and self.stop.kind != "before_agent":
            self.position = (_AT, destination)  # a new turn
        else:
            self.stop = self.router.plan[destination]

    def broke(self, error: Exception) -> Any:
        """A stop failed or paused: what was done is kept, and the error is raised by a node that did nothing else."""
        if not self.moved:
            raise error
        if isinstance(error, GraphBubbleUp):  # raised again when the stop runs again
            self.position = (_PAUSED, self.stop.name)
            return self.left()
        self.position = (_AT, self.stop.name)
        return self.left([(FAILURE, error)])

    def left(self, extra: Sequence[tuple[str, Any]] = ()) -> Any:
        """What the node writes."""
        return Command(update=[*self.state.writes(), (POSITION, self.position), *extra])


class TurnNode(Runnable[Any, Any]):
    """The node that runs the model and the hooks around it."""

    def __init__(
        self, steps: Mapping[str, Step], router: Router, channels: Mapping[str, BaseChannel[Any, Any, Any]]
    ) -> None:
        """Walk the plan."""
        self.name = MODEL
        self._steps = steps
        self._router = router
        self._channels = channels

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run until the next boundary."""
        if input.get(HANDOVER):
            return leave(input)
        config = unseen(config or {})
        walk, runtime = self._walk(input, config), get_runtime()
        while walk.position is None:
            try:
                walk.took(self._steps[walk.stop.name].run(walk.state.values, runtime, config))
            except Exception as error:
                return walk.broke(error)
        return walk.left()

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run until the next boundary."""
        if input.get(HANDOVER):
            return leave(input)
        config = config or {}
        walk, runtime = self._walk(input, config), get_runtime()
        while walk.position is None:
            try:
                walk.took(await self._steps[walk.stop.name].arun(walk.state.values, runtime, config))
            except Exception as error:
                return walk.broke(error)
        return walk.left()

    def _walk(self, input: Mapping[str, Any], config: RunnableConfig) -> _Walk:
        if (failure := input.get(FAILURE)) is not None:
            raise failure
        plan = self._router.plan
        way, name = input.get(POSITION) or at_start(plan)
        if way == _AFTER:  # the tools have run since
            destination = self._router.after(plan[TOOLS], input)
            name = destination if isinstance(destination, str) else plan.loop_entry
        must_pause = way == _PAUSED and not is_resumed(config)
        return _Walk(self._router, LocalState(self._channels, input), plan[name], must_pause=must_pause)


class TurnRoute(Route):
    """The edge that leads on from a node of a turn: from the tools, or from the stop at which the walk was left."""

    def _next(self, state: Mapping[str, Any]) -> Destination:
        stop = self._stop
        if stop.kind != "tools":
            way, name = state.get(POSITION) or (_AFTER, MODEL)
            if way != _AFTER:
                return MODEL
            stop = self._router.plan[name]
        destination = self._router.after(stop, state)
        return MODEL if isinstance(destination, str) and destination != END else destination
