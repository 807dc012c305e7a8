"""What a store tells of its threads, and threads that go on from a step of another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.types import Command

from agentkit import checkpoint, create_agent, thread
from agentkit.checkpoint import Saver, fork, history, list_threads
from agentkit.errors import ConfigurationError, ThreadExists, UnknownCheckpoint
from agentkit.testing import ScriptedModel, ai, tool_call
from tests.checkpoint.keeping import keep
from tests.checkpoint.notebook import notebook, states, turns
from tests.checkpoint.typed_values import Fact


@tool
def look(x: int) -> str:
    """Look."""
    return f"found {x}"


def test_a_store_without_threads(saver: Saver) -> None:
    assert list_threads(saver) == []
    assert history(saver, "nobody") == []


def test_each_thread_is_told_with_its_status(saver: Saver) -> None:
    began = datetime.now(UTC) - timedelta(seconds=1)
    agent = create_agent(ScriptedModel("hello", "hello again", TimeoutError()), checkpointer=saver)
    agent.invoke({"messages": "hi"}, thread("done"))
    agent.invoke({"messages": "hi"}, thread("held"))
    with pytest.raises(TimeoutError):
        agent.invoke({"messages": "hi"}, thread("stopped"))
    notebook(saver, asks=True).invoke({"notes": ["hi"]}, thread("asking"))
    saver.allow(Fact)
    keep(saver, Fact("cannot be read later"), "strange")
    saver.leases.take("held", "a worker", ttl=60)
    saver.serde.__init__()  # type: ignore[misc]  # allows nothing any more
    found = {info.id: info for info in list_threads(saver)}
    assert {name: info.status for name, info in found.items()} == {
        "done": "done",
        "held": "running",
        "stopped": "resumable",
        "asking": "waiting",
        "strange": "unreadable",
    }
    assert [info.last for info in found.values()] == sorted((info.last for info in found.values()), reverse=True)
    for info in found.values():
        assert began < info.first <= info.last < datetime.now(UTC)
        assert info.bytes > 100
        assert info.checkpoints >= 2
    assert [info.id for info in list_threads(saver, limit=2)] == [*found][:2]


def test_history_tells_what_each_step_did(saver: Saver) -> None:
    model = ScriptedModel(ai("", tool_call("look", {"x": 1}), tool_call("look", {"x": 2}, "c2")), "done")
    agent = create_agent(model, [look], checkpointer=saver)
    agent.invoke({"messages": "hi"}, thread("t"))
    agent.update_state(thread("t"), {"messages": [("user", "by hand")]})
    steps = history(agent, "t")
    assert [step.source for step in steps] == ["input", "loop", "loop", "loop", "loop", "update"]
    assert [step.nodes for step in steps] == [(), (), ("model",), ("tools",), ("model",), ()]
    assert [step.parent_id for step in steps] == [None, *(step.checkpoint_id for step in steps[:-1])]
    texts = [[message.text for write in step.changed["messages"] for message in write] for step in steps[2:5]]
    assert texts == [[""], ["found 1", "found 2"], ["done"]]
    assert all("messages" in step.changed for step in steps[1:])
    assert [step.at for step in steps] == sorted(step.at for step in steps)


def test_a_fork_of_the_newest_step_goes_on_as_the_original_would(saver: Saver) -> None:
    graph = notebook(saver, asks=True)
    graph.invoke({"notes": ["hi"]}, thread("t"))
    newest = history(graph, "t")[-1].checkpoint_id
    there = fork(graph, "t", newest, "other")
    assert graph.get_state(there, subgraphs=True).interrupts == graph.get_state(thread("t"), subgraphs=True).interrupts
    forked = graph.invoke(Command(resume="yes"), there)
    assert graph.get_state(thread("t")).next == ("second",)
    assert graph.invoke(Command(resume="yes"), thread("t")) == forked


def test_a_fork_of_an_older_step_knows_nothing_of_what_came_after(saver: Saver) -> None:
    graph = notebook(saver, remembers=True)
    turns(graph, 3)
    everything = states(graph)
    middle = [*everything][4]
    there = fork(graph, "t", middle, "other")
    copied = states(graph, "other")
    assert copied == {id: values for id, values in everything.items() if id <= middle}
    result = graph.invoke(None, there)
    assert states(graph) == everything
    assert "hi 2" not in result["notes"]


def test_a_fork_that_cannot_be_made(saver: Saver) -> None:
    graph = notebook(saver)
    turns(graph, 1)
    newest = history(graph, "t")[-1].checkpoint_id
    with pytest.raises(ThreadExists, match="'t'"):
        fork(graph, "t", newest, "t")
    with pytest.raises(UnknownCheckpoint, match="'nowhere'"):
        fork(graph, "t", "nowhere", "other")
    assert [info.id for info in list_threads(saver)] == ["t"]


def test_threads_of_another_saver_are_refused() -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    agent: Any = create_agent(ScriptedModel("x"), checkpointer=InMemorySaver())
    with pytest.raises(ConfigurationError, match=r"InMemorySaver; open the store with agentkit\.checkpoint\.open"):
        history(agent, "t")


def test_a_long_list_is_read_page_by_page(saver: Saver) -> None:
    graph = notebook(saver)
    turns(graph, 15)
    fork(graph, "t", history(graph, "t")[-1].checkpoint_id, "other")  # shares every id
    every = list(saver.list(None))
    assert len(every) == sum(info.checkpoints for info in checkpoint.list_threads(saver))
    keys = [tuple(sorted(row.config["configurable"].items())) for row in every]
    assert len(set(keys)) == len(keys) > 100
    assert [row.checkpoint["id"] for row in every] == sorted((row.checkpoint["id"] for row in every), reverse=True)
    assert [row.config for row in saver.list(None, limit=60)] == [row.config for row in every[:60]]
    before = next(row for row in every if row.config["configurable"]["checkpoint_ns"] == "")
    older = list(saver.list(thread("t"), before=before.config, limit=3, filter={"source": "loop"}))
    assert len(older) == 3
    assert all(row.metadata["source"] == "loop" for row in older)
