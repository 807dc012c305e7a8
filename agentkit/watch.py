"""Run-wide hooks: what a middleware's `around_run` is told, on every entry point and however the run ends."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, cast
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackManager, CallbackManager
from langchain_core.runnables import RunnableConfig
from langgraph.callbacks import GraphCallbackHandler
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.config import get_config
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Interrupt

from agentkit.exits import Exit, read_exit

__all__ = ["SAVED", "AroundRun", "EntryPoint", "Outcome", "Run", "Scope", "Watch", "watching"]

EntryPoint: TypeAlias = Literal["invoke", "ainvoke", "stream", "astream"]
Status = Literal["success", "interrupted", "limit", "handoff", "cancelled", "error"]
_UNNAMED: Final = "LangGraph"
_LIMITS = frozenset({"step_budget", "token_budget", "cost_budget", "deadline", "failures", "repeated_call"})


Scope: TypeAlias = Callable[[], AbstractContextManager[Any]]


class _Request(Enum):
    SAVED = "saved"


SAVED: Final = _Request.SAVED
"""Yielded by an `around_run` before its one other `yield`: it is sent the run's stored checkpoint, or None."""

_END: Final = object()
_NOTHING: Final = nullcontext()


@dataclass(slots=True)
class Run:
    """What is known when a run starts."""

    input: Any
    """The input as the caller gave it: a state, a resume command, or None."""

    config: RunnableConfig
    """The run's own config. What a hook puts into its `metadata` is stored with every checkpoint of the run."""

    agent: str | None = None
    """The agent's name, if it has one."""

    scopes: list[Scope] = field(default_factory=list)
    """Makers of context managers that are entered whenever the run goes on, and left before a chunk is handed out: for
    context variables that everything in the run should see, and nobody else. A hook adds its own before it yields."""

    stored: bool = False
    """Whether the run is kept in a thread of the graph's own checkpointer."""

    id: str = field(default_factory=lambda: uuid4().hex)
    """Names the run in traces and logs. Whoever knows that it goes on from a pause gives it the paused one's."""

    entrypoint: EntryPoint | None = None
    """How the run was started; None where that is not known, in a graph that agentkit did not build."""

    model: str | None = None
    """The name of the agent's model, if it has just one and says it."""

    left: bool = False
    """Whether the caller left the stream before its end."""

    def active(self) -> AbstractContextManager[Any]:
        """The scopes, as one context manager."""
        if len(self.scopes) < 2:
            return self.scopes[0]() if self.scopes else _NOTHING
        stack = ExitStack()
        try:
            for scope in self.scopes:
                stack.enter_context(scope())
        except BaseException:
            stack.close()
            raise
        return stack


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
    interrupts: tuple[Interrupt, ...] = ()
    """The questions at which it paused."""
    checkpoint_id: str | None = None
    """The checkpoint at which it paused."""


_Open: TypeAlias = Generator[Any, Any, Any]
AroundRun: TypeAlias = Callable[[Run], _Open]


class _Listener(GraphCallbackHandler):
    """Hears how the run that it is attached to ends; not inherited, so that it is not called for every step."""

    run_inline = True

    def __init__(self) -> None:
        self.root: UUID | None = None
        self.values: Any = None
        self.paused = False
        self.interrupts: tuple[Interrupt, ...] = ()
        self.checkpoint_id: str | None = None

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.root = self.root or run_id

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if run_id == self.root:
            self.values = outputs

    def on_interrupt(self, event: Any) -> None:
        if event.run_id in (None, self.root):
            self.paused = True
            self.interrupts += tuple(event.interrupts)
            self.checkpoint_id = event.checkpoint_id


def _heard_by(listener: _Listener, config: RunnableConfig | None) -> RunnableConfig:
    """The config with one more callback, beside its own or those of the run that this one happens in."""
    given: RunnableConfig = {**(config or {})}
    given["metadata"] = {**(given.get("metadata") or {})}  # hooks write into it, and the caller's is theirs
    callbacks = given.get("callbacks") or _ambient_callbacks()
    if isinstance(callbacks, BaseCallbackManager):
        callbacks = callbacks.copy()
    else:
        callbacks = CallbackManager([*(callbacks or ())], [*(callbacks or ())])
    callbacks.add_handler(listener, inherit=False)
    return {**given, "callbacks": callbacks}


def _ambient_callbacks() -> Any:
    try:
        return get_config().get("callbacks")
    except RuntimeError:
        return None


