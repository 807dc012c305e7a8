"""The onion of wraps and the drivers of generators, without agents: sync and async tell the same story."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from agentkit.chain import Blocking, Layer, Paused, adrive, compose, drive

Wrap = Callable[[Any, Callable[[Any], Any]], Any]


def run(wraps: list[Wrap], core: Callable[[Any], Any], request: Any, *, is_async: bool) -> Any:
    """Compose plain wraps around a core and call it, through either form."""
    if not is_async:
        return compose([_layer(wrap) for wrap in wraps], core, is_async=False)(request)

    async def acore(request: Any) -> Any:
        await asyncio.sleep(0)
        return core(request)

    return asyncio.run(compose([_layer(_in_async(wrap)) for wrap in wraps], acore, is_async=True)(request))


def _layer(wrap: Any) -> Layer:
    return Layer(wrap, lambda outcome: outcome, lambda result, inner: result)


def _in_async(wrap: Wrap) -> Any:
    """The same wrap for an async handler: it runs in a thread whose handler waits for the loop."""

    async def awrap(request: Any, handler: Any) -> Any:
        loop = asyncio.get_running_loop()

        def call(inner: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(handler(inner), loop).result()

        return await asyncio.to_thread(wrap, request, call)

    return awrap


both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@both
def test_the_first_wrap_is_the_outermost(is_async: bool) -> None:
    def named(name: str) -> Wrap:
        return lambda request, handler: f"{name}({handler(request + name)})"

    assert (
        run([named("a"), named("b"), named("c")], lambda r: f"core {r}", "", is_async=is_async) == "a(b(c(core abc)))"
    )


@both
def test_without_wraps_the_core_is_called(is_async: bool) -> None:
    assert run([], lambda r: r + 1, 1, is_async=is_async) == 2


@both
def test_a_wrap_may_call_never_once_or_often(is_async: bool) -> None:
    calls: list[str] = []

    def twice(request: Any, handler: Any) -> Any:
        return [handler(request), handler(request)]

    def core(request: Any) -> int:
        calls.append(request)
        return len(calls)

    assert run([twice], core, "r", is_async=is_async) == [1, 2]
    assert run([lambda r, h: "short"], core, "r", is_async=is_async) == "short"
    assert calls == ["r", "r"]


@both
def test_errors_pass_out_through_the_outer_wraps(is_async: bool) -> None:
    def catches(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except ValueError as error:
            return f"caught {error}"

    def core(request: Any) -> Any:
        raise ValueError("inside")

    assert run([catches, lambda r, h: h(r)], core, None, is_async=is_async) == "caught inside"


@both
def test_a_layer_closes_with_its_last_inner_outcome(is_async: bool) -> None:
    outcomes = iter(["first", "second"])

    async def acore(request: Any) -> Any:
        return next(outcomes)

    async def atwice(request: Any, handler: Any) -> Any:
        assert await handler(request) == "opened first"
        return await handler(request)

    def twice(request: Any, handler: Any) -> Any:
        assert handler(request) == "opened first"
        return handler(request)

    layer = Layer(
        atwice if is_async else twice, lambda outcome: f"opened {outcome}", lambda result, inner: (result, inner)
    )
    call = compose([layer], acore if is_async else lambda r: next(outcomes), is_async=is_async)
    result = asyncio.run(call(None)) if is_async else call(None)
    assert result == ("opened second", "second")


@both
@pytest.mark.parametrize("signal", [GraphInterrupt(()), GraphBubbleUp("to the parent")], ids=["pause", "parent"])
def test_no_wrap_can_swallow_a_signal(is_async: bool, signal: GraphBubbleUp) -> None:
    calls = 0

    def swallows(request: Any, handler: Any) -> Any:
        for _ in range(3):
            try:
                handler(request)
            except Exception:
                continue
        return "swallowed"

    def core(request: Any) -> Any:
        nonlocal calls
        calls += 1
        raise signal

    with pytest.raises(type(signal)):
        run([swallows, swallows], core, None, is_async=is_async)
    assert calls == 1, "a retry around a pause must not ask twice"


def test_a_composed_chain_keeps_nothing_of_a_request() -> None:
    layers = [_layer(lambda r, h: h(r))]

    def core(request: Any) -> Any:
        if request == "pause":
            raise GraphInterrupt(())
        return request

    call = compose(layers, core, is_async=False)
    with pytest.raises(GraphInterrupt):
        call("pause")
    assert call("next") == "next"


# ---- generators

Policy = Generator[Any, Any, Any]


def driven(policy: Policy, call: Callable[[Any], Any], *, is_async: bool) -> Any:
    if not is_async:
        return drive(policy, call)

    async def acall(request: Any) -> Any:
        await asyncio.sleep(0)
        return call(request)

    return asyncio.run(adrive(policy, acall))


@both
def test_a_policy_is_sent_each_result(is_async: bool) -> None:
    def policy() -> Policy:
        first = yield 1
        second = yield first + 10
        return [first, second]

    assert driven(policy(), lambda r: r * 2, is_async=is_async) == [2, 24]


@both
def test_a_policy_that_never_yields_short_circuits(is_async: bool) -> None:
    def policy() -> Policy:
        yield from ()
        return "short"

    assert driven(policy(), lambda r: pytest.fail("called"), is_async=is_async) == "short"


@both
def test_a_policy_is_thrown_the_error_and_may_try_again(is_async: bool) -> None:
    tries: list[Any] = []

    def policy() -> Policy:
        try:
            return (yield "first")
        except TimeoutError as error:
            assert str(error) == "slow"
        return (yield "again")

    def call(request: Any) -> Any:
        tries.append(request)
        if request == "first":
            raise TimeoutError("slow")
        return "done"

    assert driven(policy(), call, is_async=is_async) == "done"
    assert tries == ["first", "again"]


@both
def test_an_error_that_a_policy_does_not_catch_leaves_it(is_async: bool) -> None:
    closed: list[bool] = []

    def policy() -> Policy:
        try:
            yield 1
        finally:
            closed.append(True)

    def call(request: Any) -> Any:
        raise KeyError("k")

    with pytest.raises(KeyError):
        driven(policy(), call, is_async=is_async)
    assert closed == [True]


@both
@pytest.mark.parametrize("signal", [GraphInterrupt(()), GraphBubbleUp()], ids=["pause", "parent"])
def test_a_signal_never_enters_a_policy_which_is_closed(is_async: bool, signal: GraphBubbleUp) -> None:
    seen: list[str] = []

    def policy() -> Policy:
        try:
            yield 1
        except Exception:
            seen.append("except")
        finally:
            seen.append("finally")

    def call(request: Any) -> Any:
        raise signal

    with pytest.raises(type(signal)):
        driven(policy(), call, is_async=is_async)
    assert seen == ["finally"]


def test_a_cancelled_call_closes_the_policy() -> None:
    seen: list[str] = []

    def policy() -> Policy:
        try:
            yield 1
        except Exception:
            seen.append("except")
        finally:
            seen.append("finally")

    async def main() -> None:
        started = asyncio.Event()

        async def call(request: Any) -> Any:
            started.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(adrive(policy(), call))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert seen == ["finally"]


@both
def test_a_policy_may_call_what_blocks_and_the_loop_does_not_wait(is_async: bool) -> None:
    def policy() -> Generator[Any, Any, Any]:
        here = yield Blocking(threading.get_ident)
        try:
            yield Blocking(lambda: 1 // 0)
        except ZeroDivisionError:
            return here == threading.get_ident(), (yield "request")

    assert driven(policy(), str.upper, is_async=is_async) == (not is_async, "REQUEST")


@both
def test_a_policy_is_told_of_a_pause_and_may_act_before_it_ends(is_async: bool) -> None:
    acts: list[str] = []

    def inner() -> Generator[Any, Any, Any]:
        try:
            yield "request"
        except Paused:
            yield Blocking(lambda: acts.append("noted"))
            raise

    def outer() -> Generator[Any, Any, Any]:
        try:
            return (yield from inner())
        except Exception:
            acts.append("an error")
        finally:
            acts.append("closed")

    def pauses(request: Any) -> Any:
        raise GraphInterrupt

    with pytest.raises(GraphInterrupt):
        driven(outer(), pauses, is_async=is_async)
    assert acts == ["noted", "closed"]


@both
def test_a_pause_cannot_be_answered(is_async: bool) -> None:
    def stubborn() -> Generator[Any, Any, Any]:
        try:
            yield "request"
        except Paused:
            yield "another"

    def pauses(request: Any) -> Any:
        raise GraphInterrupt

    with pytest.raises(RuntimeError, match="closed by a pause went on: it yielded a str"):
        driven(stubborn(), pauses, is_async=is_async)


@both
def test_other_signals_close_a_policy_without_a_pause(is_async: bool) -> None:
    seen: list[str] = []

    def policy() -> Generator[Any, Any, Any]:
        try:
            yield "request"
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    def leaves(request: Any) -> Any:
        raise GraphBubbleUp

    with pytest.raises(GraphBubbleUp):
        driven(policy(), leaves, is_async=is_async)
    assert seen == ["GeneratorExit"]
