"""Run in a new process, `python -m bench.turns.cold TASK CONTENDER [SIZE]`: prints what memory it took, in bytes.

TASK is `package` (import what `import agentkit` or `import langchain.agents` imports), `factory` (import what makes an
agent), `run` (make one, and run it once) or `idle` (run it once on each of SIZE threads, and keep them all in memory).
Imports happen only as they are needed, since they are what is measured.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

_PACKAGES = {"hook": "agentkit", "turn": "agentkit", "langchain": "langchain.agents", "bare": "langchain_core"}


def factory(contender: str) -> Callable[..., Any]:
    """What makes an agent of a model and tools."""
    if contender == "bare":
        from bench.turns.model import Bare

        return Bare
    make: Callable[..., Any] = import_module(_PACKAGES[contender]).create_agent
    more = {} if contender == "langchain" else {"granularity": contender}
    return lambda model, tools, **given: make(model, tools, **more, **given)


def package(contender: str, size: int) -> int:
    """Import the package."""
    import_module(_PACKAGES[contender])
    return resident()


def import_factory(contender: str, size: int) -> int:
    """Import what makes an agent."""
    factory(contender)
    return resident()


def run(contender: str, size: int) -> int:
    """Make an agent, and run it once."""
    make = factory(contender)
    from bench.turns.model import Model, add

    make(Model(turns=2), [add]).invoke({"messages": [("user", "1 + 2?")] if contender == "bare" else "1 + 2?"})
    return resident()


def idle(contender: str, size: int) -> int:
    """Run an agent once on each of so many threads; the bytes of one."""
    make = factory(contender)
    import gc

    from langgraph.checkpoint.memory import InMemorySaver

    from bench.turns.factories import Hook, stack
    from bench.turns.model import Model, add

    agent = make(Model(turns=2), [add], middleware=stack(Hook, 3), checkpointer=InMemorySaver())

    def fill(names: range) -> None:
        for name in names:
            agent.invoke({"messages": "1 + 2?"}, {"configurable": {"thread_id": f"t{name}"}})
        gc.collect()

    fill(range(-20, 0))
    before = resident()
    fill(range(size))
    return (resident() - before) // size


def resident() -> int:
    """Bytes of memory that this process holds now; where the system does not tell, held at most."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


TASKS = {"package": package, "factory": import_factory, "run": run, "idle": idle}

if __name__ == "__main__":
    print(TASKS[sys.argv[1]](sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0))
