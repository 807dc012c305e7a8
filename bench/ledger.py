"""What recording a writing call costs: `python -m bench.ledger [URL ...]`, in milliseconds per call."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from agentkit import create_agent
from agentkit.ledger import Ledger
from agentkit.middleware import EffectLedger
from agentkit.testing import ScriptedModel, ai, tool_call
from agentkit.tools import tool

__all__ = ["main", "measure"]

CALLS, TURNS = 20, 5


@tool(effect="write", sequential=True)
def pay(x: int) -> str:
    """Pay."""
    return f"paid {x}"


def measure(ledger: Ledger | None) -> float:
    """Milliseconds per call, the median of some turns, each with a batch of calls."""
    guards: list[Any] = [] if ledger is None else [EffectLedger(ledger)]
    batch = [tool_call("pay", {"x": n}, f"c{n}") for n in range(CALLS)]
    turns = [step for _ in range(TURNS + 1) for step in (ai("", *batch), "done")]
    agent = create_agent(ScriptedModel(*turns), [pay], middleware=guards)
    seconds = []
    for _ in range(TURNS + 1):
        start = perf_counter()
        agent.invoke({"messages": "pay"})
        seconds.append(perf_counter() - start)
    return median(seconds[1:]) / CALLS * 1000  # the first one makes the tables


def main(urls: Sequence[str]) -> None:
    """Print the cost beside an agent without a ledger, in memory, in a SQLite file and at the given URLs."""
    bare = measure(None)
    print(f"{'without':12} {bare:6.2f} ms per call")
    with TemporaryDirectory() as folder:
        for url in ("memory:", f"sqlite:///{Path(folder, 'ledger.db')}", *urls):
            with Ledger(url) as ledger:
                print(f"{url.partition(':')[0]:12} {measure(ledger) - bare:+6.2f} ms per call")


if __name__ == "__main__":
    main(sys.argv[1:])
