"""Opening a store: from any thread and event loop, closed in the end; and each way it can fail, told by name."""

from __future__ import annotations

import asyncio
import importlib
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

import agentkit
from agentkit import checkpoint, create_agent, thread
from agentkit.checkpoint import Saver
from agentkit.errors import InvalidStoreUrl, MissingDependency, StoreReadOnly, StoreUnreachable
from agentkit.testing import ScriptedModel


@pytest.fixture
def saver(url: str) -> Iterator[Saver]:
    with checkpoint.open(url) as opened:
        yield opened


def agent_on(saver: Saver) -> Any:
    return create_agent(ScriptedModel("yes", repeat=True), checkpointer=saver)


def test_sync_and_async_calls_work_on_one_store_from_any_thread_and_loop(saver: Saver) -> None:
    agent = agent_on(saver)
    agent.invoke({"messages": "one"}, thread("t"))

    async def turn() -> list[str]:
        [_ async for _ in agent.astream({"messages": "more"}, thread("t"))]
        state = await agent.aget_state(thread("t"))
        history = [state async for state in agent.aget_state_history(thread("t"), limit=2)]
        assert history[0].values == state.values
        return [message.text for message in state.values["messages"]]

    assert asyncio.run(turn()) == ["one", "yes", "more", "yes"]
    found: list[list[str]] = []
    other = threading.Thread(target=lambda: found.append(asyncio.run(turn())))
    other.start()
    other.join()
    assert found == [["one", "yes", "more", "yes", "more", "yes"]]
    assert len(agent.invoke({"messages": "last"}, thread("t"))["messages"]) == 8


async def test_deleting_a_thread_leaves_the_others(saver: Saver) -> None:
    agent = agent_on(saver)
    for name in ("a", "b", "c"):
        await agent.ainvoke({"messages": "hi"}, thread(name))
    saver.delete_thread("a")
    await saver.adelete_thread("b")
    assert [info.id for info in checkpoint.list_threads(saver)] == ["c"]


def test_it_is_closed_at_the_end_of_with(url: str) -> None:
    with checkpoint.open(url) as saver:
        agent = agent_on(saver)
        agent.invoke({"messages": "hi"}, thread("t"))
    saver.close()  # twice is harmless
    with pytest.raises(StoreUnreachable, match="closed"):
        agent.invoke({"messages": "hi"}, thread("t"))


async def test_it_is_closed_at_the_end_of_async_with(url: str) -> None:
    async with checkpoint.open(url) as saver:
        agent = agent_on(saver)
        await agent.ainvoke({"messages": "hi"}, thread("t"))
    with pytest.raises(StoreUnreachable, match="closed"):
        await agent.ainvoke({"messages": "hi"}, thread("t"))


def test_postgres_keeps_no_connection_once_it_is_closed(postgres_url: str, postgres: Any) -> None:
    import psycopg

    with checkpoint.open(postgres_url) as saver:
        agent_on(saver).invoke({"messages": "hi"}, thread("t"))
        saver.leases.take("t", "me")
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(postgres.url()) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND state IS NOT NULL"
        for _ in range(100):  # a server process ends a little after its client is gone
            (left,) = connection.execute(query, (name,)).fetchone() or (None,)
            connection.rollback()
            if not left:
                break
    assert left == 0


def test_the_engine_is_on_the_same_database(saver: Saver) -> None:
    agent_on(saver).invoke({"messages": "hi"}, thread("t"))
    with saver.engine.begin() as connection:
        assert connection.execute(text("SELECT count(DISTINCT thread_id) FROM checkpoints")).scalar_one() == 1
        connection.execute(text("CREATE TABLE mine (x INTEGER)"))
        connection.execute(text("INSERT INTO mine VALUES (1)"))
    with pytest.raises(ZeroDivisionError), saver.engine.begin() as connection:
        connection.execute(text("INSERT INTO mine VALUES (2)"))
        raise ZeroDivisionError
    assert saver.query(lambda at: at.execute(text("SELECT x FROM mine")).scalars().all()) == [1]


def test_many_open_a_new_store_at_the_same_time(durable_url: str) -> None:
    failures: list[BaseException] = []
    together = threading.Barrier(4)

    def run(name: str) -> None:
        try:
            together.wait()
            with checkpoint.open(durable_url) as saver:
                agent_on(saver).invoke({"messages": "hi"}, thread(name))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(f"t{number}",)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    with checkpoint.open(durable_url) as saver:
        assert len(checkpoint.list_threads(saver)) == 4


