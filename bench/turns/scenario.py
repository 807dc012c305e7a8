"""What a scenario is: its rows in the table, and for each contender something that gives one value for each row."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.turns.peers import Peers

OURS = ("hook", "turn")
SHARED = "langchain, our saver"
CONTENDERS = (*OURS, "langchain", SHARED, "bare", "pydantic-ai", "openai-agents")
"""In the order of the table's columns."""

Sampler = Callable[[], Sequence[float]]
"""Does the work once; a value for each row of the scenario."""


class LeftOut(Exception):
    """A scenario or a contender cannot be measured here; says why."""


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    name: str
    what: str
    unit: str = "ms"
    """`ms`: CPU milliseconds of the whole process, `wall ms`: by the clock; both per turn where the work has turns."""


@dataclass
class Bench:
    """What scenarios are prepared with."""

    quick: bool = False
    """Smaller sizes, to see that all works; the rows then tell the sizes they were made with."""
    peers: Peers | None = None
    closing: ExitStack = field(default_factory=ExitStack)
    """Closed when the scenario has been measured."""

    def size(self, full: int, quick: int) -> int:
        """One of the two."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Prepared:
    """A scenario that is ready to be measured."""

    rows: Sequence[Row]
    samplers: Mapping[str, Sampler]
    warm: bool = True
    """Whether each is done once before the first round."""


@dataclass(frozen=True)
class Scenario:
    """A scenario by its name."""

    name: str
    about: str
    prepare: Callable[[Bench], Prepared]
    most: int | None = None
    """Rounds at most, where one takes long."""


@contextmanager
def as_it_stands() -> Iterator[None]:
    """Let garbage collection pass over what is there already, which takes long beside one run."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def no_collection() -> Iterator[None]:
    """Without garbage collection, which would hit one contender for another's garbage."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def clocked(work: Callable[[], object], turns: int) -> tuple[float, float]:
    """CPU milliseconds per turn, and milliseconds by the clock."""
    with no_collection():
        begun, working = time.perf_counter(), time.process_time()
        work()
        worked, passed = time.process_time() - working, time.perf_counter() - begun
    return worked * 1000 / turns, passed * 1000 / turns


def cpu(work: Callable[[], object], turns: int) -> Sampler:
    """CPU milliseconds per turn, as the only row."""
    return lambda: clocked(work, turns)[:1]


def wall(work: Callable[[], object], turns: int) -> Sampler:
    """Milliseconds by the clock per turn, then of CPU."""
    return lambda: clocked(work, turns)[::-1]


def import_or_leave_out(module: str, package: str) -> Any:
    """A module that only this scenario needs."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise LeftOut(f"{package} is not installed") from None
