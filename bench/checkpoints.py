"""What long threads cost in a store: `make bench-checkpoints`.

A turn is a message, a model call that asks for a tool, the tool, and the closing model call, with three middlewares
that each have a hook before and after the model. Printed are bytes and milliseconds per turn (the average of all turns
so far; wall clock, and the process's own CPU) after 50, 100, 200 and 400 turns of one thread, and how long it takes to
read the thread's state back: for agentkit with a step per hook and with a step per turn, and for LangChain's own
factory, all on the same store.
With `--docs` the table is also written into the documentation.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent as langchain_create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from agentkit import create_agent, thread
from agentkit.checkpoint import Saver, list_threads
from agentkit.testing import Request, ScriptedModel, ai, tool_call
from bench import page
from bench.turns.factories import Hook, stack
from bench.turns.stores import postgres_databases, sqlite_files


def look(city: str) -> str:
    """Tell the weather of a city."""
    return f"In {city} it is 18 degrees, with a light wind from the west and some clouds in the afternoon."


def answer(request: Request) -> AIMessage | str:
    """Ask for the tool, then answer."""
    if isinstance(request.messages[-1], ToolMessage):
        return "It is mild, with some clouds later; a light jacket will do for a walk by the river."
    return ai("", tool_call("look", {"city": "Bremen"}, f"call_{len(request.messages)}"))


def contenders() -> dict[str, Callable[[Saver], Any]]:
    """How each contender builds an agent on a store."""

    def parts() -> dict[str, Any]:
        return {"model": ScriptedModel(answer, repeat=True), "tools": [look], "middleware": stack(Hook, 3)}

    return {
        "agentkit, step per hook": lambda saver: create_agent(**parts(), checkpointer=saver),
        "agentkit, step per turn": lambda saver: create_agent(**parts(), checkpointer=saver, granularity="turn"),
        "LangChain": lambda saver: langchain_create_agent(**parts(), checkpointer=saver),
    }


@dataclass(frozen=True)
class Mark:
    """What a thread cost up to a number of turns."""

    turns: int
    bytes: float
    """Per turn."""
    milliseconds: float
    """Per turn, by the clock."""
    cpu: float
    """Milliseconds of this process's CPU per turn; what a server does is not in it."""
    load: float
    """Milliseconds to read the state back."""


def measure(agent: Any, saver: Saver, marks: Sequence[int]) -> list[Mark]:
    """Run one thread as long as the last mark says."""
    config: RunnableConfig = thread("t")
    spent, worked, found = 0.0, 0.0, []
    for turn in range(1, marks[-1] + 1):
        begun, working = time.perf_counter(), time.process_time()
        agent.invoke({"messages": f"Question {turn}: what is the weather like, and what should I wear?"}, config)
        spent, worked = spent + time.perf_counter() - begun, worked + time.process_time() - working
        if turn in marks:
            begun = time.perf_counter()
            agent.get_state(config)
            load = time.perf_counter() - begun
            (info,) = list_threads(saver)
            found.append(Mark(turn, info.bytes / turn, spent * 1000 / turn, worked * 1000 / turn, load * 1000))
    return found


def markdown(found: dict[tuple[str, str], list[Mark]]) -> str:
    """One table: a row per store and contender, with bytes and milliseconds at each mark."""
    marks = [mark.turns for mark in next(iter(found.values()))]
    head = ["store", "", *(f"{turns} turns" for turns in marks), f"read back at {marks[-1]}"]
    lines = [head, ["---", "---", *("---:" for _ in head[2:])]]
    for (store, contender), row in found.items():
        cells = [f"{_bytes(mark.bytes)}, {mark.milliseconds:.1f} ms ({mark.cpu:.1f})" for mark in row]
        lines.append([store, contender, *cells, f"{row[-1].load:.0f} ms"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _bytes(number: float) -> str:
    return f"{number / 1000:,.1f} kB" if number < 1_000_000 else f"{number / 1_000_000:,.2f} MB"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make bench-checkpoints", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--turns", type=int, nargs="+", default=[50, 100, 200, 400], help="where to look")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/bench/checkpoints.md")
    given = parser.parse_args(arguments)
    found: dict[tuple[str, str], list[Mark]] = {}
    for store, opened in (("SQLite", sqlite_files), ("PostgreSQL", postgres_databases)):
        with opened() as empty:
            for contender, build in contenders().items():
                print(f"{store}, {contender} ...", file=sys.stderr, flush=True)
                with next(empty).ours() as saver:
                    found[store, contender] = measure(build(saver), saver, sorted(given.turns))
    table = markdown(found)
    print(table)
    if given.docs:
        page.write(page.DOCS / "bench" / "checkpoints.md", "make bench-checkpoints", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
