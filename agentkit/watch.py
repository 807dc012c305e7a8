"""Run-wide hooks: what a middleware's `around_run` is told, on every entry point and however the run ends."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from uuid import UUID

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langgraph.callbacks import GraphCallbackHandler
from langgraph.config import get_config

from agentkit.exits import Exit, read_exit

__all__ = ["AroundRun", "Outcome", "Run", "Watch"]

Status = Literal["success", "interrupted", "limit", "handoff", "cancelled", "error"]
_LIMITS = frozenset({"step_budget", "token_budget", "cost_budget", "deadline", "failures", "repeated_call"})


@dataclass(frozen=True, slots=True)
class Run:
    """What is known when a run starts."""

    input: Any
    """The input as the caller gave it: a state, a resume command, or None."""

    config: RunnableConfig
    """The run's config."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known when a run is over: sent to each `around_run` at its `yield`."""

    status: Status
    exit: Exit | None = None
    """Why it ended, if it ended by itself."""
    error: BaseException | None = None
    """The exception that left the run."""
    values: Any = None
    """The final state, as far as it was streamed."""


_Open: TypeAlias = Generator[None, Outcome, Any]
AroundRun: TypeAlias = Callable[[Run], _Open]


class _Listener(GraphCallbackHandler):
    """Hears how the outermost run that it is attached to ends."""

    run_inline = True

    def __init__(self) -> None:
        self.root: UUID | None = None
        self.values: Any = None
        self.paused = False

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.root = self.root or run_id

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if run_id == self.root:
            self.values = outputs

    def on_interrupt(self, event: Any) -> None:
        self.paused = self.paused or event.run_id in (None, self.root)


def _heard_by(listener: _Listener, config: RunnableConfig | None) -> RunnableConfig:
    """The config with one more callback, beside its own or those of the run that this one happens in."""
    given: RunnableConfig = {**(config or {})}
    callbacks = given.get("callbacks") or _ambient_callbacks()
    if isinstance(callbacks, BaseCallbackManager):
        callbacks = callbacks.copy()
        callbacks.add_handler(listener, inherit=True)
        return {**given, "callbacks": callbacks}
    return {**given, "callbacks": [*(callbacks or ()), listener]}


def _ambient_callbacks() -> Any:
    try:
        return get_config().get("callbacks")
    except RuntimeError:
        return None


class Watch:
    """Runs the `around_run` hooks around one run, the first outermost; each is always closed."""

    def __init__(self, hooks: Sequence[AroundRun], input: Any, config: RunnableConfig | None) -> None:
        """Prepare to watch a run."""
        self._listener = _Listener()
        self._hooks = hooks
        self.config = _heard_by(self._listener, config)
        self._run = Run(input, self.config)

    def over(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """The chunks of a run, watched."""
        opened: list[_Open] = []
        try:
            self._open(opened)
            yield from chunks
        except BaseException as error:
            self._close(opened, error)
            raise
        self._close(opened, None)

    async def aover(self, chunks: AsyncGenerator[Any, None]) -> AsyncIterator[Any]:
        """As `over`."""
        opened: list[_Open] = []
        try:
            self._open(opened)
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk
        except BaseException as error:
            self._close(opened, error)
            raise
        self._close(opened, None)

    def _open(self, opened: list[_Open]) -> None:
        for hook in self._hooks:
            generator = hook(self._run)
            next(generator)
            opened.append(generator)

    def _close(self, opened: list[_Open], error: BaseException | None) -> None:
        """Tell each hook how the run ended, and close it; a hook that fails is an error for the ones outside of it."""
        failure: BaseException | None = None
        for generator in reversed(opened):
            try:
                generator.send(self._outcome(failure or error))
            except StopIteration:
                pass
            except BaseException as raised:
                failure = raised
            finally:
                generator.close()
        if failure is not None:
            raise failure

    def _outcome(self, error: BaseException | None) -> Outcome:
        values = self._listener.values
        if isinstance(error, GeneratorExit | CancelledError | KeyboardInterrupt):
            return Outcome("cancelled", error=error, values=values)
        if error is not None:
            return Outcome("error", error=error, values=values)
        if self._listener.paused:
            return Outcome("interrupted", values=values)
        ended = read_exit(values) if isinstance(values, dict) else None
        if ended is None:
            return Outcome("success", values=values)
        status: Status = "limit" if ended.reason in _LIMITS else "handoff" if ended.reason == "handoff" else "success"
        return Outcome(status, exit=ended, values=values)
