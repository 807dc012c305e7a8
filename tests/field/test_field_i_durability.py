"""Field reports, family I: what is stored when, and what a run that broke off finds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import as_tool, checkpoint, create_agent, thread
from agentkit.ledger import Doubt, Ledger, Settlement
from agentkit.middleware import EffectLedger
from agentkit.testing import EntryPoint, ScriptedModel, ai, assert_paired, comparable, run, tool_call
from agentkit.turns import arun_turn, run_turn

Maker = Callable[..., Any]
Durability = Any


async def _cancelled(durability: Durability) -> tuple[Any, Any, list[str]]:
    """An agent whose run was cancelled while one of two tools slept, and what is recorded of the step."""
    started, done = asyncio.Event(), []

    def quick() -> str:
        """Be quick."""
        done.append("quick")
        return "quick"

    async def slow() -> str:
        """Be slow."""
        started.set()
        await asyncio.sleep(60 if len(done) < 2 else 0)
        return "slow"

    script = (ai("", tool_call("quick", {}, "q"), tool_call("slow", {}, "s")), "done")
    agent = create_agent(ScriptedModel(*script), [quick, slow], checkpointer=InMemorySaver())
    running = asyncio.create_task(agent.ainvoke({"messages": "go"}, thread("t"), durability=durability))
    await started.wait()
    async with asyncio.timeout(20):
        while not done:
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.02)  # the quick one's result is on its way
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    snapshot = await agent.aget_state(thread("t"))
    return agent, [(task.name, task.result is not None, bool(task.error)) for task in snapshot.tasks], done


async def test_lg_5672_a_cancelled_step_leaves_the_same_record_in_every_durability() -> None:
    records = {durability: (await _cancelled(durability))[1] for durability in ("sync", "async", "exit")}
    assert records["sync"] == records["async"] == records["exit"]
    assert records["sync"] == [("tools", True, False), ("tools", False, True)]  # done; cancelled, not unknown


class Breaks(InMemorySaver):
    """Fails once, at the operation of a number."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise ConnectionError("the store is away")

    def put(self, *args: Any, **kwargs: Any) -> Any:
        self._count()
        return super().put(*args, **kwargs)

    def put_writes(self, *args: Any, **kwargs: Any) -> None:
        self._count()
        super().put_writes(*args, **kwargs)

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        return self.put(*args, **kwargs)

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        self.put_writes(*args, **kwargs)


def _deliver(is_async: bool, *args: Any) -> Any:
    return asyncio.run(arun_turn(*args)) if is_async else run_turn(*args)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
def test_lg_8039_wherever_the_store_fails_no_result_is_lost_and_a_recorded_effect_is_done_once(
    act: Maker, is_async: bool, recorded: bool, tmp_path: Path
) -> None:
    script = (ai("", tool_call("pay", {"x": 1}, "a"), tool_call("pay", {"x": 2}, "b")), "paid")
    for at in count(1):
        pay = act("pay")

        def look(doubt: Doubt, ran: list[int] = pay.ran) -> Settlement:
            return Settlement("done" if doubt.effect.args["x"] in ran else "not_done")

        record = [EffectLedger(Ledger(f"sqlite:///{tmp_path}/{at}.db"), on_doubt=look)] if recorded else []
        saver = Breaks(at)
        # the second answer is the same, also where the first one was not kept
        model = ScriptedModel(lambda request: script[request.turn], repeat=True)
        agent = create_agent(model, [pay.tool], middleware=record, checkpointer=saver)
        with suppress(ConnectionError):
            _deliver(is_async, agent, "t", "m1", "pay both")
        ended = _deliver(is_async, agent, "t", "m1", "pay both")
        assert [m.text for m in ended["messages"]] == ["pay both", "", "pay 1", "pay 2", "paid"]
        assert set(pay.ran) == {1, 2}
        assert all(pay.ran.count(x) <= (1 if recorded else 2) for x in (1, 2))  # at least once, else exactly once
        assert_paired(model, ended["messages"])
        if saver.left > 0:  # every operation of the run has failed once
            assert at > 10
            break


@pytest.mark.parametrize("is_async", [False, True])
def test_lg_8764_the_message_is_kept_before_the_first_tool_runs(is_async: bool) -> None:
    class Slow(InMemorySaver):
        def put(self, *args: Any, **kwargs: Any) -> Any:
            time.sleep(0.05)
            return super().put(*args, **kwargs)

        async def aput(self, *args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0.05)
            return super().put(*args, **kwargs)

    saver = Slow()
    kept: list[list[Any]] = []

    def act() -> str:
        """Look at what would be found if the process ended now."""
        messages = agent.get_state(thread("t")).values.get("messages", [])
        kept.append([message.id for message in messages if isinstance(message, HumanMessage)])
        return "done"

    agent = create_agent(ScriptedModel(ai("", tool_call("act")), "over"), [act], checkpointer=saver)
    _deliver(is_async, agent, "t", "m1", "go")
    assert kept == [["m1"]]


def test_lg_8038_an_agent_with_a_thread_of_its_own_remembers(entry: EntryPoint) -> None:
    saver = InMemorySaver()
    child = create_agent(ScriptedModel("one", "two"), name="child", checkpointer=saver)

    def ask() -> str:
        """Ask the child."""
        return str(len(child.invoke({"messages": "again"}, thread("own"))["messages"]))

    script = (ai("", tool_call("ask")), "asked", ai("", tool_call("ask")), "asked again")
    parent = create_agent(ScriptedModel(*script), [ask], checkpointer=InMemorySaver())
    seen = [run(parent, "go", thread("t"), entry=entry).messages[-2].text for _ in range(2)]
    assert seen == ["2", "4"]


@pytest.mark.parametrize("is_async", [False, True])
def test_lg_8038_a_threads_lease_does_not_bind_the_threads_of_nested_agents(is_async: bool, tmp_path: Path) -> None:
    with checkpoint.open(f"sqlite:///{tmp_path}/threads.db") as saver:
        child = create_agent(ScriptedModel("one", "two"), name="child", checkpointer=saver)

        def ask() -> str:
            """Ask the child."""
            return str(len(child.invoke({"messages": "again"}, thread("own"))["messages"]))

        script = (ai("", tool_call("ask")), "asked", ai("", tool_call("ask")), "asked again")
        parent = create_agent(ScriptedModel(*script), [ask], checkpointer=saver)
        seen = [_deliver(is_async, parent, "t", f"m{i}", "go")["messages"][-2].text for i in range(2)]
        assert seen == ["2", "4"]


def test_lg_8038_one_without_starts_anew_with_each_call(entry: EntryPoint) -> None:
    model = ScriptedModel("one", "two")
    child = as_tool(create_agent(model, name="child"), description="A child.")
    calls = [ai("", tool_call("child", {"request": "again"})) for _ in range(2)]
    parent = create_agent(ScriptedModel(calls[0], "a", calls[1], "b"), [child], checkpointer=InMemorySaver())
    for _ in range(2):
        run(parent, "go", thread("t"), entry=entry)
    assert [comparable(request.messages) for request in model.requests] == [comparable([HumanMessage("again")])] * 2
