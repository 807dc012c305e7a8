"""Turns on one thread at the same time: one goes on, the others wait, and whoever lost the thread writes nothing."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentkit import checkpoint, create_agent, thread
from agentkit.errors import LeaseLost, ThreadBusy
from agentkit.testing import ScriptedModel
from agentkit.turns import arun_turn, run_turn
from tests.core.turning import Deliver, Payments, paying, sync_form


@pytest.fixture(params=["sync", "async"])
def deliver(request: pytest.FixtureRequest) -> Deliver:
    """`run_turn` in each form."""
    return run_turn if request.param == "sync" else sync_form(arun_turn)


def test_deliveries_at_the_same_time_are_one_turn() -> None:
    payments = Payments()
    agent, model = paying(payments)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: run_turn(agent, "t", "m1", "pay 5"), range(4)))
    assert results == [results[0]] * 4
    assert (payments.made, model.calls) == ([5], 2)


async def test_deliveries_at_the_same_time_are_one_turn_async() -> None:
    payments = Payments()
    agent, model = paying(payments)
    results = await asyncio.gather(*(arun_turn(agent, "t", "m1", "pay 5") for _ in range(4)))
    assert results == [results[0]] * 4
    assert (payments.made, model.calls) == ([5], 2)


async def test_a_thread_that_stays_busy_is_named_and_free_again_after_a_cancellation() -> None:
    started, payments = asyncio.Event(), Payments()

    async def slow(request: Any) -> Any:
        started.set()
        await asyncio.sleep(60)

    agent, _ = paying(payments, slow, "hello")
    running = asyncio.create_task(arun_turn(agent, "t", "m1", "hi", owner="desk"))
    await started.wait()
    with pytest.raises(ThreadBusy, match="desk"):
        await arun_turn(agent, "t", "m2", "hi", wait=0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await arun_turn(agent, "t", "m1", "hi"))["messages"][-1].text == "hello"


def test_other_threads_go_on_meanwhile() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(request: Any) -> Any:
        inside.set()
        assert go_on.wait(10)
        return "slow"

    agent, _ = paying(Payments(), slow, "quick")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_turn, agent, "t", "m1", "hi")
        assert inside.wait(10)
        assert run_turn(agent, "u", "m1", "hi", wait=0)["messages"][-1].text == "quick"
        go_on.set()
        assert running.result()["messages"][-1].text == "slow"


def test_a_turn_that_takes_long_keeps_its_thread(tmp_path: Path) -> None:
    go_on = threading.Event()

    def slow(request: Any) -> Any:
        assert go_on.wait(30)
        return "done"

    with checkpoint.open(f"sqlite:///{tmp_path}/t.db") as saver, ThreadPoolExecutor(1) as pool:
        agent = create_agent(ScriptedModel(slow), checkpointer=saver)
        running = pool.submit(run_turn, agent, "t", "m1", "hi", ttl=0.5)
        ends: set[Any] = set()
        while len(ends) < 3:  # renewed twice
            ends |= {lease.expires_at for lease in saver.leases.held().values()}
        with pytest.raises(ThreadBusy):
            run_turn(agent, "t", "m1", "hi", wait=0)
        go_on.set()
        assert running.result()["messages"][-1].text == "done"
        assert saver.leases.held() == {}


def test_a_process_whose_thread_was_taken_over_writes_nothing_more(deliver: Deliver, tmp_path: Path) -> None:
    with checkpoint.open(f"sqlite:///{tmp_path}/t.db") as saver:

        def frozen(request: Any) -> Any:
            """As if the process had been stopped until somebody else took the thread."""
            saver.leases.take("t", "worker", ttl=60)
            return "too late"

        agent = create_agent(ScriptedModel(frozen, "in time"), checkpointer=saver)
        with pytest.raises(LeaseLost):
            deliver(agent, "t", "m1", "hi", owner="worker")
        assert [m.text for m in agent.get_state(thread("t")).values["messages"]] == ["hi"]
        assert deliver(agent, "t", "m1", "hi", owner="worker")["messages"][-1].text == "in time"
