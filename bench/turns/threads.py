"""S3: a thread that grows in a store, looked at after 50, 100, 200 and 400 turns.

agentkit runs on the saver that `agentkit.checkpoint.open` gives, LangChain's factory on LangGraph's own and, beside it,
on agentkit's, so that what the agent costs and what the saver costs can be told apart.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from agentkit import thread
from bench.turns.factories import FACTORIES, Hook, stack
from bench.turns.model import Model, add
from bench.turns.scenario import SHARED, Bench, Prepared, Row, Scenario, no_collection
from bench.turns.stores import Store, postgres_databases, sqlite_files

MARKS = (50, 100, 200, 400)
QUICK_MARKS = (10, 20)
_PER_RUN = 2
_READS = 5


@dataclass
class Spent:
    """What a thread cost so far, in seconds."""

    cpu: float = 0
    wall: float = 0

    def on(self, work: Callable[[], object]) -> None:
        """Add what this costs."""
        begun, working = time.perf_counter(), time.process_time()
        work()
        self.cpu += time.process_time() - working
        self.wall += time.perf_counter() - begun


@dataclass(frozen=True)
class Mark:
    """A thread after so many turns: totals, but for the load, which is what reading the state once takes."""

    turns: int
    cpu: float
    wall: float
    bytes: int
    load: float

    def values(self) -> list[float]:
        """A value for each row of this mark; see `rows`."""
        return [self.cpu * 1000 / self.turns, self.wall * 1000 / self.turns, float(self.bytes), self.load * 1000]


def rows(name: str, where: str, marks: Sequence[int]) -> list[Row]:
    """The rows of a thread that is looked at there."""
    found = []
    for turns in marks:
        what = f"a thread of {turns} turns in {where}, 3 hook middlewares"
        found += [
            Row(f"{name}-{turns}", what),
            Row(f"{name}-{turns}.wall", f"{what}, by the clock", "wall ms"),
            Row(f"{name}-{turns}.bytes", f"{what}, stored", "bytes"),
            Row(f"{name}-{turns}.load", f"{what}, reading it back"),
        ]
    span = f"{marks[0]} to {marks[-1]} turns in {where}"
    time_, size = (f"{span}, exponent of the growth of {of}" for of in ("time", "bytes"))
    return [*found, Row(f"{name}.exp.time", time_, "exponent"), Row(f"{name}.exp.bytes", size, "exponent")]


def grow(agent: Any, store: Store, marks: Sequence[int]) -> list[Mark]:
    """Run one thread as long as the last mark says, two turns to a user turn."""
    spent, found = Spent(), []
    config = thread("t")
    for turns in range(_PER_RUN, marks[-1] + 1, _PER_RUN):
        spent.on(partial(agent.invoke, {"messages": "1 + 2?"}, config))
        if turns in marks:
            found.append(Mark(turns, spent.cpu, spent.wall, store.bytes(), _load(agent, config)))
    return found


def _load(agent: Any, config: Any) -> float:
    """CPU seconds."""
    times = []
    for _ in range(_READS):
        read = Spent()
        read.on(partial(agent.get_state, config))
        times.append(read.cpu)
    return statistics.median(times)


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of a straight line through the points' logarithms: 1 where y grows as x does, 2 as its square."""
    if len(points) < 2:
        return math.nan
    logs = [(math.log(x), math.log(y)) for x, y in points]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def _sampler(contender: str, stores: Iterator[Store], marks: Sequence[int]) -> Callable[[], list[float]]:
    make = FACTORIES["langchain" if contender == SHARED else contender]

    def sample() -> list[float]:
        store = next(stores)
        with store.theirs() if contender == "langchain" else store.ours() as saver:
            agent = make(Model(turns=_PER_RUN), [add], middleware=stack(Hook, 3), checkpointer=saver)
            with no_collection():
                found = grow(agent, store, marks)
        exponents = [exponent([(m.turns, m.cpu) for m in found]), exponent([(m.turns, m.bytes) for m in found])]
        return [*(value for mark in found for value in mark.values()), *exponents]

    return sample


def _scenario(name: str, where: str, stores: Callable[[], AbstractContextManager[Iterator[Store]]]) -> Scenario:
    def prepare(bench: Bench) -> Prepared:
        marks = QUICK_MARKS if bench.quick else MARKS
        opened = bench.closing.enter_context(stores())
        names = [*FACTORIES, SHARED]
        for each in () if bench.quick else names:  # to warm up
            _sampler(each, opened, QUICK_MARKS)()
        return Prepared(rows(name, where, marks), {each: _sampler(each, opened, marks) for each in names}, warm=False)

    about = (
        f"a thread of {', '.join(map(str, MARKS))} turns in {where}, 3 hook middlewares: time, bytes, reading it back"
    )
    return Scenario(name, about, prepare, most=3)


SCENARIOS = (_scenario("S3", "SQLite", sqlite_files), _scenario("S3p", "PostgreSQL", postgres_databases))
