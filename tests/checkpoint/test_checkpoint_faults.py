"""Many at once, and stores that fill up, go away and come back in the middle of a run."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from langchain_core.tools import tool

from agentkit import checkpoint, create_agent, thread
from agentkit.checkpoint import history
from agentkit.checkpoint.sqlite import SqliteStore
from agentkit.errors import StoreFull, StoreReadOnly, StoreUnreachable
from agentkit.testing import ScriptedModel, ai, tool_call
from tests.checkpoint.crowd import crowd

LONG = "AGENTKIT_LONG" in os.environ
"""Whether to run the whole number of threads and turns (`AGENTKIT_LONG=1`), which takes minutes."""
THREADS, TURNS = (25, 20) if LONG else (4, 3)
NOBODY = 65534


@pytest.mark.parametrize("name", ["sqlite", "postgres"] if LONG else ["postgres"])  # LG-8136 is the short one of SQLite
def test_two_processes_work_on_many_threads_at_once(
    name: str, tmp_path: Path, root: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}" if name == "sqlite" else request.getfixturevalue("postgres_url")
    with checkpoint.open(url) as saver:
        command = [sys.executable, "-m", "tests.checkpoint.crowd", url, "other", str(THREADS), str(TURNS)]
        other = subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True)
        assert crowd(saver, "mine", THREADS, TURNS) == []
        assert (other.communicate()[1], other.returncode) == ("", 0)
        agent = create_agent(ScriptedModel("yes"), checkpointer=saver)
        found = checkpoint.list_threads(saver)
        assert len(found) == 2 * THREADS
        for info in found:
            values = agent.get_state(thread(info.id)).values
            expected = [text for turn in range(TURNS) for text in (f"turn {turn}", "yes")]
            assert [message.text for message in values["messages"]] == expected
            steps = history(agent, info.id)
            assert len(steps) == 3 * TURNS
            assert [step.parent_id for step in steps[1:]] == [step.checkpoint_id for step in steps[:-1]]


def test_a_full_disk_is_told_and_the_run_goes_on_once_there_is_room(tmp_path: Path) -> None:
    with checkpoint.open(f"sqlite:///{tmp_path / 'agent.db'}") as saver:
        assert isinstance(saver, SqliteStore)
        agent = create_agent(ScriptedModel("short", "long " * 20_000, "again " * 20_000), checkpointer=saver)
        agent.invoke({"messages": "hi"}, thread("t"))
        (pages,) = saver.conn.execute("PRAGMA page_count").fetchone()
        saver.conn.execute(f"PRAGMA max_page_count = {pages + 8}")
        with pytest.raises(StoreFull, match=r"is full: .*go on with invoke") as caught:
            agent.invoke({"messages": "more"}, thread("t"))
        assert isinstance(caught.value, OSError)
        state = agent.get_state(thread("t"))
        assert state.next == ("model",)
        assert [message.text for message in state.values["messages"]] == ["hi", "short", "more"]
        saver.conn.execute("PRAGMA max_page_count = 100000")
        assert agent.invoke(None, thread("t"))["messages"][-1].text.startswith("again")


@contextmanager
def as_somebody() -> Iterator[None]:
    """Not as root, who may write anything."""
    groups, user = os.getgroups(), os.geteuid()
    if user:
        yield
        return
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@pytest.mark.parametrize("mode", [0o555, 0o755])
def test_a_file_that_is_read_only(mode: int) -> None:
    with TemporaryDirectory() as folder:  # in a folder that everybody reaches, other than pytest's
        file = Path(folder, "agent.db")
        with checkpoint.open(f"sqlite:///{file}"):
            pass
        file.chmod(0o444)
        Path(folder).chmod(mode)
        with as_somebody(), pytest.raises(StoreReadOnly, match="cannot be written") as caught:
            checkpoint.open(f"sqlite:///{file}")
        assert isinstance(caught.value, PermissionError)


def test_a_file_that_becomes_read_only(tmp_path: Path) -> None:
    with checkpoint.open(f"sqlite:///{tmp_path / 'agent.db'}") as saver:
        assert isinstance(saver, SqliteStore)
        agent = create_agent(ScriptedModel("yes", repeat=True), checkpointer=saver)
        saver.conn.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreReadOnly):
            agent.invoke({"messages": "hi"}, thread("t"))


def test_a_writer_that_does_not_end_is_waited_for_and_then_told(tmp_path: Path) -> None:
    file = tmp_path / "agent.db"
    with checkpoint.open(f"sqlite:///{file}", timeout=0.2) as saver:
        agent = create_agent(ScriptedModel("yes", repeat=True), checkpointer=saver)
        agent.invoke({"messages": "hi"}, thread("t"))
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnreachable, match=r"another process has been writing for 0\.2 seconds"):
            agent.invoke({"messages": "more"}, thread("t"))
        assert len(agent.get_state(thread("t")).values["messages"]) == 2  # reading waits for nobody
        other.close()
        assert len(agent.invoke({"messages": "more"}, thread("t"))["messages"]) == 4


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_run_survives_a_restart_of_its_database(own_postgres: Any, is_async: bool) -> None:
    @tool
    def restart() -> str:
        """Crash the database and start it again."""
        own_postgres.stop()
        own_postgres.start()
        return "restarted"

    async with checkpoint.open(own_postgres.url()) as saver:
        agent = create_agent(ScriptedModel(ai("", tool_call("restart")), "done"), [restart], checkpointer=saver)
        if is_async:
            result = await agent.ainvoke({"messages": "hi"}, thread("t"))
        else:
            result = agent.invoke({"messages": "hi"}, thread("t"))
        assert [message.text for message in result["messages"]] == ["hi", "", "restarted", "done"]
        assert saver.leases.take("t", "me").epoch == 1
        assert (await agent.aget_state(thread("t"))).values["messages"] == result["messages"]


def test_a_database_that_is_gone_is_told_and_the_run_goes_on_once_it_is_back(own_postgres: Any) -> None:
    stopped: list[bool] = []

    def answer(request: Any) -> str:
        if not stopped:
            stopped.append(True)
            own_postgres.stop()
        return "done"

    with checkpoint.open(own_postgres.url(), timeout=0.5) as saver:
        agent = create_agent(ScriptedModel(answer, repeat=True), checkpointer=saver)
        with pytest.raises(StoreUnreachable, match="cannot be reached") as caught:
            agent.invoke({"messages": "hi"}, thread("t"), durability="sync")
        assert isinstance(caught.value, ConnectionError)
        own_postgres.start()
    with checkpoint.open(own_postgres.url()) as saver:
        agent = create_agent(ScriptedModel("done"), checkpointer=saver)
        assert agent.get_state(thread("t")).next == ("model",)
        assert [message.text for message in agent.invoke(None, thread("t"))["messages"]] == ["hi", "done"]
