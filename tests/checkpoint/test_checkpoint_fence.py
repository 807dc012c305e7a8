"""A thread has one writer: leases, and the fence that refuses whoever lost one, in the transaction that writes."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from agentkit import checkpoint, create_agent, thread
from agentkit.checkpoint import EPOCH, Saver, history, list_threads
from agentkit.errors import LeaseLost, ThreadBusy
from agentkit.testing import ScriptedModel
from tests.checkpoint.notebook import notebook


def under(epoch: int, name: str = "t") -> RunnableConfig:
    return thread(name, configurable={EPOCH: epoch})


def agent_on(saver: Saver) -> Any:
    return create_agent(ScriptedModel("yes", repeat=True), checkpointer=saver)


def test_a_thread_has_one_owner_at_a_time(saver: Saver) -> None:
    lease = saver.leases.take("t", "one", ttl=60)
    assert (lease.thread_id, lease.epoch, lease.owner) == ("t", 1, "one")
    assert timedelta(seconds=50) < lease.expires_at - datetime.now(UTC) < timedelta(seconds=70)
    with pytest.raises(ThreadBusy, match="'t' is held by 'one' until") as caught:
        saver.leases.take("t", "other")
    assert (caught.value.thread_id, caught.value.owner) == ("t", "one")
    assert saver.leases.take("another", "other").epoch == 1
    saver.leases.release(lease)
    assert saver.leases.take("t", "other").epoch == 2


def test_a_lease_that_has_run_out_is_taken_over(saver: Saver) -> None:
    lost = saver.leases.take("t", "one", ttl=0)
    assert saver.leases.held() == {}
    taken = saver.leases.take("t", "other", ttl=timedelta(minutes=1))
    assert taken.epoch == lost.epoch + 1
    with pytest.raises(LeaseLost, match="taken over after epoch 1"):
        saver.leases.renew(lost)
    saver.leases.release(lost)  # is nobody's business any more
    assert saver.leases.held()["t"].owner == "other"


def test_a_lease_is_renewed_for_its_whole_time(saver: Saver) -> None:
    lease = saver.leases.take("t", "one", ttl=60)
    renewed = saver.leases.renew(lease)
    assert renewed.epoch == lease.epoch
    assert renewed.expires_at >= lease.expires_at


def test_the_same_owner_takes_its_thread_again_at_once(saver: Saver) -> None:
    """A worker that was started again under its name does not wait for its former self."""
    assert [saver.leases.take("t", "worker 1", ttl=60).epoch for _ in range(3)] == [1, 2, 3]


async def test_leases_from_async_code(saver: Saver) -> None:
    lease = await saver.leases.atake("t", "one", ttl=60)
    with pytest.raises(ThreadBusy):
        await saver.leases.atake("t", "other")
    assert (await saver.leases.arenew(lease)).epoch == 1
    assert [*await saver.leases.aheld()] == ["t"]
    await saver.leases.arelease(lease)
    assert await saver.leases.aheld() == {}


def test_of_many_who_want_a_thread_one_gets_it(durable_url: str) -> None:
    taken: list[int] = []
    together = threading.Barrier(6)

    def run(owner: str) -> None:
        with checkpoint.open(durable_url) as saver:
            together.wait()
            try:
                taken.append(saver.leases.take("t", owner, ttl=60).epoch)
            except ThreadBusy:
                taken.append(0)

    threads = [threading.Thread(target=run, args=(f"owner {number}",)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(taken) == [0, 0, 0, 0, 0, 1]


def test_whoever_lost_the_thread_writes_nothing(saver: Saver) -> None:
    agent = agent_on(saver)
    mine = under(saver.leases.take("t", "one", ttl=0).epoch)
    agent.invoke({"messages": "hi"}, mine)
    saver.leases.take("t", "other", ttl=60)
    before = history(agent, "t")
    with pytest.raises(LeaseLost, match="nothing was written"):
        agent.invoke({"messages": "zombie"}, mine)
    with pytest.raises(LeaseLost):
        agent.update_state(mine, {"messages": "zombie"})
    with pytest.raises(LeaseLost):
        saver.put_writes(agent.get_state(mine).config | mine, [("messages", "zombie")], "task")
    with pytest.raises(LeaseLost):
        saver.delete_thread("t", epoch=1)
    assert history(agent, "t") == before
    assert len(agent.get_state(mine).values["messages"]) == 2  # reading is allowed


async def test_whoever_lost_the_thread_writes_nothing_from_async_code(saver: Saver) -> None:
    agent = agent_on(saver)
    mine = under((await saver.leases.atake("t", "one", ttl=0)).epoch)
    await saver.leases.atake("t", "other", ttl=60)
    with pytest.raises(LeaseLost):
        await agent.ainvoke({"messages": "zombie"}, mine)
    with pytest.raises(LeaseLost):
        await saver.adelete_thread("t", epoch=1)
    assert list_threads(saver) == []


def test_other_threads_and_configs_without_an_epoch_are_not_checked(saver: Saver) -> None:
    agent = agent_on(saver)
    saver.leases.take("t", "other", ttl=60)
    agent.invoke({"messages": "hi"}, thread("t"))
    with pytest.raises(LeaseLost):
        agent.invoke({"messages": "hi"}, under(1, "nobody took this one"))


def test_a_thread_that_is_deleted_keeps_its_epoch(saver: Saver) -> None:
    """Else whoever lost it long ago could write again, once it is made anew."""
    saver.leases.take("t", "one", ttl=0)
    second = saver.leases.take("t", "other", ttl=0)
    saver.delete_thread("t", epoch=second.epoch)
    assert saver.leases.take("t", "third").epoch == 3


def test_a_sub_graph_belongs_to_the_threads_lease(saver: Saver) -> None:
    graph = notebook(saver, asks=True)
    mine = under(saver.leases.take("t", "one", ttl=0).epoch)
    graph.invoke({"notes": ["hi"]}, mine)
    inner = graph.get_state(mine, subgraphs=True).tasks[0].state.config
    saver.leases.take("t", "other", ttl=60)
    with pytest.raises(LeaseLost):
        saver.put_writes({"configurable": {**inner["configurable"], EPOCH: 1}}, [("notes", ["zombie"])], "task")


def test_nothing_slips_through_while_a_thread_is_taken_over(saver: Saver) -> None:
    """Writers that run all the while; from the moment that the take-over returns, not one of their writes is there."""
    agent = agent_on(saver)
    mine = under(saver.leases.take("t", "one", ttl=0).epoch)
    agent.invoke({"messages": "hi"}, mine)
    refused: list[LeaseLost] = []
    begun = threading.Barrier(5)

    def run() -> None:
        begun.wait()
        try:
            for _ in range(200):
                agent.update_state(mine, {"messages": "more"})
        except LeaseLost as lost:
            refused.append(lost)

    writers = [threading.Thread(target=run) for _ in range(4)]
    for one in writers:
        one.start()
    begun.wait()
    saver.leases.take("t", "other", ttl=60)
    (then,) = list_threads(saver)
    for one in writers:
        one.join()
    (now,) = list_threads(saver)
    assert now.checkpoints == then.checkpoints
    assert len(refused) == 4
