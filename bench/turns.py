"""What one turn costs beside LangChain's factory and a bare loop: `make bench`.

The model is scripted and answers at once, so what is left is the framework. All contenders of a scenario take turns
within one run of this program, round by round, and every time is CPU time of the whole process, so that other
programs disturb all alike. Printed are medians with the middle half of the rounds, per turn (a model call and a tool
call), and the median of each round's ratio to LangChain's.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from agentkit import create_agent, thread
from agentkit.testing import ai, tool_call

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- begin: written by make bench -->", "<!-- end -->"
Work = Callable[[], object]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def wait(a: int) -> int:
    """Wait 20 milliseconds."""
    time.sleep(0.02)
    return a


class Hook(AgentMiddleware[Any, Any, Any]):
    """Two node hooks that do nothing."""

    def before_model(self, state: Any, runtime: Any) -> None:
        """Do nothing."""

    def after_model(self, state: Any, runtime: Any) -> None:
        """Do nothing."""


class Wrap(AgentMiddleware[Any, Any, Any]):
    """A model wrap and a tool wrap that do nothing."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Pass it on."""
        return handler(request)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Pass it on."""
        return handler(request)


def stack(kind: type[AgentMiddleware[Any, Any, Any]], size: int) -> list[Any]:
    """So many middlewares, each a class of its own, which LangChain's factory wants."""
    return [type(f"{kind.__name__}{number}", (kind,), {})() for number in range(size)]


class Model(BaseChatModel):
    """Asks for its calls in all turns of a user turn but the last; otherwise as cheap as a model can be."""

    turns: int
    calls: list[Any]

    @property
    def _llm_type(self) -> str:
        return "bench"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Bind them, with their schemas made as providers' packages do."""
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        since = sum(m.type == "ai" for m in takewhile(lambda m: m.type != "human", reversed(messages)))
        reply = ai("Three.") if since >= self.turns - 1 else ai("", *self.calls)
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


def model(turns: int, *calls: Any) -> Model:
    """A model that asks for these calls, or for one addition."""
    return Model(turns=turns, calls=list(calls) or [tool_call("add", {"a": 1, "b": 2})])


@dataclass(frozen=True)
class Contender:
    """Builds an agent."""

    name: str
    make: Callable[..., Any]


CONTENDERS = (
    Contender("hook", create_agent),
    Contender("turn", lambda *args, **more: create_agent(*args, granularity="turn", **more)),
    Contender("langchain", langchain_create_agent),
)


class Bare:
    """The limit: a model with bound tools, called until it asks for nothing."""

    def __init__(self, chat: Model, tools: Sequence[Any]) -> None:
        self._model = chat.bind_tools(tools)
        self._tools = {one.name: one for one in tools}

    def invoke(self, given: dict[str, Any]) -> list[Any]:
        """Run to the end."""
        messages: list[Any] = [*given["messages"]]
        while (answer := self._model.invoke(messages)).tool_calls:
            results = [self._tools[call["name"]].invoke(call) for call in answer.tool_calls]
            messages += [answer, *results]
        return [*messages, answer]


# ---- scenarios: each gives what every contender has to do, and how many turns that are


@dataclass(frozen=True)
class Scenario:
    """One line of the table."""

    name: str
    what: str
    turns: int
    work: Callable[[], dict[str, Work]]


def plain(turns: int, middleware: Callable[[], list[Any]] = list, run: str = "invoke") -> Callable[[], dict[str, Work]]:
    """One user turn of so many turns of the loop, without a saver."""

    def work() -> dict[str, Work]:
        question = {"messages": [HumanMessage("1 + 2?")]}
        found: dict[str, Work] = {}
        for one in CONTENDERS:
            agent = one.make(model(turns), [add], middleware=middleware())
            found[one.name] = _RUNS[run](agent, question)
        if run == "invoke" and not middleware():
            bare = Bare(model(turns), [add])
            found["bare"] = partial(bare.invoke, question)
        return found

    return work


def _at_once(agent: Any, question: Any) -> Work:
    async def crowd() -> None:
        await asyncio.gather(*(agent.ainvoke(question) for _ in range(10)))

    return lambda: asyncio.run(crowd())


_RUNS: dict[str, Callable[[Any, Any], Work]] = {
    "invoke": lambda agent, question: lambda: agent.invoke(question),
    "stream": lambda agent, question: lambda: list(agent.stream(question)),
    "gather": _at_once,
}


