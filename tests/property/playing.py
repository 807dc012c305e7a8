"""Plays a scenario through one entry point to its end, answering pauses and resuming after failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

from agentkit.state import EXIT, HANDOVER, TALLY
from agentkit.testing import EntryPoint, Request, RunResult, arun, comparable, pairing_problems, run
from tests.property.stacks import Answer, Log, Planned, Stack, log_of_thread

__all__ = ["THREAD", "Played", "aplay", "build", "play"]

_OURS = frozenset({EXIT, TALLY, HANDOVER, "jump_to"})
_MOST_RESUMES = 12
_SERDE = JsonPlusSerializer(allowed_msgpack_modules=[Answer])
THREAD = "t"
"""The thread that scenarios are played in."""


@dataclass
class Played:
    """What one scenario did."""

    log: Log
    requests: list[Request]
    events: list[tuple[str, Any]] = field(default_factory=list)
    """What came out of each call of the entry point: an error's type, a pause's questions, or the result."""
    ended: list[Any] = field(default_factory=list)
    """The very objects that the finished runs returned, for `exit_of`."""
    state: Any = None
    """The thread's state in the end, ids aside; None without a saver."""

    def summary(self) -> dict[str, Any]:
        """What has to be the same whoever compiled the agent, whatever the entry point and the granularity.

        A part that paused may run once more or less before it is answered, so immediate repeats count once.
        """
        return {
            "events": self.events,
            "seen": [seen for seen, _ in groupby(self.log.seen)],
            "wrapped": sorted(self.log.wrapped),
            "finished": sorted((call, tool, x) for _, call, tool, x in self.log.finished),
            "requests": [(comparable(r.messages), r.tools, r.tool_choice, r.kwargs) for r in self.requests],
            "state": self.state,
        }

    @property
    def malformed(self) -> list[str]:
        """What a strict provider would have refused."""
        return [problem for request in self.requests for problem in pairing_problems(request.messages)]


def build(stack: Stack, factory: Callable[..., Any], *, saver: bool, **more: Any) -> tuple[Any, Log, Any]:
    """The agent of a stack, its log and its model."""
    log = log_of_thread(THREAD)
    arguments = stack.arguments(log)
    agent = factory(**arguments, checkpointer=InMemorySaver(serde=_SERDE) if saver else None, **more)
    return agent, log, arguments["model"]


def play(
    stack: Stack,
    factory: Callable[..., Any],
    *,
    entry: EntryPoint = "invoke",
    saver: bool = True,
    heard: bool = False,
    **more: Any,
) -> Played:
    """Play a scenario from code without a running event loop.

    Args:
        stack: The scenario.
        factory: Compiles the agent.
        entry: How it is run.
        saver: Whether it has one, so that it can be resumed.
        heard: Whether a callback hears its steps.
        **more: More arguments of the factory.
    """
    if entry in ("ainvoke", "astream"):
        return asyncio.run(aplay(stack, factory, entry=entry, saver=saver, heard=heard, **more))
    agent, log, model = build(stack, factory, saver=saver, **more)
    played = Played(log, model.requests)
    script = _inputs(stack, saver, played)
    given = next(script)
    while given is not None:
        given = _next(script, run(agent, given[0], _config(heard), entry=entry, catch=True))
    if saver:
        played.state = _plain(agent.get_state(_config()).values)
    return played


async def aplay(
    stack: Stack,
    factory: Callable[..., Any],
    *,
    entry: EntryPoint = "ainvoke",
    saver: bool = True,
    heard: bool = False,
    **more: Any,
) -> Played:
    """Play a scenario on the running event loop; see `play`."""
    agent, log, model = build(stack, factory, saver=saver, **more)
    played = Played(log, model.requests)
    script = _inputs(stack, saver, played)
    given = next(script)
    while given is not None:
        given = _next(script, await arun(agent, given[0], _config(heard), entry=entry, catch=True))
    if saver:
        played.state = _plain((await agent.aget_state(_config())).values)
    return played


def _config(heard: bool = False) -> dict[str, Any]:
    config: dict[str, Any] = {"configurable": {"thread_id": THREAD}, "recursion_limit": 150}
    return {**config, "callbacks": [BaseCallbackHandler()]} if heard else config


def _next(script: Any, result: RunResult) -> Any:
    try:
        return script.send(result)
    except StopIteration:
        return None


def _inputs(stack: Stack, saver: bool, played: Played) -> Any:
    """What is put in: each user turn, answers to its pauses, and None after a failure. Sent the results."""
    for turn in range(stack.turns if saver else 1):
        result = yield ({"messages": [("user", f"question {turn}")]},)
        for _ in range(_MOST_RESUMES):
            _note(result, played)
            if result.error is not None:
                if not saver or not isinstance(result.error, Planned):
                    return
                result = yield (None,)
            elif result.interrupts:
                if not saver:
                    return
                result = yield (Command(resume={pause.id: f"yes to {pause.value}" for pause in result.interrupts}),)
            else:
                break


def _note(result: RunResult, played: Played) -> None:
    if result.error is not None:
        played.events.append(("error", type(result.error).__name__))
    elif result.interrupts:
        played.events.append(("paused", sorted(str(pause.value) for pause in result.interrupts)))
    else:
        played.ended.append(result.raw)
        played.events.append(("ended", _plain(result.values)))


def _plain(values: Any) -> Any:
    return comparable({key: value for key, value in values.items() if key not in _OURS})
