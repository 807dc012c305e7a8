"""A process that is interrupted from the keyboard again and again; it tells on each line what became of a thread."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from agentkit import checkpoint, create_agent, thread
from agentkit.ledger import Doubt, Ledger, Settlement
from agentkit.middleware import EffectLedger
from agentkit.testing import ScriptedModel, ai, pairing_problems, tool_call
from agentkit.turns import arun_turn, run_turn

DONE: list[str] = []
IS_SLOW = True


def book(what: str) -> str:
    """Book something, slowly: a thread that waits cannot be stopped."""
    if IS_SLOW:
        print("ready", flush=True)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            time.sleep(0.01)
    DONE.append(what)
    return f"booked {what}"


async def abook(what: str) -> str:
    """Book something, slowly, without holding the loop."""
    if IS_SLOW:
        print("ready", flush=True)
        await asyncio.sleep(60)
    DONE.append(what)
    return f"booked {what}"


def _stream(agent: Any, given: Any, at: Any) -> Any:
    return list(agent.stream(given, at))


def _ainvoke(agent: Any, given: Any, at: Any) -> Any:
    return asyncio.run(agent.ainvoke(given, at))


def _turn(agent: Any, given: Any, at: Any) -> Any:
    return run_turn(agent, at, "m1", given)


def _aturn(agent: Any, given: Any, at: Any) -> Any:
    return asyncio.run(arun_turn(agent, at, "m1", given))


WAYS: dict[str, tuple[Callable[[Any, Any, Any], Any], bool]] = {
    "invoke": (lambda agent, given, at: agent.invoke(given, at), False),
    "stream": (_stream, False),
    "run_turn": (_turn, False),
    "ainvoke": (_ainvoke, True),
    "arun_turn": (_aturn, True),
}


def _look(doubt: Doubt) -> Settlement:
    return Settlement("done" if doubt.effect.args["what"] in DONE else "not_done")


def main(url: str) -> None:
    """Be interrupted once in each way, and go on."""
    global IS_SLOW
    with checkpoint.open(url) as saver:
        for way, (run, is_async) in WAYS.items():
            model = ScriptedModel(ai("", tool_call("book", {"what": way})), "all done", "hello")
            tool = abook if is_async else book
            tool.__name__ = "book"
            record = EffectLedger(Ledger(saver.engine), on_doubt=_look)
            agent = create_agent(model, [tool], middleware=[record], checkpointer=saver)
            again = _ainvoke if is_async else WAYS["invoke"][0]
            at, told = thread(way), "nothing"
            IS_SLOW = True
            try:
                run(agent, {"messages": "book"}, at)
            except KeyboardInterrupt:
                told = "KeyboardInterrupt"
            IS_SLOW = False
            waiting = agent.get_state(at).next
            held = sorted(saver.leases.held())
            ended, after = again(agent, None, at), again(agent, {"messages": "hi"}, at)
            found = {
                "told": told,
                "next": list(waiting),
                "held": held,
                "answers": [result["messages"][-1].text for result in (ended, after)],
                "problems": pairing_problems(after["messages"]),
                "done": DONE.count(way),
            }
            print(json.dumps({way: found}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
