"""Scenarios that need new processes: S7, S7m, S7r and S7c (importing and starting), and S8 (idle threads)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.turns.factories import FACTORIES
from bench.turns.scenario import Bench, LeftOut, Prepared, Row, Sampler, Scenario

ROOT = Path(__file__).resolve().parents[2]
_ALL = (*FACTORIES, "bare")


def process(command: Sequence[str]) -> tuple[float, int]:
    """CPU milliseconds of a process from its start to its end, and the number that it prints.

    Raises:
        LeftOut: If it fails.
    """
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout:
        printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise LeftOut(f"{' '.join(command)} ended with {child.returncode}; what it says is above.")
    return (usage.ru_utime + usage.ru_stime) * 1000, int(printed)


def _cold(task: str, contender: str, size: int = 0) -> tuple[float, int]:
    return process([sys.executable, "-m", "bench.turns.cold", task, contender, str(size)])


def _time(task: str, contender: str) -> Sampler:
    return lambda: [_cold(task, contender)[0]]


def _memory(task: str, contender: str) -> Sampler:
    return lambda: [_cold(task, contender)[1] / 1e6]


def _started(name: str, what: str, unit: str, task: str, sampler: Callable[[str, str], Sampler]) -> Scenario:
    def prepare(bench: Bench) -> Prepared:
        found = {contender: sampler(task, contender) for contender in _ALL}
        if bench.peers:
            found |= bench.peers.started(task, memory=unit == "MB")
        return Prepared([Row(name, what, unit)], found, warm=unit == "ms")

    return Scenario(name, what, prepare, most=5 if unit == "ms" else 3)


def _idle(bench: Bench) -> Prepared:
    size = bench.size(1000, 100)
    found: dict[str, Sampler] = {
        contender: lambda contender=contender: [_cold("idle", contender, size)[1] / 1000]  # type: ignore[misc]
        for contender in FACTORIES
    }
    return Prepared([Row("S8", f"memory of one of {size:,} idle threads, 3 hook middlewares", "kB")], found, warm=False)


SCENARIOS = (
    _started("S7", "a new process that imports what makes an agent", "ms", "factory", _time),
    _started("S7m", "memory of a new process that imports the package", "MB", "package", _memory),
    _started("S7r", "memory of a new process that imports what makes an agent", "MB", "factory", _memory),
    _started("S7c", "a new process that makes an agent and runs it once", "ms", "run", _time),
    Scenario("S8", "memory of one of 1,000 idle threads, 3 hook middlewares", _idle, most=3),
)
