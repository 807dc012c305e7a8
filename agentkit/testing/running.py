"""Run one scenario through each of an agent's four entry points and compare what comes out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from langchain_core.messages import BaseMessage
from langgraph.types import Command, Interrupt

__all__ = ["ENTRY_POINTS", "EntryPoint", "RunResult", "arun", "comparable", "run"]

EntryPoint: TypeAlias = Literal["invoke", "ainvoke", "stream", "astream"]
ENTRY_POINTS: tuple[EntryPoint, ...] = ("invoke", "ainvoke", "stream", "astream")
"""The ways into an agent; `stream` and `astream` are run with messages, custom data and values."""

_STREAM_MODES = ["messages", "custom", "values"]
_IDENTITY = {"id", "response_metadata"}


@dataclass(frozen=True)
class RunResult:
    """What a run gave."""

    values: dict[str, Any] = field(default_factory=dict, repr=False)
    """The final state as the caller sees it; empty if an exception was raised."""
    raw: Any = field(default=None, repr=False)
    """The very object that `invoke` returned or the last that was streamed, for `agentkit.exit_of`."""
    interrupts: tuple[Interrupt, ...] = ()
    """The open questions of a paused run."""
    error: Exception | None = None
    """The exception that left the run, if it was to be caught."""
    streamed: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    """Every (stream mode, chunk), for the two streaming entry points."""

    @property
    def messages(self) -> list[BaseMessage]:
        """The final messages."""
        return list(self.values.get("messages", ()))

    @property
    def text(self) -> str:
        """The text of the last message, or an empty string."""
        return str(self.messages[-1].text) if self.messages else ""


def run(
    agent: Any,
    given: str | Sequence[BaseMessage] | Mapping[str, Any] | Command[Any] | None,
    config: Mapping[str, Any] | None = None,
    *,
    entry: EntryPoint = "invoke",
    catch: bool = False,
    **kwargs: Any,
) -> RunResult:
    """Run an agent through one entry point, from code without a running event loop.

    Args:
        agent: A compiled agent.
        given: The user's text, messages, a whole input, a `Command`, or None to go on.
        config: The run's configuration.
        entry: Which entry point.
        catch: Keep an `Exception` in the outcome instead of raising it.
        **kwargs: Passed to the entry point, for example `context`.
    """
    if entry in ("ainvoke", "astream"):
        return asyncio.run(arun(agent, given, config, entry=entry, catch=catch, **kwargs))
    try:
        if entry == "invoke":
            return _outcome(agent, [("values", agent.invoke(_input(given), config, **kwargs))])
        parts = list(agent.stream(_input(given), config, stream_mode=_STREAM_MODES, **kwargs))
        return _outcome(agent, parts, streamed=True)
    except Exception as error:
        if not catch:
            raise
        return RunResult(error=error)


async def arun(
    agent: Any,
    given: str | Sequence[BaseMessage] | Mapping[str, Any] | Command[Any] | None,
    config: Mapping[str, Any] | None = None,
    *,
    entry: EntryPoint = "ainvoke",
    catch: bool = False,
    **kwargs: Any,
) -> RunResult:
    """Run an agent through `ainvoke` or `astream`; otherwise like `run`."""
    try:
        if entry == "ainvoke":
            return _outcome(agent, [("values", await agent.ainvoke(_input(given), config, **kwargs))])
        stream = agent.astream(_input(given), config, stream_mode=_STREAM_MODES, **kwargs)
        return _outcome(agent, [part async for part in stream], streamed=True)
    except Exception as error:
        if not catch:
            raise
        return RunResult(error=error)


def _input(given: Any) -> Any:
    if isinstance(given, str):
        return {"messages": [("user", given)]}
    if given is None or isinstance(given, Mapping | Command):
        return given
    return {"messages": list(given)}


def _outcome(agent: Any, parts: list[tuple[str, Any]], *, streamed: bool = False) -> RunResult:
    """Of the values, the last is the result; interrupts may come in a chunk of their own.

    LangGraph streams private fields too, which `invoke` does not return: they stay in `raw`.
    """
    public = agent.output_channels
    values: dict[str, Any] = {}
    raw: Any = field(default=None, repr=False)
    interrupts: dict[str, Interrupt] = {}
    for mode, chunk in parts:
        if mode == "values" and chunk:
            raw = chunk
            interrupts |= {i.id: i for i in chunk.get("__interrupt__", ())}
            values = {k: v for k, v in chunk.items() if k in public} or values
    return RunResult(values, raw, tuple(interrupts.values()), streamed=tuple(parts) if streamed else ())


def comparable(value: Any) -> Any:
    """The value without what differs between two equal runs, as plain data of its own.

    Messages become dictionaries without their id and response metadata, exceptions their type and text; commands,
    dictionaries, lists and tuples are walked through; everything else stays.
    """
    if isinstance(value, BaseMessage):
        return value.model_dump(exclude=_IDENTITY)
    if isinstance(value, BaseException):
        return (type(value).__name__, str(value))
    if isinstance(value, Command):
        return {part.name: comparable(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {k: comparable(v) for k, v in value.items()}
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, list | tuple):
        return [comparable(v) for v in value]
    return value
