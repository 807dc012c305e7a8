"""However a run is cut off, its thread can go on, and its history is well-formed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import create_agent, exit_of, thread
from agentkit.middleware import Deadline, Gates
from agentkit.testing import ScriptedModel, ai, assert_paired, tool_call


def test_ctrl_c_leaves_a_thread_that_goes_on_and_repeats_nothing(root: Path, tmp_path: Path) -> None:
    """A real process, a real signal; in sync and async code."""
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.core.ctrl_c", f"sqlite:///{tmp_path}/threads.db"],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    found: dict[str, Any] = {}
    for line in running.stdout:
        if line.strip() == "ready":
            running.send_signal(signal.SIGINT)
        else:
            found |= json.loads(line)
    _, told = running.communicate()
    assert running.returncode == 0, told
    expected = {
        "told": "KeyboardInterrupt",
        "next": ["tools"],
        "held": [],
        "answers": ["all done", "hello"],
        "problems": [],
        "done": 1,
    }
    assert found == {way: expected for way in ("invoke", "stream", "run_turn", "ainvoke", "arun_turn")}


class Slow:
    """Two tools of one batch: one is quick, the other takes until it is let go."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.started = threading.Event()
        self.waits = True

    def quick(self) -> str:
        """Be quick."""
        self.done.append("quick")
        return "quick"

    async def slow(self) -> str:
        """Be slow."""
        self.started.set()
        if self.waits:
            await asyncio.sleep(60)
        self.done.append("slow")
        return "slow"

    def agent(self, **kwargs: Any) -> tuple[Any, ScriptedModel]:
        batch = ai("", tool_call("quick", {}, "q"), tool_call("slow", {}, "s"))
        model = ScriptedModel(batch, "both done", "hello", stream=False)
        return create_agent(model, [self.quick, self.slow], checkpointer=InMemorySaver(), **kwargs), model


async def _until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def _has_kept(agent: Any) -> bool:
    """Whether the result of the quick tool is kept."""
    tasks = agent.get_state(thread("t")).tasks
    return any(task.name == "tools" and task.result is not None for task in tasks)


async def _cancelled(agent: Any, tools: Slow) -> None:
    running = asyncio.create_task(agent.ainvoke({"messages": "go"}, thread("t")))
    await _until(lambda: tools.started.is_set() and _has_kept(agent))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def _timed_out(agent: Any, tools: Slow) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as scope:
            watch = asyncio.create_task(_until(lambda: _has_kept(agent)))
            watch.add_done_callback(lambda _: scope.reschedule(asyncio.get_running_loop().time()))
            await agent.ainvoke({"messages": "go"}, thread("t"))


async def _left(agent: Any, tools: Slow) -> None:
    """The client goes away: whoever reads the stream is done with it."""
    stream = agent.astream({"messages": "go"}, thread("t"), stream_mode="updates")
    async with aclosing(stream):
        async for update in stream:
            if "tools" in update:  # the quick one's
                break


@pytest.mark.parametrize("cut", [_cancelled, _timed_out, _left])
@pytest.mark.parametrize("granularity", ["hook", "turn"])
async def test_a_run_that_was_cut_off_goes_on_where_it_was(cut: Any, granularity: str) -> None:
    tools = Slow()
    agent, model = tools.agent(granularity=granularity)
    await cut(agent, tools)
    assert exit_of(await agent.aget_state(thread("t"))) is None
    tools.waits = False
    ended = await agent.ainvoke(None, thread("t"))
    assert ended["messages"][-1].text == "both done"
    assert tools.done == ["quick", "slow"]  # what was done is not done again
    assert_paired(model, ended["messages"])


@pytest.mark.parametrize("cut", [_cancelled, _timed_out, _left])
async def test_a_new_message_after_a_run_that_was_cut_off(cut: Any) -> None:
    tools = Slow()
    agent, model = tools.agent()
    await cut(agent, tools)
    ended = await agent.ainvoke({"messages": "never mind"}, thread("t"))
    assert ended["messages"][-1].text == "both done"
    assert_paired(model, ended["messages"], (await agent.aget_state(thread("t"))).values)
    assert tools.done == ["quick"]


def test_a_sync_reader_that_goes_away_leaves_a_thread_that_goes_on() -> None:
    model = ScriptedModel(ai("", tool_call("quick", {}, "q")), "done")
    tools = Slow()
    agent = create_agent(model, [tools.quick], checkpointer=InMemorySaver())
    stream: Any = agent.stream({"messages": "go"}, thread("t"), stream_mode="updates", durability="sync")
    for _ in stream:
        break
    stream.close()
    assert agent.invoke(None, thread("t"))["messages"][-1].text == "done"
    assert tools.done == ["quick"]
    assert_paired(model)


async def test_a_deadline_ends_the_turn_and_the_thread_goes_on(clock: Any) -> None:
    def late(request: Any) -> Any:
        clock.now += 100
        return ai("", tool_call("quick", {}, "q"))

    tools = Slow()
    model = ScriptedModel(late, "hello")
    gates = Gates(Deadline(30), on_trip="stop", clock=clock.read)
    agent = create_agent(model, [tools.quick], middleware=[gates], checkpointer=InMemorySaver())
    ended = await agent.ainvoke({"messages": "go"}, thread("t"))
    reason = exit_of(ended)
    assert reason is not None and reason.reason == "deadline"
    assert tools.done == []
    after = await agent.ainvoke({"messages": "hi"}, thread("t"))
    assert after["messages"][-1].text == "hello"
    assert_paired(model, ended["messages"], after["messages"])
