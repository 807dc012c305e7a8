"""The compiled agent: LangGraph's graph with our entry points, where a run starts, is watched and ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.graph import Graph
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, GraphOutput
from pydantic import BaseModel

from agentkit._compat import is_task
from agentkit.cancellation import recorded
from agentkit.errors import MissingThread, NestedPause
from agentkit.exits import Result, read_exit
from agentkit.hooks import Table
from agentkit.limits import Limits
from agentkit.messages import as_objects
from agentkit.pool import unbounded
from agentkit.settling import continued, settle, settled
from agentkit.state import EXIT, HANDOVER, INNER, POSITION, TALLY
from agentkit.topology import Plan
from agentkit.unobserved import is_unobserved
from agentkit.walk import at_start
from agentkit.watch import AroundRun, EntryPoint, Watch, watching

__all__ = ["AgentGraph", "thread"]

_INTERRUPT = "__interrupt__"
_CALLED: Final = "agentkit_called"
"""Names what `invoke` hands to `stream`, which the engine calls with its arguments."""


def thread(thread_id: str, **config: Any) -> RunnableConfig:
    """Name the thread that a run belongs to, as a config for `invoke` and its like.

    Args:
        thread_id: The thread's id.
        config: Other config entries, e.g. `recursion_limit=50`; `configurable` entries are merged.
    """
    # Put together by hand: LangChain's `merge_configs` would take over the config of a run that this is called in.
    named: dict[str, Any] = {**config, "configurable": {**config.get("configurable", {}), "thread_id": thread_id}}
    return cast(RunnableConfig, named)


@dataclass(frozen=True, slots=True)
class _Called:
    """What `invoke` knows of its run."""

    watch: Watch | None
    """Who watches it already, from outside."""
    through: bool
    """Whether it is one step of the graph."""


@dataclass(frozen=True, slots=True)
class Agent:
    """What makes a compiled graph an agent."""

    plan: Plan
    limits: Limits
    around: Sequence[AroundRun] = ()
    logical: Callable[[], CompiledStateGraph[Any, Any, Any, Any]] | None = None
    """Makes the graph with a node per stop, where the one that runs has fewer."""
    goes_through: bool = False
    """Whether a run that nobody observes may be one step."""
    pauses_tools: bool = False
    """Whether a middleware pauses single calls of a batch."""
    hooks: Table | None = None
    """Its middlewares, for the checks."""
    model: str | None = None
    """The name of its model, if it has just one and says it."""


class AgentGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled agent. All of LangGraph's methods work; `plan` can be printed."""

    def __init__(self, *, agent: Agent, **kwargs: Any) -> None:
        """Take a compiled graph's attributes and what makes it an agent."""
        super().__init__(**kwargs)
        self.agent = agent

    @property
    def plan(self) -> Plan:
        """The stops of the agent and where each may lead."""
        return self.agent.plan

    # ---- entry points

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run to the end or the next pause; see LangGraph. The result equals a plain dict, and `exit_of` reads it."""
        called = self._called(input, config, kwargs, "invoke")
        watch = called.watch
        with watch.held() if watch else nullcontext():
            result = super().invoke(input, config, **self._inner(kwargs, called))
        return self._finished(input, config, result)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """As `invoke`."""
        called = self._called(input, config, kwargs, "ainvoke")
        watch = called.watch
        async with watch.aheld() if watch else nullcontext():
            result = await super().ainvoke(input, config, **self._inner(kwargs, called))
        return self._finished(input, config, result)

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Stream the run; see LangGraph."""
        self._refuse_no_thread(config)
        called: _Called | None = kwargs.pop(_CALLED, None)
        watch = called.watch if called else self._watch(input, config, "stream")
        given = self._started(input, through=called is not None and called.through)
        if (unsettled := self._unsettled(input, config)) is not None:
            settle(self, unsettled)
        chunks = super().stream(given, unbounded(watch.config if watch else config, self.config), **kwargs)
        return watch.over(chunks) if watch and not called else chunks

    def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """As `stream`."""
        self._refuse_no_thread(config)
        called: _Called | None = kwargs.pop(_CALLED, None)
        watch = called.watch if called else self._watch(input, config, "astream")
        given = self._started(input, through=called is not None and called.through)
        chunks = cast(AsyncGenerator[Any, None], super().astream(given, watch.config if watch else config, **kwargs))
        if kwargs.get("durability") == "exit":
            chunks = recorded(chunks, self, config)
        if (unsettled := self._unsettled(input, config)) is not None:
            chunks = settled(chunks, self, unsettled)
        return watch.aover(chunks) if watch and not called else chunks

    # ---- descriptions

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """The plan as a graph, the same at every granularity, without the edges that no healthy run takes."""
        if self.agent.logical is not None:
            graph = self.agent.logical().get_graph(config, xray=xray)
        else:
            graph = super().get_graph(config, xray=xray)
        hidden = {(stop.name, target) for stop in self.plan.stops for target in stop.hidden}
        graph.edges = [edge for edge in graph.edges if (edge.source, edge.target) not in hidden]
        straight = {stop.name for stop in self.plan.stops if stop.is_straight}
        graph.edges = [edge._replace(conditional=False) if edge.source in straight else edge for edge in graph.edges]
        return graph

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """The schema of the input, without the loop's own fields."""
        schema = super().get_input_jsonschema(config)
        shown = {key: value for key, value in schema.get("properties", {}).items() if key not in INNER}
        return {**schema, "properties": shown}

    # ---- inner

    def _refuse_no_thread(self, config: RunnableConfig | None) -> None:
        """LangGraph says it where nothing at all is configured, and a saver fails where something else is."""
        if not isinstance(self.checkpointer, BaseCheckpointSaver):
            return
        known = [(each or {}).get("configurable") or {} for each in (config, self.config, _ambient())]
        if any("thread_id" in each for each in known) or (any(known) and self.checkpointer.config_specs):
            return
        raise MissingThread(self.get_name())

    def _watch(self, input: Any, config: RunnableConfig | None, entrypoint: EntryPoint) -> Watch | None:
        """Who watches the next run, if anybody does."""
        around = watching(self.agent.around)
        return Watch(around, input, config, self, entrypoint, self.agent.model) if around else None

    def _unsettled(self, input: Any, config: RunnableConfig | None) -> RunnableConfig | None:
        """The thread in which executed calls may stand beside one that waits, and would lose their results now."""
        return continued(self, input, config) if self.agent.pauses_tools and _outer() is None else None

    def _started(self, input: Any, *, through: bool) -> Any:
        """The input of a new user turn, with the counts started anew. A resume has none."""
        if input is None or isinstance(input, Command):
            return input
        given = _fields(input)
        if given is None:
            return input
        allowed = _steps_left()
        tally = {} if allowed is None else {"allowed": min(allowed, self.agent.limits.model_calls)}
        if "messages" in given and isinstance(self.channels["messages"], DeltaChannel):
            given["messages"] = as_objects(given["messages"])
        position = {POSITION: at_start(self.plan, through=through)} if self.agent.logical is not None else {}
        left_over = {HANDOVER: None} if self.checkpointer else {}  # of a run that was broken off
        return {**given, TALLY: tally, **left_over, **position}

    def _called(
        self, input: Any, config: RunnableConfig | None, kwargs: dict[str, Any], entrypoint: EntryPoint
    ) -> _Called:
        """Find out how to run."""
        watch = self._watch(input, config, entrypoint)
        through = watch is None and self.agent.goes_through and is_unobserved(self, input, config, kwargs)
        return _Called(watch, through)

    def _inner(self, kwargs: dict[str, Any], called: _Called) -> dict[str, Any]:
        """The arguments of `invoke`, so that the exit comes out with the values, if the caller chose no keys."""
        if kwargs.get("output_keys") is not None or kwargs.get("stream_mode", "values") != "values":
            return {**kwargs, _CALLED: called}
        return {**kwargs, "output_keys": [*self.output_channels, EXIT], _CALLED: called}

    def _finished(self, input: Any, config: RunnableConfig | None, result: Any) -> Any:
        if isinstance(result, GraphOutput):
            values = self._finished(input, config, result.value)
            return GraphOutput(value=values, interrupts=result.interrupts)
        if not isinstance(result, dict):
            return result
        if _INTERRUPT in result:
            if _outer() is not None and not is_task(config):
                raise NestedPause(self.get_name())
            return {key: value for key, value in result.items() if key != EXIT}
        ended = read_exit(result)
        values = {key: value for key, value in result.items() if key != EXIT}
        if not is_task(config) or not isinstance(input, Mapping):
            return Result(values, ended)
        unchanged = {key: value for key, value in values.items() if key != "messages" and _same(input.get(key), value)}
        return Result({key: value for key, value in values.items() if key not in unchanged}, ended, unchanged)


def _fields(input: Any) -> dict[str, Any] | None:
    """The fields that an input sets, whatever kind of state object it is."""
    if isinstance(input, Mapping):
        return dict(input)
    if isinstance(input, BaseModel):
        return {field: getattr(input, field) for field in input.model_fields_set}
    if is_dataclass(input):
        return {field.name: getattr(input, field.name) for field in fields(input)}
    return None


def _same(before: Any, after: Any) -> bool:
    return before is after or (type(before) is type(after) and bool(before == after))


def _outer() -> Mapping[str, Any] | None:
    """The config of the engine's run that this call happens in, if any."""
    config = _ambient()
    return config if config is not None and "langgraph_step" in config.get("metadata", {}) else None


def _ambient() -> Mapping[str, Any] | None:
    """The config that this call inherits, if any."""
    try:
        return get_config()
    except RuntimeError:
        return None


def _steps_left() -> int | None:
    """How many steps the run has left in which this agent is called: it gets no more model calls than that."""
    outer = _outer()
    if outer is None:
        return None
    limit = outer.get("recursion_limit")
    return None if limit is None else max(1, limit - outer["metadata"]["langgraph_step"])
