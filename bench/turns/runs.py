"""Scenarios of whole runs in this process: S1, S2, S5, S6, and S7b, which builds an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import thread
from agentkit.testing import tool_call
from bench.turns.factories import FACTORIES, Hook, Wrap, stack
from bench.turns.model import Bare, Model, add, await_, wait
from bench.turns.scenario import Bench, Prepared, Row, Sampler, Scenario, cpu, wall

TURNS = 10
Make = Callable[[], list[Any]]


def _agents(model: Model, tool: BaseTool, middleware: Make = list) -> dict[str, Any]:
    """Every contender of this process; the bare loop where there is no middleware."""
    found: dict[str, Any] = {name: make(model, [tool], middleware=middleware()) for name, make in FACTORIES.items()}
    return found if middleware() else {**found, "bare": Bare(model, [tool])}


def _question() -> dict[str, Any]:
    return {"messages": [HumanMessage("1 + 2?")]}


def _with_peers(bench: Bench, samplers: Mapping[str, Sampler], **task: Any) -> dict[str, Sampler]:
    return {**samplers, **(bench.peers.samplers(**task) if bench.peers else {})}


def _sync(name: str, what: str, middleware: Make = list) -> Scenario:
    def prepare(bench: Bench) -> Prepared:
        agents = _agents(Model(turns=TURNS), add, middleware)
        found = {each: cpu(partial(agent.invoke, _question()), TURNS) for each, agent in agents.items()}
        if not middleware():
            found = _with_peers(bench, found, turns=TURNS)
        return Prepared([Row(name, what)], found)

    return Scenario(name, what, prepare)


def _streamed() -> Scenario:
    what = f"{TURNS} turns, streamed"

    def prepare(bench: Bench) -> Prepared:
        agents = _agents(Model(turns=TURNS), add)
        del agents["bare"]
        return Prepared([Row("S1s", what)], {each: cpu(partial(_stream, one), TURNS) for each, one in agents.items()})

    return Scenario("S1s", what, prepare)


def _stream(agent: Any) -> None:
    for _ in agent.stream(_question()):
        pass


def _crowd(size: int, run: Callable[[dict[str, Any]], Awaitable[object]]) -> Callable[[], None]:
    async def crowd() -> None:
        await asyncio.gather(*(run(_question()) for _ in range(size)))

    return lambda: asyncio.run(crowd())


def _at_once(hooks: int) -> Scenario:
    name, beside = f"S2-{hooks}", f", {hooks} hook middlewares" if hooks else ""

    def prepare(bench: Bench) -> Prepared:
        size = bench.size(100, 10)
        agents = _agents(Model(turns=TURNS), add, lambda: stack(Hook, hooks))
        found = {each: cpu(_crowd(size, agent.ainvoke), size * TURNS) for each, agent in agents.items()}
        if not hooks:
            found = _with_peers(bench, found, turns=TURNS, at_once=size)
        return Prepared([Row(name, f"async, {size} runs of {TURNS} turns at once{beside}")], found)

    return Scenario(name, f"async, 100 runs at once{beside}", prepare, most=5)


def _parallel(name: str, how: str, asynchronous: bool) -> Scenario:
    what, calls, turns = f"8 tools of 20 ms at once, {how}", 8, 3

    def prepare(bench: Bench) -> Prepared:
        agents = _agents(Model(turns=turns, calls=calls, tool="wait"), await_ if asynchronous else wait)
        runs: dict[str, Callable[[], object]] = {
            each: _crowd(1, agent.ainvoke) if asynchronous else partial(agent.invoke, _question())
            for each, agent in agents.items()
        }
        found: dict[str, Sampler] = {each: wall(run, turns) for each, run in runs.items()}
        found = _with_peers(bench, found, turns=turns, calls=calls, slow=True, asynchronous=asynchronous, by="wall")
        return Prepared([Row(name, what, "wall ms"), Row(f"{name}.cpu", "the same, CPU")], found)

    return Scenario(name, what, prepare)


def _history(length: int) -> list[Any]:
    """So many messages, in user turns of four, with ids."""
    old: list[Any] = []
    for number in range(length // 4):
        call = tool_call("add", {"a": 1, "b": 2}, f"c{number}")
        old += [
            HumanMessage("1 + 2?", id=f"h{number}"),
            AIMessage("", tool_calls=[call], id=f"a{number}"),
            ToolMessage("3", tool_call_id=f"c{number}", name="add", id=f"t{number}"),
            AIMessage("Three.", id=f"b{number}"),
        ]
    return old


def _long(bench: Bench) -> Prepared:
    size = bench.size(5000, 400)
    given = {"messages": [*_history(size), HumanMessage("1 + 2?", id="last")]}
    found = {name: cpu(partial(agent.invoke, given), 1) for name, agent in _agents(Model(turns=2), add).items()}
    return Prepared([Row("S6", f"a user turn on {size:,} messages")], found)


def _long_saved(bench: Bench) -> Prepared:
    size, found = bench.size(5000, 400), {}
    for name, make in FACTORIES.items():
        agent = make(Model(turns=2), [add], checkpointer=InMemorySaver())
        agent.update_state(thread("t"), {"messages": _history(size)})
        found[name] = cpu(partial(agent.invoke, {"messages": "1 + 2?"}, thread("t")), 1)
    return Prepared([Row("S6s", f"a user turn on {size:,} messages in a saver")], found)


def _built(bench: Bench) -> Prepared:
    middleware = stack(Hook, 10)
    found = {
        name: cpu(partial(make, Model(turns=2), [add], middleware=middleware), 1) for name, make in FACTORIES.items()
    }
    return Prepared([Row("S7b", "building an agent with 10 hook middlewares")], found)


SCENARIOS = (
    _sync("S1", f"{TURNS} turns"),
    _sync("S1h", f"{TURNS} turns, 3 hook middlewares", lambda: stack(Hook, 3)),
    _sync("S1h10", f"{TURNS} turns, 10 hook middlewares", lambda: stack(Hook, 10)),
    _sync("S1w", f"{TURNS} turns, 5 wraps", lambda: stack(Wrap, 5)),
    _streamed(),
    *(_at_once(hooks) for hooks in (0, 3, 10)),
    _parallel("S5", "sync", asynchronous=False),
    _parallel("S5a", "async", asynchronous=True),
    Scenario("S6", "a user turn on 5,000 messages", _long),
    Scenario("S6s", "a user turn on 5,000 messages in a saver", _long_saved),
    Scenario("S7b", "building an agent with 10 hook middlewares", _built),
)