def stored(turns: int) -> Callable[[], dict[str, Work]]:
    """A thread of so many turns in SQLite, two to a user turn, with three hook middlewares; anew each time."""

    def work() -> dict[str, Work]:
        return {one.name: partial(_thread, one, turns) for one in CONTENDERS}

    return work


def _thread(one: Contender, turns: int) -> int:
    """Bytes that the thread takes."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        agent = one.make(model(2), [add], middleware=stack(Hook, 3), checkpointer=saver)
        for _ in range(turns // 2):
            agent.invoke({"messages": "1 + 2?"}, thread("t"))
        (size,) = saver.conn.execute(
            "select (select sum(length(checkpoint)) from checkpoints) + (select sum(length(value)) from writes)"
        ).fetchone()
        return int(size)


def parallel() -> dict[str, Work]:
    """Eight calls of 20 ms at once."""
    calls = [tool_call("wait", {"a": number}, f"c{number}") for number in range(8)]
    agents = {one.name: one.make(model(3, *calls), [wait]) for one in CONTENDERS}
    return {name: partial(agent.invoke, {"messages": "go"}) for name, agent in agents.items()}


def long(saved: bool) -> Callable[[], dict[str, Work]]:
    """One turn on 5,000 messages, given or in a saver."""

    def work() -> dict[str, Work]:
        old: list[Any] = []
        for number in range(1250):
            called = ai("", tool_call("add", {"a": 1, "b": 2}, f"c{number}"))
            result = ToolMessage("3", tool_call_id=f"c{number}", name="add", id=f"t{number}")
            old += [HumanMessage("1 + 2?", id=f"h{number}"), called, result, ai("Three.")]
        found: dict[str, Work] = {}
        for one in CONTENDERS:
            agent = one.make(model(2), [add], checkpointer=InMemorySaver() if saved else None)
            if saved:
                agent.update_state(thread("t"), {"messages": old})
                found[one.name] = partial(agent.invoke, {"messages": "1 + 2?"}, thread("t"))
            else:
                given = {"messages": [*old, HumanMessage("1 + 2?", id="last")]}
                found[one.name] = partial(agent.invoke, given)
        return found

    return work


def built() -> dict[str, Work]:
    """Building an agent with ten hook middlewares."""
    middleware = stack(Hook, 10)
    return {one.name: partial(one.make, model(2), [add], middleware=middleware) for one in CONTENDERS}


SCENARIOS = (
    Scenario("S1", "10 turns", 10, plain(10)),
    Scenario("S1h", "10 turns, 3 hook middlewares", 10, plain(10, lambda: stack(Hook, 3))),
    Scenario("S1h10", "10 turns, 10 hook middlewares", 10, plain(10, lambda: stack(Hook, 10))),
    Scenario("S1w", "10 turns, 5 wraps", 10, plain(10, lambda: stack(Wrap, 5))),
    Scenario("S1s", "10 turns, streamed", 10, plain(10, run="stream")),
    Scenario("S2-0", "async, 10 runs at once", 100, plain(10, run="gather")),
    Scenario("S2-3", "async, 10 runs at once, 3 hook middlewares", 100, plain(10, lambda: stack(Hook, 3), "gather")),
    Scenario("S2-10", "async, 10 runs at once, 10 hook middlewares", 100, plain(10, lambda: stack(Hook, 10), "gather")),
    Scenario("S3-50", "a thread of 50 turns in SQLite, 3 hook middlewares", 50, stored(50)),
    Scenario("S3-100", "a thread of 100 turns in SQLite, 3 hook middlewares", 100, stored(100)),
    Scenario("S3-200", "a thread of 200 turns in SQLite, 3 hook middlewares", 200, stored(200)),
    Scenario("S5", "8 tools of 20 ms at once", 3, parallel),
    Scenario("S6", "a turn on 5,000 messages", 2, long(saved=False)),
    Scenario("S6s", "a turn on 5,000 messages in a saver", 2, long(saved=True)),
    Scenario("S7b", "building an agent with 10 hook middlewares", 1, built),
)


# ---- measuring


@dataclass
class Measured:
    """One scenario's rounds: CPU milliseconds per turn of each contender, and bytes where a thread is stored."""

    scenario: Scenario
    rounds: dict[str, list[float]]
    stored: dict[str, int]

    def row(self) -> dict[str, Any]:
        """What is written down."""
        return {
            "scenario": self.scenario.name,
            "what": self.scenario.what,
            "turns": self.scenario.turns,
            "bytes": self.stored,
            "ms": {name: _spread(times) for name, times in self.rounds.items()},
            "ratio": {name: _spread(self._ratios(name)) for name in self.rounds if name != "langchain"},
        }

    def _ratios(self, name: str) -> list[float]:
        return [a / b for a, b in zip(self.rounds[name], self.rounds["langchain"], strict=True)]


