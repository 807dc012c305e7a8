"""Granularity `"turn"`: a node of the graph starts at a stop of the plan and goes on to the next boundary.

A boundary is where the tools run, and where a new turn of the loop begins: the model and all hooks around it are one
node, the tools the other. A run that nobody observes has none: one node walks through to the end.

What was done in a node is never repeated: when a later stop of it fails or pauses, the node returns what was written so
far, and a node of its own starts at that stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from langchain_core.messages import ToolCall
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.channels.base import BaseChannel
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command, Send

from agentkit._compat import is_resumed, read_state
from agentkit.errors import ForgottenPause
from agentkit.handover import leave
from agentkit.inner_steps import InnerSteps, is_odd
from agentkit.interpreter import Node, Route, Step
from agentkit.local_state import LocalState
from agentkit.pool import Outcome, Raised, Returned, unseen
from agentkit.routing import Destination, Router
from agentkit.state import FAILURE, HANDOVER, POSITION
from agentkit.topology import END, MODEL, TOOLS, Plan, Stop

__all__ = ["ToolsNode", "TurnNode", "TurnRoute", "at_start"]

_AT: Final = "at"  # go on at this stop
_PAUSED: Final = "paused"  # go on at this stop, which paused when it was not alone in its node
_AFTER: Final = "after"  # this stop is done, and the tools it led to
_THROUGH: Final = "through"  # go on at this stop, and to the end

Position: TypeAlias = tuple[str, str]


def at_start(plan: Plan, *, through: bool = False) -> Position:
    """The position of a run that starts; one that goes `through` has no boundaries."""
    return (_THROUGH if through else _AT, plan.entry)


@dataclass(frozen=True, kw_only=True)
class _Left(Command[Any]):  # type: ignore[misc]  # a Command is frozen, in a way that type checkers cannot see
    """What a node of a turn returns: what was written, and where the run goes on."""

    destination: str | list[Send]


@dataclass(slots=True)
class _Walk:
    """One node's way along the plan, from a stop to the next boundary."""

    router: Router
    state: LocalState
    stop: Stop
    through: bool = False
    """Whether it goes on past boundaries."""
    must_pause: bool = False
    """Whether the first stop has paused before and was not answered yet."""
    moved: bool = False
    position: Position | None = None
    """Where the run stands at a boundary; None while it walks."""
    destination: str | list[Any] = MODEL
    """What follows a boundary: a stop, the calls to run, or what they gave."""

    @property
    def calls(self) -> list[ToolCall]:
        """The calls to run at a boundary."""
        return [] if isinstance(self.destination, str) else self.destination

    def took(self, result: Any) -> None:
        """A stop is done: go on to the next, or up to the boundary."""
        if self.must_pause:
            raise ForgottenPause(*self.stop.name.rsplit(".", 1))
        self.state.apply(result)
        self.moved = True
        destination = self.router.after(self.stop, self.state.values)
        if not isinstance(destination, str) or destination == END:
            self.position, self.destination = (_AFTER, self.stop.name), destination
        elif destination == self.router.plan.loop_entry and self.stop.kind != "before_agent":
            self.position = (_AT, destination)  # a new turn
        else:
            self.stop = self.router.plan[destination]

    def took_tools(self, outcomes: Sequence[Outcome[Any]]) -> bool:
        """The calls of a batch are done, in a walk that goes through; False if only the engine can take what they gave.

        It is then handed to the node that would have run them.
        """
        if any(map(is_odd, outcomes)):
            self.destination = [*outcomes]
            return False
        plan = self.router.plan
        self.state.apply([outcome.value for outcome in outcomes if isinstance(outcome, Returned)])
        self.destination = self.router.after(plan[TOOLS], self.state.values) or plan.loop_entry
        if isinstance(self.destination, str):
            self.position = (_AT, self.destination)
        return True

    def goes_on(self, runtime: Runtime[Any]) -> bool:
        """Pass a boundary, if this walk may."""
        if not self.through or self.destination == END or runtime.drain_requested or self.state.values.get(HANDOVER):
            return False
        if isinstance(self.destination, str):
            assert self.position is not None
            self.stop = self.router.plan[self.position[1]]
            self.position, self.destination = None, MODEL
        return True

    def broke(self, error: Exception) -> Any:
        """A stop failed or paused: what was done is kept, and the error is raised by a node that did nothing else."""
        if not self.moved:
            raise error
        if isinstance(error, GraphBubbleUp):  # raised again when the stop runs again
            self.position = (_PAUSED, self.stop.name)
            return self.left()
        if self.through:  # nobody can ask what was done
            raise error
        self.position = (_AT, self.stop.name)
        return self.left([(FAILURE, error)])

    def left(self, extra: Sequence[tuple[str, Any]] = ()) -> Any:
        """What the node returns."""
        writes = self.state.outcome() if self.through else self.state.writes()
        destination: str | list[Send] = END if self.destination == END else MODEL
        if not isinstance(self.destination, str):
            given = [one if isinstance(one, Raised | Returned) else [one] for one in self.destination]
            destination = [Send(TOOLS, one) for one in given]
        return _Left(update=[*writes, (POSITION, self.position), *extra], destination=destination)


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
        walk = self._walk(input, config)
        if not walk.through:
            return self._turn(walk, config) or walk.left()
        steps, runtime = InnerSteps(config, walk.state), get_runtime()
        while walk.position is None:
            if (left := steps.run(partial(self._turn, walk))) is not None:
                return left
            steps.passed()
            while walk.goes_on(runtime) and walk.calls:
                if not walk.took_tools(steps.run_calls(self._steps[TOOLS], walk.calls)):
                    break
                steps.passed()
        return walk.left()

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run until the next boundary."""
        if input.get(HANDOVER):
            return leave(input)
        config = config or {}
        walk = self._walk(input, config)
        if not walk.through:
            return await self._aturn(walk, config) or walk.left()
        steps, runtime = InnerSteps(config, walk.state), get_runtime()
        while walk.position is None:
            if (left := await steps.arun(partial(self._aturn, walk))) is not None:
                return left
            steps.passed()
            while walk.goes_on(runtime) and walk.calls:
                if not walk.took_tools(await steps.arun_calls(self._steps[TOOLS], walk.calls)):
                    break
                steps.passed()
        return walk.left()

    def _turn(self, walk: _Walk, config: RunnableConfig) -> Any:
        """Go to the next boundary; what to return if something broke on the way, otherwise None."""
        runtime = get_runtime()
        while walk.position is None:
            try:
                walk.took(self._steps[walk.stop.name].run(walk.state.values, runtime, config))
            except Exception as error:
                return walk.broke(error)
        return None

    async def _aturn(self, walk: _Walk, config: RunnableConfig) -> Any:
        """As `_turn`."""
        runtime = get_runtime()
        while walk.position is None:
            try:
                walk.took(await self._steps[walk.stop.name].arun(walk.state.values, runtime, config))
            except Exception as error:
                return walk.broke(error)
        return None

    def _walk(self, input: Mapping[str, Any], config: RunnableConfig) -> _Walk:
        if (failure := input.get(FAILURE)) is not None:
            raise failure
        plan = self._router.plan
        way, name = input.get(POSITION) or at_start(plan)
        if way == _AFTER:  # the tools have run since
            destination = self._router.after(plan[TOOLS], input)
            name = destination if isinstance(destination, str) else plan.loop_entry
        must_pause = way == _PAUSED and not is_resumed(config)
        state = LocalState(self._channels, input)
        return _Walk(self._router, state, plan[name], through=way == _THROUGH, must_pause=must_pause)


class ToolsNode(Node):
    """The node that runs calls; those that a walk has run already it gives as its own."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the calls."""
        return _given(input) if isinstance(input, Raised | Returned) else super().invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the calls."""
        return _given(input) if isinstance(input, Raised | Returned) else await super().ainvoke(input, config, **kwargs)


def _given(outcome: Outcome[Any]) -> Any:
    if isinstance(outcome, Raised):
        raise outcome.error
    return outcome.value


class TurnRoute(Route):
    """The edge that leads on from a node of a turn: where its walk was left, or from the tools.

    It is given what the node returned, which tells the way. Only an update from outside has to be asked of the state.
    """

    def __init__(self, stop: Stop, router: Router, fields: Sequence[str]) -> None:
        """Lead on from a node, over a state of these fields."""
        super().__init__(stop, router)
        self._fields = fields

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str | list[Send]:
        """The next node, or one dispatch per tool call."""
        if isinstance(input, _Left):
            return input.destination
        return super().invoke(read_state(config or {}, self._fields, written=True))

    def _next(self, state: Mapping[str, Any]) -> Destination:
        stop = self._stop
        if stop.kind != "tools":
            way, name = state.get(POSITION) or (_AFTER, MODEL)
            if way != _AFTER:
                return MODEL
            stop = self._router.plan[name]
        destination = self._router.after(stop, state)
        return MODEL if isinstance(destination, str) and destination != END else destination
