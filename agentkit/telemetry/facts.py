"""What is known of a run and of its calls: plain facts, from which spans, metrics and logs are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import CheckpointTuple

from agentkit.watch import Run

__all__ = ["ModelCall", "RunFacts", "ToolCall", "Usage"]


class Usage(NamedTuple):
    """Tokens of one reply or of several. None: nobody said."""

    input: int | None = None
    """Those of the prompt, cached ones included."""
    output: int | None = None
    """Those of the answer, reasoning included."""
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        pairs = zip(self, other, strict=True)
        return Usage(*[one if two is None else two if one is None else one + two for one, two in pairs])


_UNTOLD: Final = Usage()


@dataclass(slots=True, kw_only=True)
class ModelCall:
    """One request to a provider."""

    model: str | None
    provider: str
    parameters: Mapping[str, Any]
    """What the request was made with, as LangChain tells it."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The run's metadata, where LangChain tells what the model was made with (`ls_temperature`, ...)."""
    messages: Sequence[BaseMessage]
    server: tuple[str, int] | None = None
    """The host and port that it is sent to, if the model says."""
    step: int | None = None
    """The number of the model step, from 1; None for a call that is not the loop's own."""
    attempt: int = 1
    """The number of the request within its step, from 1."""
    started: float = field(default_factory=perf_counter)
    first_chunk: float | None = None
    last_chunk: float | None = None
    ended: float | None = None
    reply: AIMessage | None = None
    usage: Usage = _UNTOLD
    finish_reasons: tuple[str, ...] = ()
    """Why the provider stopped, in its own words."""
    error: BaseException | None = None
    cancelled: bool = False
    """Whether it was given up because the caller left the stream."""
    recorded: Any = None
    """What the reporter keeps with it."""

    @property
    def duration(self) -> float:
        """Seconds it took."""
        return (self.ended or perf_counter()) - self.started


@dataclass(slots=True, kw_only=True)
class ToolCall:
    """One call of a tool, with everything that wraps do around it."""

    name: str
    id: str | None
    arguments: Mapping[str, Any]
    tool: BaseTool | None = None
    reexecuted: bool = False
    """Whether it paused in an earlier part of the run, and now runs again."""
    started: float = field(default_factory=perf_counter)
    ended: float | None = None
    result: ToolMessage | None = None
    failure: str | None = None
    """The type of the last exception that the tool itself raised."""
    error: BaseException | None = None
    """What left the call."""
    outcome: str = "success"
    """`success`, `error`, `interrupted`, `cancelled`, `handoff`, or `rejected`: it was not executed."""
    recorded: Any = None

    @property
    def duration(self) -> float:
        """Seconds it took."""
        return (self.ended or perf_counter()) - self.started

    @property
    def error_type(self) -> str | None:
        """What kind of error it ended with, if it did."""
        if self.outcome != "error":
            return None
        return self.failure or "tool_error"


@dataclass(slots=True, kw_only=True)
class RunFacts:
    """One part of a run: from its start or resumption to its end or next pause."""

    run: Run
    agent: str | None = None
    """The agent's name."""
    thread: str | None = None
    """The thread, if the caller named one."""
    segment: int = 1
    """Which part of the run, from 1."""
    parent: str | None = None
    """The run in which this one happens."""
    saved: CheckpointTuple | None = None
    """The checkpoint that it goes on from."""
    paused: frozenset[str] = frozenset()
    """The tasks that paused there."""
    resumed: bool = False
    started: float = field(default_factory=perf_counter)
    ended: float | None = None
    steps: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    usage: Usage = _UNTOLD
    models: set[str] = field(default_factory=set)
    finish_reasons: tuple[str, ...] = ()
    degraded: str | None = None
    """Why the answer is not what it should be, as a code."""

    @property
    def id(self) -> str:
        """Names the run; the same over pauses."""
        return self.run.id

    @property
    def duration(self) -> float:
        """Seconds it took."""
        return (self.ended or perf_counter()) - self.started