def _spread(values: Sequence[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return {"median": round(middle, 3), "low": round(low, 3), "high": round(high, 3)}


@contextmanager
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def measure(scenario: Scenario, rounds: int) -> Measured:
    """Run a scenario: once to warm up, then round by round, each contender first in turn."""
    found = Measured(scenario, {}, {})
    work = scenario.work()
    sizes = {name: each() for name, each in work.items()}
    found.stored = {name: size for name, size in sizes.items() if isinstance(size, int)}
    names = list(work)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            with _no_collection():
                start = time.process_time()
                work[name]()
                spent = time.process_time() - start
            found.rounds.setdefault(name, []).append(spent * 1000 / scenario.turns)
    return found


# ---- telling


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| | | hook, ms | turn, ms | LangChain, ms | bare, ms | hook / LangChain | turn / LangChain |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ms, ratio = row["ms"], row["ratio"]
        cells = [_cell(ms.get(name)) for name in ("hook", "turn", "langchain", "bare")]
        cells += [_cell(ratio[name]) for name in ("hook", "turn")]
        lines.append(f"| {row['scenario']} | {row['what']} | {' | '.join(cells)} |")
    sizes = [row for row in rows if row["bytes"]]
    if sizes:
        lines += ["", "| bytes of the thread | hook | turn | LangChain |", "|---|---|---|---|"]
    for row in sizes:
        counts = [f"{row['bytes'][name]:,}" for name in ("hook", "turn", "langchain")]
        lines.append(f"| {row['what']} | {' | '.join(counts)} |")
    return "\n".join(lines)


def _cell(value: dict[str, float] | None) -> str:
    return "" if value is None else f"{value['median']:.2f} ({value['low']:.2f} to {value['high']:.2f})"


def draw(rows: Sequence[dict[str, Any]], path: Path) -> bool:
    """Draw each scenario's cost as a share of LangChain's; False if matplotlib is not installed."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.5 * len(rows) + 1.4), layout="constrained")
    for shift, (name, colour) in enumerate([("hook", "#dd6b20"), ("turn", "#2b6cb0")]):
        places = [place + 0.36 * shift for place in range(len(rows))]
        values = [row["ratio"][name]["median"] for row in rows]
        axes.barh(places, values, height=0.34, color=colour, label=f'granularity "{name}"')
        for place, value in zip(places, values, strict=True):
            axes.text(value + 0.01, place, f"{value:.2f}", va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks([place + 0.18 for place in range(len(rows))], [row["what"] for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.set_title("CPU time per turn, as a share of langchain.agents.create_agent", fontsize=10)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make bench", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="rounds per scenario (default: 9)")
    parser.add_argument("--only", nargs="*", default=None, metavar="NAME", help="scenarios, e.g. S1 S3-100")
    parser.add_argument("--docs", action="store_true", help="write table, JSON and picture into docs")
    given = parser.parse_args(arguments)
    unknown = set(given.only or ()) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        print(f"bench: no scenario {sorted(unknown)}; there are {[s.name for s in SCENARIOS]}", file=sys.stderr)
        return 2
    chosen = [scenario for scenario in SCENARIOS if given.only is None or scenario.name in given.only]
    rows = []
    for scenario in chosen:
        rows.append(measure(scenario, given.rounds).row())
        print(table(rows[-1:]).splitlines()[2], flush=True)
    print(f"\n{table(rows)}")
    if given.docs:
        _write(rows, given.rounds)
    return 0


def _write(rows: Sequence[dict[str, Any]], rounds: int) -> None:
    folder = PAGE.parent / "bench"
    versions = {name: version(name) for name in ("langchain", "langgraph", "langchain-core")}
    about = {"command": "make bench", "rounds": rounds, "python": platform.python_version(), **versions}
    (folder / "turns.json").write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    where = ", ".join(f"{name} {number}" for name, number in versions.items())
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(rows)}\n\n{rounds} rounds; {where}.\n\n{END}{after}")
    if not draw(rows, folder / "turns.png"):
        print("no picture: matplotlib is not installed (extra: bench)", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