def watching(hooks: Sequence[AroundRun]) -> Sequence[AroundRun]:
    """The hooks that want to see the next run; see `Middleware.is_watching`."""
    return [hook for hook in hooks if getattr(getattr(hook, "__self__", None), "is_watching", True)]


class Watch:
    """Runs the `around_run` hooks around one run, the first outermost; each is always closed."""

    def __init__(
        self,
        hooks: Sequence[AroundRun],
        input: Any,
        config: RunnableConfig | None,
        graph: CompiledStateGraph[Any, Any, Any, Any],
        entrypoint: EntryPoint | None = None,
        model: str | None = None,
    ) -> None:
        """Prepare to watch a run of a graph."""
        self._listener = _Listener()
        self._hooks = hooks
        self._graph = graph
        self.config = _heard_by(self._listener, config)
        name = graph.get_name()
        stored = self._stored()[0] is not None
        agent = None if name == _UNNAMED else name
        self._run = Run(input, self.config, agent, stored=stored, entrypoint=entrypoint, model=model)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Watch a run that happens inside of the block and hands out no chunks, so its scopes are entered once."""
        with self._hooked(), self._run.active():
            yield

    @asynccontextmanager
    async def aheld(self) -> AsyncIterator[None]:
        """As `held`."""
        async with self._ahooked():
            with self._run.active():
                yield

    def over(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """The chunks of a run, watched; each is fetched inside the scopes, and handed out outside of them."""
        with self._hooked():
            try:
                while True:
                    with self._run.active():
                        chunk = next(chunks, _END)
                    if chunk is _END:
                        break
                    yield chunk
            except GeneratorExit:
                self._run.left = True
                raise
            finally:
                with self._run.active():
                    cast(Generator[Any, None, None], chunks).close()

    async def aover(self, chunks: AsyncGenerator[Any, None]) -> AsyncIterator[Any]:
        """As `over`."""
        async with self._ahooked():
            try:
                while True:
                    with self._run.active():
                        chunk = await anext(chunks, _END)
                    if chunk is _END:
                        break
                    yield chunk
            except GeneratorExit:
                self._run.left = True
                raise
            finally:
                with self._run.active():
                    await chunks.aclose()

    @contextmanager
    def _hooked(self) -> Iterator[None]:
        """The hooks around what happens inside of the block."""
        opened: list[_Open] = []
        try:
            for hook in self._hooks:
                if self._opened(hook, opened) is SAVED:
                    opened[-1].send(self._saved())
            yield
        except BaseException as error:
            self._close(opened, error)
            raise
        self._close(opened, None)

    @asynccontextmanager
    async def _ahooked(self) -> AsyncIterator[None]:
        """As `_hooked`."""
        opened: list[_Open] = []
        try:
            for hook in self._hooks:
                if self._opened(hook, opened) is SAVED:
                    opened[-1].send(await self._asaved())
            yield
        except BaseException as error:
            self._close(opened, error)
            raise
        self._close(opened, None)

    def _opened(self, hook: AroundRun, opened: list[_Open]) -> Any:
        """Start a hook; what it asks for, if anything."""
        generator = hook(self._run)
        asked = next(generator)
        opened.append(generator)
        return asked

    # ---- what is stored of the thread

    def _saved(self) -> CheckpointTuple | None:
        saver, thread = self._stored()
        return None if saver is None else saver.get_tuple(thread)

    async def _asaved(self) -> CheckpointTuple | None:
        saver, thread = self._stored()
        return None if saver is None else await saver.aget_tuple(thread)

    def _stored(self) -> tuple[BaseCheckpointSaver[Any] | None, RunnableConfig]:
        of_graph = (self._graph.config or {}).get("configurable", {})
        at: RunnableConfig = {"configurable": {**of_graph, **self.config.get("configurable", {})}}
        saver = self._graph.checkpointer
        stored = isinstance(saver, BaseCheckpointSaver) and "thread_id" in at["configurable"]
        return (cast(Any, saver) if stored else None), at

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
            heard = self._listener
            return Outcome("interrupted", None, None, values, heard.interrupts, heard.checkpoint_id)
        ended = read_exit(values) if isinstance(values, dict) else None
        if ended is None:
            return Outcome("success", values=values)
        status: Status = "limit" if ended.reason in _LIMITS else "handoff" if ended.reason == "handoff" else "success"
        return Outcome(status, exit=ended, values=values)