def test_a_relative_file_is_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with checkpoint.open("sqlite:///mein%20agent.db"):
        assert tmp_path.joinpath("mein agent.db").is_file()
    with sqlite3.connect(tmp_path / "mein agent.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_memory_stores_know_nothing_of_each_other() -> None:
    with checkpoint.open("memory:") as one, checkpoint.open("memory:") as other:
        agent_on(one).invoke({"messages": "hi"}, thread("t"))
        assert checkpoint.list_threads(other) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork: this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_fork_of_the_process_is_told_to_open_its_own(saver: Saver) -> None:
    agent = agent_on(saver)
    agent.invoke({"messages": "hi"}, thread("t"))
    child = os.fork()
    if child == 0:
        try:
            agent.get_state(thread("t"))
        except StoreUnreachable as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(agent.invoke({"messages": "hi"}, thread("t"))["messages"]) == 4


# ---- what can be wrong


@pytest.mark.parametrize(
    "url",
    [
        "",
        "agent.db",
        "mysql://user:hunter2@host/db",
        "sqlite:agent.db",
        "sqlite://agent.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///agent.db?mode=ro",
        "postgresql://user:hunter2@host:port/db",
        "postgresql://user:hunter2/x@y:z@host:1:2/db",
        "postgresql:user:hunter2@host/db",
        "postgresql://user:hunter2@host/db?nonsense=hunter2",
        "postgresql://user@host/db?password=hunter2&port=x",
        "postgresql://[hunter2@host/db",
    ],
)
def test_a_url_that_names_no_store_is_told_without_its_password(url: str) -> None:
    with pytest.raises((InvalidStoreUrl, StoreUnreachable)) as caught:
        checkpoint.open(url, timeout=1)
    shown: BaseException | None = caught.value
    assert "sqlite:///agent.db" in str(shown) or isinstance(shown, StoreUnreachable)
    while shown is not None:
        assert "hunter2" not in str(shown)
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)


def test_a_password_is_never_shown(postgres_url: str) -> None:
    url = postgres_url.replace("postgres@", "postgres:hunter2@")
    with checkpoint.open(url) as saver:
        assert "hunter2" not in f"{saver!r} {saver.engine!r} {saver.engine.url}"
        assert repr(saver) == f"<agentkit.checkpoint.Saver on {postgres_url.partition('?')[0]}>"


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("sqlite:///agent.db", "langgraph.checkpoint.sqlite", "sqlite"),
        ("memory:", "sqlalchemy", "sqlite"),
        ("postgresql://user:hunter2@host/db", "psycopg", "postgres"),
        ("postgresql://user:hunter2@host/db", "psycopg_pool", "postgres"),
    ],
)
def test_a_missing_driver_names_the_extra(url: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependency, match=rf"pip install 'agentkit\[{extra}\]'") as caught:
        checkpoint.open(url)
    assert caught.value.extra == extra
    assert "hunter2" not in str(caught.value)


def test_it_is_imported_without_any_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agentkit, "checkpoint", checkpoint)  # put back in the end
    for name in [name for name in sys.modules if name.startswith("agentkit.checkpoint")]:
        monkeypatch.delitem(sys.modules, name)
    for name in (
        "sqlalchemy",
        "psycopg",
        "psycopg_pool",
        "langgraph.checkpoint.sqlite",
        "langgraph.checkpoint.postgres",
    ):
        monkeypatch.setitem(sys.modules, name, None)
    anew = importlib.import_module("agentkit.checkpoint")
    assert anew is not checkpoint
    with pytest.raises(MissingDependency):
        anew.open("memory:")
    for name in ("list_threads", "prune"):
        with pytest.raises(MissingDependency, match=r"pip install 'agentkit\[sqlite\]'"):
            getattr(anew, name)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match="its folder must exist"):
        checkpoint.open(f"sqlite:///{tmp_path / 'nowhere' / 'agent.db'}")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    tmp_path.joinpath("agent.db").write_text("these are notes, not a database\n" * 50)
    with pytest.raises(StoreUnreachable, match="not a database"):
        checkpoint.open(f"sqlite:///{tmp_path / 'agent.db'}")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match="cannot be reached") as caught:
        checkpoint.open(f"postgresql://me:hunter2@/db?host={tmp_path}", timeout=1)
    assert "hunter2" not in str(caught.value)


def test_a_database_that_is_not_there(postgres: Any) -> None:
    with pytest.raises(StoreUnreachable, match='database "nowhere" does not exist'):
        checkpoint.open(postgres.url("nowhere"))


def test_a_database_that_is_read_only(postgres: Any, postgres_url: str) -> None:
    with checkpoint.open(postgres_url):
        pass
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(StoreReadOnly, match="read-only transaction"):
        checkpoint.open(postgres_url)
