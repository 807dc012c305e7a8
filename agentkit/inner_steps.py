"""The engine's steps, made inside of one: what runs in them sees the config and the context that the engine would give.

Each is run in a context of its own with its own step number, namespace and task id, and counts towards the run's
recursion limit. Parallel calls run at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import nullcontext
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import ErrorCode, GraphBubbleUp, GraphRecursionError, create_error_message
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command

from agentkit._compat import steps_of, task_config
from agentkit.local_state import LocalState
from agentkit.pool import POOL, Outcome, Raised, Returned
from agentkit.topology import MODEL, TOOLS

__all__ = ["InnerSteps", "is_odd"]

T = TypeVar("T")
_NO_GATE: Final = nullcontext()


class ToolsStep(Protocol):
    """What runs calls."""

    def run(self, given: Any, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Run them, sync."""
        ...

    async def arun(self, given: Any, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Run them, async."""
        ...


class InnerSteps:
    """The steps of one run."""

    def __init__(self, config: RunnableConfig, state: LocalState) -> None:
        """Count on from the step of the task that they are made in."""
        self._config = config
        self._state = state
        self._first, self._last = steps_of(config)
        self._number = self._first

    def passed(self) -> None:
        """A step is done.

        Raises:
            GraphRecursionError: If the run has no more, as the engine does, also where it would have been the end.
        """
        self._number += 1
        if self._number > self._last:
            text = (
                f"Recursion limit of {self._config['recursion_limit']} reached without hitting a stop condition. You "
                "can increase the limit by setting the `recursion_limit` config key."
            )
            raise GraphRecursionError(create_error_message(message=text, error_code=ErrorCode.GRAPH_RECURSION_LIMIT))

    def run(self, turn: Callable[[RunnableConfig], T]) -> T:
        """Make the step of a turn, which is given its config."""
        config = self._of_turn()
        return _context(config).run(turn, config)

    async def arun(self, turn: Callable[[RunnableConfig], Coroutine[Any, Any, T]]) -> T:
        """As `run`."""
        config = self._of_turn()
        return await asyncio.create_task(turn(config), context=_context(config))

    def run_calls(self, step: ToolsStep, calls: Sequence[ToolCall]) -> list[Outcome[Any]]:
        """Make the step of a batch of calls.

        Returns:
            What became of each, in their order. A failure does not keep the others from their end.
        """
        run = [partial(_call, step, call, config) for call, config in self._of_calls(calls)]
        if len(run) > 1:
            return POOL.run_all(run, self._config.get("max_concurrency"))
        try:
            return [Returned(run[0]())]
        except Exception as error:
            return [Raised(error)]

    async def arun_calls(self, step: ToolsStep, calls: Sequence[ToolCall]) -> list[Outcome[Any]]:
        """As `run_calls`, but calls that still run when another fails are cancelled, and left out."""
        limit = self._config.get("max_concurrency")
        gate: Any = asyncio.Semaphore(limit) if limit and len(calls) > 1 else _NO_GATE
        tasks = [
            asyncio.create_task(_acall(step, call, config, gate), context=_context(config))
            for call, config in self._of_calls(calls)
        ]
        try:
            done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        except BaseException:
            await _give_up(tasks)
            raise
        if waiting:
            await _give_up(waiting)
        return [_outcome(task) for task in tasks if task in done]

    def _of_turn(self) -> RunnableConfig:
        if self._number == self._first:
            return self._config
        return task_config(self._config, MODEL, self._number, self._state.read)

    def _of_calls(self, calls: Sequence[ToolCall]) -> list[tuple[ToolCall, RunnableConfig]]:
        fields = list(self._state.values)
        read, number = self._state.read, self._number
        return [(call, task_config(self._config, TOOLS, number, read, fields, n)) for n, call in enumerate(calls)]


def is_odd(outcome: Outcome[Any]) -> bool:
    """Whether a call gave what only the engine can take: an error, a pause, or a command that leads elsewhere."""
    return isinstance(outcome, Raised) or _leads_elsewhere(outcome.value)


def _leads_elsewhere(result: Any) -> bool:
    if isinstance(result, list | tuple):
        return any(map(_leads_elsewhere, result))
    return isinstance(result, Command) and bool(result.goto or result.graph)


def _context(config: RunnableConfig) -> Context:
    context = copy_context()
    context.run(var_child_runnable_config.set, config)
    return context


def _call(step: ToolsStep, call: ToolCall, config: RunnableConfig) -> Any:
    return _context(config).run(lambda: step.run([call], get_runtime(), config))


async def _acall(step: ToolsStep, call: ToolCall, config: RunnableConfig, gate: Any) -> Any:
    async with gate:
        try:
            return await step.arun([call], get_runtime(), config)
        except GraphBubbleUp as pause:  # no failure: the other calls go on
            return Raised(pause)


async def _give_up(tasks: Collection[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _outcome(task: asyncio.Task[Any]) -> Outcome[Any]:
    if task.cancelled():  # not from here: the engine tells it from a run that is cancelled
        return Raised(cast(Exception, asyncio.CancelledError()))
    error = task.exception()
    if error is None:
        return cast(Outcome[Any], task.result() if isinstance(task.result(), Raised) else Returned(task.result()))
    if not isinstance(error, Exception):
        raise error
    return Raised(error)
