"""The onion of wraps: one fold for model and tool wraps, sync and async, and the drivers for generator wraps.

Signals of the engine (interrupts, commands to a parent) are no failures. They pass by every wrap: a generator wrap is
closed instead of being thrown into, and where a plain wrap swallows one all the same, it is raised again. The closing
is a `Paused` where the call is going to run again from its beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langgraph.errors import GraphBubbleUp, GraphInterrupt

from agentkit import clock

__all__ = ["Blocking", "Layer", "Paused", "Sleep", "adrive", "compose", "drive"]

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")

Call = Callable[[RequestT], ResultT]
_SIGNALS = (GraphBubbleUp, StopIteration)  # a generator cannot be thrown a StopIteration
Wrap = Callable[[Any, Callable[[Any], Any]], Any]


@dataclass(frozen=True, slots=True)
class Sleep:
    """Yielded by a policy instead of a request: wait, then go on. In async code no thread is held."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Blocking:
    """Yielded by a policy instead of a request: make this call (in async code: in a thread), send its result back."""

    call: Callable[[], Any]


class Paused(BaseException):
    """Closes a policy whose inner call paused: the policy will run again from its beginning once somebody answered.

    A policy has to end then. Before that it may still yield a `Blocking`. It is no `GeneratorExit`, since `yield from`
    hands those on as a mere `close()`.
    """


@dataclass(frozen=True, slots=True)
class Layer:
    """One wrap of the onion, with how its result is read.

    Attributes:
        wrap: `wrap(request, handler)`, sync or async.
        open: What the handler gives the wrap, from what the next layer returned.
        close: What this layer returns, from what the wrap returned and what its last inner call returned (None if it
            made none).
    """

    wrap: Wrap
    open: Callable[[Any], Any]
    close: Callable[[Any, Any], Any]


def compose(layers: Sequence[Layer], core: Call[Any, Any], *, is_async: bool) -> Call[Any, Any]:
    """Fold wraps around a core call; the first is the outermost.

    Made anew for each request, so nothing of one request is left for another.
    """
    call = core
    around: Callable[[Layer, Call[Any, Any]], Call[Any, Any]] = _AsyncAround if is_async else _Around
    for layer in reversed(layers):
        call = around(layer, call)
    return call


@dataclass(slots=True)
class _Inner:
    """What a wrap calls as its handler, for one request: remembers its last outcome, and any signal."""

    layer: Layer
    call: Call[Any, Any]
    outcome: Any = None
    signal: GraphBubbleUp | None = None

    def __call__(self, request: Any) -> Any:
        if self.signal is not None:
            raise self.signal
        try:
            self.outcome = self.call(request)
        except GraphBubbleUp as signal:
            self.signal = signal
            raise
        return self.layer.open(self.outcome)


@dataclass(slots=True)
class _AsyncInner(_Inner):
    async def __call__(self, request: Any) -> Any:
        if self.signal is not None:
            raise self.signal
        try:
            self.outcome = await self.call(request)
        except GraphBubbleUp as signal:
            self.signal = signal
            raise
        return self.layer.open(self.outcome)


@dataclass(frozen=True, slots=True)
class _Around:
    layer: Layer
    call: Call[Any, Any]

    def __call__(self, request: Any) -> Any:
        inner = _Inner(self.layer, self.call)
        result = self.layer.wrap(request, inner)
        if inner.signal is not None:  # the wrap swallowed it
            raise inner.signal
        return self.layer.close(result, inner.outcome)


@dataclass(frozen=True, slots=True)
class _AsyncAround:
    layer: Layer
    call: Call[Any, Any]

    async def __call__(self, request: Any) -> Any:
        inner = _AsyncInner(self.layer, self.call)
        result = await self.layer.wrap(request, inner)
        if inner.signal is not None:  # the wrap swallowed it
            raise inner.signal
        return self.layer.close(result, inner.outcome)


def drive(policy: Generator[RequestT, ResultT, Any], call: Callable[[RequestT], ResultT]) -> Any:
    """Run a policy written as a generator: each request it yields is called, and the result or error sent back in.

    Args:
        policy: Yields requests, is sent results (or thrown the call's exceptions), and returns its own result. Where it
            yields a `Sleep` or a `Blocking`, that is served instead.
        call: Makes one call.

    Returns:
        What the generator returned.
    """
    return _Driver(policy).run(call)


async def adrive(policy: Generator[RequestT, ResultT, Any], call: Callable[[RequestT], Awaitable[ResultT]]) -> Any:
    """As `drive`, with calls that are awaited."""
    return await _Driver(policy).arun(call)


@dataclass(slots=True)
class _Driver(Generic[RequestT, ResultT]):
    """Steps a generator; only the two loops that invoke differ between sync and async."""

    policy: Generator[RequestT, ResultT, Any]
    returned: Any = None

    def run(self, call: Callable[[RequestT], ResultT]) -> Any:
        try:
            request, done = self.step(self.policy.send, None)
            while not done:
                try:
                    result = _served(request, call)
                except GraphInterrupt:
                    for last in self.last_acts():
                        _served(last, call)
                    raise
                except _SIGNALS:
                    raise  # no failure: the policy is closed, not asked
                except Exception as error:
                    request, done = self.step(self.policy.throw, error)
                else:
                    request, done = self.step(self.policy.send, result)
            return self.returned
        finally:
            self.policy.close()

    async def arun(self, call: Callable[[RequestT], Awaitable[ResultT]]) -> Any:
        try:
            request, done = self.step(self.policy.send, None)
            while not done:
                try:
                    result = await _aserved(request, call)
                except GraphInterrupt:
                    for last in self.last_acts():
                        await _aserved(last, call)
                    raise
                except _SIGNALS:
                    raise
                except Exception as error:
                    request, done = self.step(self.policy.throw, error)
                else:
                    request, done = self.step(self.policy.send, result)
            return self.returned
        finally:
            self.policy.close()

    def step(self, resume: Callable[[Any], RequestT], value: Any) -> tuple[Any, bool]:
        """Resume the generator once: (its next request, False), or (None, True) when it returned."""
        try:
            return resume(value), False
        except StopIteration as stop:
            self.returned = stop.value
            return None, True

    def last_acts(self) -> Iterator[Blocking]:
        """Tell the policy of a pause; what it still wants done before it ends."""
        try:
            act: Any = self.policy.throw(Paused())
            while isinstance(act, Blocking):
                yield act
                act = next(self.policy)
        except (StopIteration, Paused):
            return
        raise RuntimeError(f"a policy that was closed by a pause went on: it yielded a {type(act).__name__}.")


def _served(request: Any, call: Callable[[Any], Any]) -> Any:
    if isinstance(request, Sleep):
        return clock.sleep(request.seconds)
    return request.call() if isinstance(request, Blocking) else call(request)


async def _aserved(request: Any, call: Callable[[Any], Awaitable[Any]]) -> Any:
    if isinstance(request, Sleep):
        return await clock.asleep(request.seconds)
    return await (asyncio.to_thread(request.call) if isinstance(request, Blocking) else call(request))
