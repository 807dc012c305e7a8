"""Records of family I on several readers and writers of one store at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from agentkit import checkpoint, create_agent, thread
from agentkit.checkpoint import history
from agentkit.testing import ScriptedModel
from tests.checkpoint.crowd import crowd


async def test_lg_8558_a_slow_reader_of_a_history_blocks_no_run(tmp_path: Path) -> None:
    async with checkpoint.open(f"sqlite:///{tmp_path / 'agent.db'}") as saver:
        agent: Any = create_agent(ScriptedModel("yes", repeat=True), checkpointer=saver)
        await agent.ainvoke({"messages": "hi"}, thread("t"))
        reading = agent.aget_state_history(thread("t"))
        listing = saver.alist(None)
        first = [await anext(reading), await anext(listing)]
        async with asyncio.timeout(10):  # a held lock would be held for ever
            result = await agent.ainvoke({"messages": "more"}, thread("t"))
            await agent.ainvoke({"messages": "hi"}, thread("another"))
        assert len(result["messages"]) == 4
        assert len(first) + len([row async for row in reading]) + len([row async for row in listing]) == 6


def test_lg_8136_twenty_threads_and_another_process_write_to_one_file(tmp_path: Path, root: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    with checkpoint.open(url) as saver:
        command = [sys.executable, "-m", "tests.checkpoint.crowd", url, "other", "4", "6"]
        other = subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True)
        while other.poll() is None and not checkpoint.list_threads(saver):
            pass  # until the other process writes too
        assert crowd(saver, "mine", 20, 2) == []
        assert (other.communicate()[1], other.returncode) == ("", 0)
        steps = {info.id: len(history(saver, info.id)) for info in checkpoint.list_threads(saver)}
    assert steps == {f"mine {i}": 6 for i in range(20)} | {f"other {i}": 18 for i in range(4)}


async def test_lg_5675_a_slow_model_between_two_writes_loses_no_connection(postgres_url: str) -> None:
    """Slow means here: until the other run has written, which in a shared pipeline it never would."""
    both = asyncio.Barrier(2)

    async def slow(request: Any) -> str:
        await both.wait()
        await asyncio.sleep(0.2)
        return "done"

    async with checkpoint.open(postgres_url, pool_size=1) as saver:
        agent: Any = create_agent(ScriptedModel(slow, repeat=True), checkpointer=saver)
        async with asyncio.timeout(20):
            results = await asyncio.gather(*(agent.ainvoke({"messages": "hi"}, thread(name)) for name in ("a", "b")))
    assert [result["messages"][-1].text for result in results] == ["done", "done"]
