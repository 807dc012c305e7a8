"""What each shipped middleware costs per turn: `make bench-middleware`, or `python -m bench.middleware --help`.

An agent with one middleware, with its default or most natural options, beside the same agent without it: turns of a
model that answers at once and a tool that adds. The two take turns, run by run. Told is what the middleware adds to a
turn: CPU milliseconds (the median of the pairs' differences, with their middle half), calls of functions, and
super-steps of the graph. The last two are counted, so nothing else on the machine disturbs them.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired
from uuid import uuid4

from langchain.agents.middleware import AgentState
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import Middleware, create_agent, thread
from agentkit.ledger import Ledger
from agentkit.middleware import (
    Approval,
    EffectLedger,
    Facts,
    Gates,
    Handoff,
    Insist,
    ModelRetry,
    Reuse,
    RunLog,
    ToolRetry,
    Tracing,
    standard,
)
from agentkit.telemetry import Telemetry
from agentkit.tools import tool
from bench import page
from bench.tracing import counted, providers
from bench.turns.measuring import spread
from bench.turns.model import Model
from bench.turns.scenario import as_it_stands, clocked
from bench.turns.telling import cell, markdown

GRANULARITIES = ("hook", "turn")


class State(AgentState[Any]):
    """A state with a field that `Facts` shows."""

    customer: NotRequired[str]


@tool("add", effect="read")
def reads(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool("add", effect="write")
def writes(a: int, b: int) -> int:
    """Add two numbers, as a tool that changes something."""
    return a + b


class Varied(Model):
    """Asks for another sum in each turn, whatever messages a middleware adds, so that no gate sees a repetition."""

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        turn = sum(message.type == "ai" for message in messages)
        call = ToolCall(name="add", args={"a": turn, "b": 2}, id=f"c{turn}")
        reply = AIMessage("Done.") if turn >= self.turns - 1 else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


@dataclass(frozen=True)
class Case:
    """A middleware, and what it needs."""

    name: str
    make: Callable[[Path], Sequence[Middleware]]
    """Takes a folder that is gone afterwards."""
    writing: bool = False
    """Whether the tool changes something."""
    saver: bool = False
    """Whether there is a checkpointer, in memory; then the agent without the middleware has it too."""


def _one(kind: Callable[[], Middleware]) -> Callable[[Path], Sequence[Middleware]]:
    return lambda folder: [kind()]


CASES = (
    Case("Approval(), calls that need none", _one(Approval), saver=True),
    Case('EffectLedger("sqlite:///..."), writing calls', lambda folder: [EffectLedger(_ledger(folder))], True, True),
    Case('Facts(["customer"])', _one(lambda: Facts(["customer"]))),
    Case("Gates()", _one(Gates)),
    Case('Handoff("a person")', _one(lambda: Handoff("a person"))),
    Case("Insist()", _one(Insist)),
    Case("ModelRetry()", _one(ModelRetry)),
    Case("Reuse()", _one(Reuse)),
    Case("RunLog()", _one(RunLog)),
    Case("ToolRetry()", _one(ToolRetry)),
    Case("Tracing(), nothing set up to record", _one(Tracing)),
    Case("Tracing(), recording", _one(lambda: Tracing(Telemetry(**providers())))),
    Case("standard()", lambda folder: standard()),
)


def _ledger(folder: Path) -> Ledger:
    return Ledger(f"sqlite:///{folder}/{uuid4().hex}.db")


@dataclass(frozen=True)
class Agent:
    """An agent to run; each run is on a thread of its own."""

    graph: Any
    asynchronous: bool

    def __call__(self) -> Any:
        """Run to the end; the state then."""
        given, config = self._given()
        return asyncio.run(self.graph.ainvoke(given, config)) if self.asynchronous else self.graph.invoke(given, config)

    def steps(self) -> int:
        """Super-steps of one run."""
        given, config = self._given()
        return len({event["step"] for event in self.graph.stream(given, config, stream_mode="debug")})

    def _given(self) -> tuple[Any, Any]:
        given = {"messages": [HumanMessage("1 + 2?")], "customer": "Ada"}
        return given, {**thread(uuid4().hex), "recursion_limit": 1000}


def agent(case: Case, middleware: Sequence[Middleware], granularity: Any, asynchronous: bool, turns: int) -> Agent:
    """An agent for a case, with or without its middleware."""
    graph = create_agent(
        Varied(turns=turns),
        [writes if case.writing else reads],
        middleware=middleware,
        state_schema=State,
        checkpointer=InMemorySaver() if case.saver else None,
        granularity=granularity,
    )
    return Agent(graph, asynchronous)


@dataclass(frozen=True)
class Cost:
    """What a middleware adds to a turn."""

    ms: dict[str, float]
    calls: float
    steps: float


def cost(case: Case, granularity: str, asynchronous: bool, *, runs: int, turns: int, folder: Path) -> Cost:
    """Measure a case: run by run with and without it, each first in turn.

    Raises:
        RuntimeError: If the middleware changed the course of the run, which would be measured as its cost.
    """
    without = agent(case, [], granularity, asynchronous, turns)
    having = agent(case, case.make(folder), granularity, asynchronous, turns)
    pair = [without, having]
    if len({len(each()["messages"]) for each in pair}) > 1:
        raise RuntimeError(f"bench-middleware: with {case.name} the run took another course.")
    found: dict[int, list[float]] = {0: [], 1: []}
    with as_it_stands():
        for number in range(runs):
            for which in (0, 1) if number % 2 else (1, 0):
                found[which].append(clocked(pair[which], turns)[0])
    added = [b - a for a, b in zip(found[0], found[1], strict=True)]
    calls = [counted(each, runs=2) for each in pair]
    return Cost(spread(added), (calls[1] - calls[0]) / turns, (having.steps() - without.steps()) / turns)


@contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="agentkit-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


Costs = dict[tuple[str, str, bool], Cost]
"""By middleware, granularity, and whether async."""


def table(costs: Costs) -> str:
    """The costs as a Markdown table, a line per middleware."""
    ways = [(granularity, asynchronous) for granularity in GRANULARITIES for asynchronous in (False, True)]
    head = ["per turn, added", *(f"{name}, {'async' if is_async else 'sync'}: ms" for name, is_async in ways)]
    head += [f"{name}, {'async' if is_async else 'sync'}: calls" for name, is_async in ways]
    head += [f"{name}: steps" for name in GRANULARITIES]
    lines = [head, ["---", *("---:" for _ in head[1:])]]
    for middleware in dict.fromkeys(name for name, _, _ in costs):
        each = [costs[middleware, *way] for way in ways]
        cells = [cell(one.ms, "ms") for one in each] + [f"{one.calls:,.0f}" for one in each]
        lines.append(
            [f"`{middleware}`", *cells, *(f"{costs[middleware, name, False].steps:g}" for name in GRANULARITIES)]
        )
    return markdown(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="make bench-middleware", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=40, help="runs with and without each (default: 40)")
    parser.add_argument("--turns", type=int, default=10, help="turns of each run (default: 10)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these, by the beginning of the name, e.g. Gates")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/performance.md")
    given = parser.parse_args(arguments)
    chosen = [case for case in CASES if not given.only or case.name.startswith(tuple(given.only))]
    if not chosen or given.runs < 1 or given.turns < 1:
        names = ", ".join(case.name.partition("(")[0] for case in CASES)
        print(
            f"bench-middleware: nothing to measure; --runs and --turns are at least 1, names are {names}.",
            file=sys.stderr,
        )
        return 2
    if given.docs and given.only:
        print("bench-middleware: --docs writes the whole table; leave out --only.", file=sys.stderr)
        return 2
    costs: Costs = {}
    with _folder() as folder:
        for case in chosen:
            print(f"{case.name} ...", file=sys.stderr, flush=True)
            for granularity in GRANULARITIES:
                for asynchronous in (False, True):
                    costs[case.name, granularity, asynchronous] = cost(
                        case, granularity, asynchronous, runs=given.runs, turns=given.turns, folder=folder
                    )
    print(table(costs))
    if given.docs:
        page.write(page.DOCS / "performance.md", "make bench-middleware", table(costs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
