"""Many threads of one store at once, in a process of their own.

python -m tests.checkpoint.crowd URL NAME THREADS TURNS
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from agentkit import checkpoint, create_agent, thread
from agentkit.checkpoint import Saver
from agentkit.testing import ScriptedModel


def crowd(saver: Saver, name: str, threads: int, turns: int) -> list[BaseException]:
    """Run the turns of all threads at once; what went wrong."""
    agent: Any = create_agent(ScriptedModel("yes", repeat=True), checkpointer=saver)
    failures: list[BaseException] = []

    def run(one: str) -> None:
        try:
            for turn in range(turns):
                agent.invoke({"messages": f"turn {turn}"}, thread(one))
        except BaseException as error:
            failures.append(error)

    runners = [threading.Thread(target=run, args=(f"{name} {number}",)) for number in range(threads)]
    for one in runners:
        one.start()
    for one in runners:
        one.join()
    return failures


if __name__ == "__main__":
    url, name, threads, turns = sys.argv[1:]
    with checkpoint.open(url) as opened:
        if failures := crowd(opened, name, int(threads), int(turns)):
            raise SystemExit(f"{len(failures)} threads failed; the first: {failures[0]!r}")
