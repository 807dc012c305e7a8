"""How many functions a turn calls, counted: `python -m bench.calls`.

A model call and a tool call, in granularity `"hook"`, beside LangChain's factory and a bare loop. Counted are Python's
functions and built-in ones, in the thread that runs the agent. LangChain's factory runs sync tools in threads of their
own, so its sync figures lack them. No other program disturbs such a count.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from bench.turns.factories import FACTORIES, Hook, Wrap, stack
from bench.turns.model import Bare, Model, add

TURNS = 10
STACKS: dict[str, Callable[[], list[Any]]] = {
    "no middleware": list,
    "3 hook middlewares": lambda: stack(Hook, 3),
    "5 wraps": lambda: stack(Wrap, 5),
}


def calls(work: Callable[[], object]) -> int:
    """Calls per turn of a run that has run before."""
    work()
    number = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return round(number / TURNS)


def main() -> None:
    """Print the table."""
    question: Any = {"messages": "1 + 2?"}
    print("| | hook | LangChain |\n|---|---|---|")
    for what, middleware in STACKS.items():
        for kind in ("sync", "async"):
            if kind == "async" and what == "5 wraps":
                continue  # they are sync
            cells = []
            for name in ("hook", "langchain"):
                agent = FACTORIES[name](Model(turns=TURNS), [add], middleware=middleware())

                async def arun(agent: Any = agent) -> None:  # of a task's result asyncio.run makes a text
                    await agent.ainvoke(question)

                def work(agent: Any = agent, kind: str = kind, arun: Any = arun) -> object:
                    return agent.invoke(question) if kind == "sync" else asyncio.run(arun())

                cells.append(f"{calls(work):,}")
            print(f"| {kind}, {what} | {' | '.join(cells)} |")
    bare = Bare(Model(turns=TURNS), [add])
    print(f"\nA bare loop of model and tool: {calls(lambda: bare.invoke(question)):,}.")


if __name__ == "__main__":
    main()
