"""Runs one agent turn per forked process, and lets it be killed at a named point. A script; the tests talk to it.

It imports everything once and then forks for each line of JSON on standard input, so that a hundred real processes cost
as much as one. Each answers with one line: how it ended, and what it saw.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from typing import Annotated, Any

import sqlalchemy as sa
from langchain_core.messages import AIMessage
from langgraph.types import Command

from agentkit import as_tool, checkpoint, create_agent, thread
from agentkit.ledger import Ledger
from agentkit.middleware import EffectLedger
from agentkit.testing import Request, ScriptedModel, ai, tool_call
from agentkit.tools import IdempotencyKey, tool

PAYMENTS = sa.Table("payments", sa.MetaData(), sa.Column("amount", sa.Integer))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class World:
    """Where payments are made: a file of somebody else's, or the ledger's own database."""

    def __init__(self, path: str, dies: str) -> None:
        self._path, self._dies = path, dies

    def reach(self, point: str) -> None:
        """Be killed here, if this is the point."""
        if point == self._dies:
            die()

    def pay(self, amount: int, key: str | None = None) -> None:
        """Pay; a key pays once."""
        with closing(sqlite3.connect(self._path, timeout=10)) as file, file:
            file.execute("CREATE TABLE IF NOT EXISTS payments (amount INTEGER, key TEXT UNIQUE)")
            file.execute("INSERT OR IGNORE INTO payments VALUES (?, ?)", (amount, key))


class Dying(Ledger):
    """A ledger whose process can be killed around the record of a result."""

    world: World

    def finish(self, *args: Any, **kwargs: Any) -> None:
        self.world.reach("unrecorded")
        super().finish(*args, **kwargs)
        self.world.reach("recorded")


def tools(world: World, ledger: Ledger) -> dict[str, Any]:
    @tool("pay", effect="write")
    def plain(amount: int) -> str:
        """Pay."""
        world.reach("before")
        world.pay(amount)
        world.reach("after")
        return f"paid {amount}"

    @tool("pay", effect="write", idempotent=True)
    def idempotent(amount: int, key: Annotated[str, IdempotencyKey] = "") -> str:
        """Pay."""
        world.reach("before")
        world.pay(amount, key)
        world.reach("after")
        return f"paid {amount}"

    @tool("pay", effect="write", transactional=True)
    def transactional(amount: int) -> str:
        """Pay."""
        world.reach("before")
        with ledger.transaction() as connection:
            connection.execute(PAYMENTS.insert().values(amount=amount))
            world.reach("inside")
            ledger.record(f"paid {amount}")
        world.reach("after")
        return f"paid {amount}"

    @tool("pay", effect="write", transactional=True)
    async def atransactional(amount: int) -> str:
        """Pay."""
        world.reach("before")
        async with ledger.atransaction() as transaction:
            await transaction.run_sync(lambda c: c.execute(PAYMENTS.insert().values(amount=amount)))
            world.reach("inside")
            ledger.record(f"paid {amount}")
        world.reach("after")
        return f"paid {amount}"

    return {"plain": plain, "idempotent": idempotent, "transactional": transactional, "atransactional": atransactional}


def says(request: Request) -> Any:
    """Pay 5 and 7 at once, then say so."""
    if any(isinstance(message, AIMessage) for message in request.messages):
        return "all paid"
    return ai("", tool_call("pay", {"amount": 5}, "a"), tool_call("pay", {"amount": 7}, "b"))


def delegates(request: Request) -> Any:
    if any(isinstance(message, AIMessage) for message in request.messages):
        return "delegated"
    return ai("", tool_call("helper", {"request": "pay"}, "h"))


def turn(order: dict[str, Any]) -> dict[str, Any]:
    """Run or resume one turn, and tell what came of it."""
    world = World(order["world"], order["dies"])
    ledger = Dying(order["ledger"])
    ledger.world = world
    with checkpoint.open(f"sqlite:///{order['threads']}") as saver:
        chosen = tools(world, ledger)[order["tool"]]
        guard = EffectLedger(ledger, on_doubt=order.get("on_doubt", "ask"))
        agent = create_agent(
            ScriptedModel(says, repeat=True),
            [chosen],
            middleware=[guard],
            name="helper",
            checkpointer=None if order.get("nested") else saver,
        )
        if order.get("nested"):
            helper = as_tool(agent, description="Pays.")
            agent = create_agent(
                ScriptedModel(delegates, repeat=True), [helper], middleware=[EffectLedger(ledger)], checkpointer=saver
            )
        given: Any = {"messages": "pay, please"} if order["starts"] else None
        config = thread("t")
        if "paid" in order:  # a person who looks
            found = {True: "done", False: "not_done"}
            given = Command(
                resume={
                    i.id: {"doubt": i.value["doubt"], "outcome": found[i.value["args"]["amount"] in order["paid"]]}
                    for i in agent.get_state(config).interrupts
                }
            )
        result = (
            asyncio.run(agent.ainvoke(given, config)) if order.get("uses") == "ainvoke" else agent.invoke(given, config)
        )
        texts = [m.text for m in result["messages"] if m.type == "tool"]
        asked = [i.value["args"]["amount"] for i in result.get("__interrupt__", ())]
        return {"texts": texts, "asked": asked, "last": result["messages"][-1].text}


def race(order: dict[str, Any]) -> dict[str, Any]:
    """Run one tool call with a given key, beside others."""
    from agentkit.ledger import Call

    ledger = Ledger(order["ledger"])
    call = Call(
        key="k", call_key="k", thread_id="t", call_id="c", tool="pay", args={}, repeatable=False, transactional=False
    )
    claim = ledger.claim(call)
    return {"won": type(claim).__name__ == "Claim"}


def serve() -> None:
    gc.freeze()  # what is imported is shared with every fork, and not walked by its collector
    for line in sys.stdin:
        orders = json.loads(line)
        children = [_fork(order) for order in orders]
        print(json.dumps([_ended(*child) for child in children]), flush=True)


def _fork(order: dict[str, Any]) -> tuple[int, int]:
    reads, writes = os.pipe()
    if child := os.fork():
        os.close(writes)
        return child, reads
    os.close(reads)
    said: dict[str, Any]
    try:
        said = {"race": race, "turn": turn}[order.get("does", "turn")](order)
    except BaseException as error:
        said = {"raised": f"{type(error).__name__}: {error}"}
    os.write(writes, json.dumps(said).encode())
    os._exit(0)


def _ended(child: int, reads: int) -> dict[str, Any]:
    with os.fdopen(reads) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return {"killed": killed, **(json.loads(said) if said else {})}


if __name__ == "__main__":
    serve()
