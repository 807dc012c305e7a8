"""The pool of threads: order, contexts, limits, no deadlock, and what happens to what is broken off."""

from __future__ import annotations

import os
from contextvars import ContextVar
from functools import partial
from threading import Barrier, Event, get_ident

import pytest

from agentkit.pool import POOL, Pool, Raised, Returned


def test_calls_run_at_once_and_come_back_in_their_order() -> None:
    together = Barrier(40)  # none returns before all have begun, whatever the number of cores

    def call(number: int) -> int:
        together.wait(30)
        return number

    assert Pool().run_all([partial(call, n) for n in range(40)]) == [Returned(n) for n in range(40)]
    assert Pool().run_all([]) == []


def test_an_exception_is_an_outcome_like_any_other() -> None:
    error = KeyError("x")

    def fails() -> int:
        raise error

    assert Pool().run_all([fails, lambda: 1, fails]) == [Raised(error), Returned(1), Raised(error)]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_no_more_than_the_limit_run_at_once_and_in_order(limit: int) -> None:
    running, most, begun = list[int](), list[int](), list[int]()
    together = Barrier(limit)

    def call(number: int) -> None:
        begun.append(number)
        running.append(number)
        most.append(len(running))
        together.wait(30)  # so many do run at once
        running.remove(number)
        together.wait(30)

    Pool().run_all([partial(call, n) for n in range(6)], limit)
    assert max(most) == limit
    assert sorted(begun) == list(range(6))
    if limit == 1:
        assert begun == list(range(6))


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="not 0"):
        Pool().run_all([lambda: 1], 0)


def test_calls_that_call_again_never_wait_for_a_thread() -> None:
    pool = Pool()

    def tree(depth: int) -> int:
        if depth == 0:
            return 1
        return sum(one.value for one in pool.run_all([partial(tree, depth - 1)] * 5) if isinstance(one, Returned))

    assert tree(3) == 125


VARIABLE: ContextVar[str] = ContextVar("variable")


def test_each_call_has_a_context_of_its_own() -> None:
    VARIABLE.set("outside")

    def call(number: int) -> str:
        found = VARIABLE.get()
        VARIABLE.set(f"inside {number}")
        return found

    assert Pool().run_all([partial(call, n) for n in range(5)], 2) == [Returned("outside")] * 5
    assert VARIABLE.get() == "outside"


def test_threads_are_used_again() -> None:
    pool = Pool()
    seen = {one.value for _ in range(20) for one in pool.run_all([get_ident] * 2) if isinstance(one, Returned)}
    assert len(seen) < 20


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_no_exception_leaves_at_once_and_what_has_not_begun_never_does(error: type[BaseException]) -> None:
    release, made = Event(), list[str]()

    def hangs() -> None:
        release.wait(30)
        made.append("hung")

    def interrupted() -> None:
        raise error

    try:
        with pytest.raises(error):
            Pool().run_all([hangs, interrupted, lambda: made.append("late")], 2)
        assert made == []  # nobody waited for the call that hangs
    finally:
        release.set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    POOL.run_all([get_ident, get_ident])
    child = os.fork()
    if child == 0:
        os._exit(0 if POOL.run_all([lambda: 1, lambda: 2]) == [Returned(1), Returned(2)] else 1)
    assert os.waitpid(child, 0)[1] == 0
