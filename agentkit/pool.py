"""Threads for calls that go on at once: as many as there are calls, shared by all agents.

A pool of a fixed size makes calls wait for which there is nothing to do but wait, and stands still for ever when a call
in it runs an agent whose calls need it too. This one starts a thread whenever none is idle. LangGraph, which runs steps
that go on at once in threads of its own, bounds them by the number of cores; `unbounded` has it start enough of them.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Final, Generic, TypeAlias, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config

__all__ = ["POOL", "Outcome", "Pool", "Raised", "Returned", "unbounded", "unseen"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """A call that returned."""

    value: T


@dataclass(frozen=True, slots=True)
class Raised:
    """A call that failed."""

    error: Exception


Outcome: TypeAlias = Returned[T] | Raised


class Pool:
    """Threads that are kept for the next calls."""

    def __init__(self) -> None:
        """Start none yet."""
        self._lock = Lock()
        self._process = 0
        self._executor: ThreadPoolExecutor

    def run_all(self, calls: Sequence[Callable[[], T]], limit: int | None = None) -> list[Outcome[T]]:
        """Make calls at once, each in a copy of this thread's context, and wait for all of them.

        Args:
            calls: What to call.
            limit: How many at once, begun in their order; None: all.

        Returns:
            What became of each call, in the order of the calls.

        Raises:
            ValueError: If the limit is below one.
            BaseException: What is no `Exception`, from a call or from outside (Ctrl-C), at once: calls that were not
                begun are not made, and nobody waits for those that were.
        """
        if limit is not None and limit < 1:
            raise ValueError(f"at least one call has to run at once, not {limit}")
        batch = _Batch([partial(copy_context().run, call) for call in calls])
        workers: list[Future[None]] = []
        threads = self._threads()
        try:
            for _ in range(min(len(calls), limit or len(calls))):
                workers.append(threads.submit(batch.work))
            for worker in wait(workers, return_when=FIRST_EXCEPTION).done:
                worker.result()
        except BaseException:
            batch.waiting.clear()
            raise
        return cast(list[Outcome[T]], batch.outcomes)

    def _threads(self) -> ThreadPoolExecutor:
        """The executor of this process: a fork has none of the threads."""
        if self._process != os.getpid():
            with self._lock:
                if self._process != os.getpid():
                    self._executor = ThreadPoolExecutor(sys.maxsize, "agentkit")
                    self._process = os.getpid()
        return self._executor


class _Batch(Generic[T]):
    """Calls that are waiting for a thread, and what became of the others."""

    def __init__(self, calls: Sequence[Callable[[], T]]) -> None:
        self.waiting = deque(enumerate(calls))
        self.outcomes: list[Outcome[T] | None] = [None] * len(calls)

    def work(self) -> None:
        """Make one call after the other while there are any."""
        while True:
            try:
                place, call = self.waiting.popleft()
            except IndexError:
                return
            try:
                self.outcomes[place] = Returned(call())
            except Exception as error:
                self.outcomes[place] = Raised(error)


POOL: Final = Pool()


_UNBOUNDED: Final = sys.maxsize


def unbounded(config: RunnableConfig | None, default: RunnableConfig | None) -> RunnableConfig | None:
    """A sync run's config, so that LangGraph has a thread for each of the steps that go on at once.

    Args:
        config: The run's config. What it, or the run it happens in, says of `max_concurrency` stays.
        default: The config that the agent is bound to.
    """
    if ensure_config(config).get("max_concurrency") or (default or {}).get("max_concurrency"):
        return config
    return {**(config or {}), "max_concurrency": _UNBOUNDED}


def unseen(config: RunnableConfig) -> RunnableConfig:
    """A step's own config, without what `unbounded` put there: a `batch` inside of the step is not to inherit it."""
    if config.get("max_concurrency") == _UNBOUNDED:
        del config["max_concurrency"]  # in place: the config that is inherited is this one
    return config
