"""Pruning removes old checkpoints, and nothing that a thread still needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.types import Command
from sqlalchemy import text

from agentkit import checkpoint, create_agent, thread
from agentkit.checkpoint import PruneReport, Saver, aprune, fork, prune
from agentkit.errors import ConfigurationError
from agentkit.testing import ScriptedModel
from tests.checkpoint.notebook import notebook, states, turns


def orphans(saver: Saver) -> dict[str, int]:
    """Rows that belong to no checkpoint any more."""
    tables = saver.tables
    lost = f"""SELECT count(*) FROM {tables.writes} w WHERE NOT EXISTS (SELECT 1 FROM checkpoints c
        WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns AND c.checkpoint_id = w.checkpoint_id)"""
    parents = """SELECT count(*) FROM checkpoints c WHERE parent_checkpoint_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM checkpoints p WHERE p.thread_id = c.thread_id AND p.checkpoint_ns = c.checkpoint_ns
        AND p.checkpoint_id = c.parent_checkpoint_id)"""
    found = {
        "writes": saver.query(lambda at: at.execute(text(lost)).scalar_one()),
        "parents": saver.query(lambda at: at.execute(text(parents)).scalar_one()),
    }
    return {name: int(number) for name, number in found.items() if number}


@pytest.mark.parametrize("with_graph", [True, False])
def test_every_checkpoint_that_stays_is_what_it_was(saver: Saver, with_graph: bool) -> None:
    graph = notebook(saver)
    turns(graph, 8)
    before = states(graph)
    report = prune(saver, keep_last=5, graph=graph if with_graph else None)
    after = states(graph)
    assert after == {id: values for id, values in before.items() if id in after}
    assert [*after][:5] == [*before][:5]
    newest = next(iter(after))
    assert len(after[newest]["notes"]) > 10
    assert after[newest]["rare"] == ["rare 1"]
    assert (len(after) == 5, report.kept_for_deltas == 0) == (with_graph, with_graph)
    assert orphans(saver) == {}
    turns(graph, 1)
    assert states(graph)[newest] == after[newest]


def test_a_thread_goes_on_as_if_nothing_was_deleted(saver: Saver) -> None:
    graph = notebook(saver, remembers=True)
    for name in ("pruned", "whole"):
        turns(graph, 3, name)
        if name == "pruned":
            prune(saver, thread=name, keep_last=1, graph=graph)
        turns(graph, 3, name)
    pruned, whole = (graph.get_state(thread(name)).values for name in ("pruned", "whole"))
    assert pruned == whole
    assert len(pruned["notes"]) > 10


@pytest.mark.parametrize("remembers", [None, True])
@pytest.mark.parametrize("with_graph", [True, False])
def test_a_pending_approval_in_a_sub_graph_can_be_answered(
    saver: Saver, with_graph: bool, remembers: bool | None
) -> None:
    graph = notebook(saver, asks=True, remembers=remembers)
    for turn in range(4):
        graph.invoke({"notes": [f"hi {turn}"]}, thread("t"))
        if turn < 3:
            graph.invoke(Command(resume=f"yes {turn}"), thread("t"))
    expected = graph.get_state(thread("t"), subgraphs=True)
    report = prune(saver, keep_last=1, graph=graph if with_graph else None)
    assert report.checkpoints > 0 or (remembers and not with_graph)  # whose snapshots are 50 steps apart
    found = graph.get_state(thread("t"), subgraphs=True)
    assert found._replace(parent_config=None) == expected._replace(parent_config=None)
    done = graph.invoke(Command(resume="at last"), thread("t"))
    assert done["notes"][-2].startswith("inner at last")
    assert "hi 0" in done["notes"]


def test_a_run_that_stopped_on_the_way_goes_on(saver: Saver) -> None:
    broken = [True]

    def answer(request: Any) -> str:
        if broken and len(request.messages) > 3:
            raise TimeoutError
        return f"answer {len(request.messages)}"

    agent = create_agent(ScriptedModel(answer, repeat=True), checkpointer=saver)
    agent.invoke({"messages": "one"}, thread("t"))
    agent.invoke({"messages": "two"}, thread("t"))
    with pytest.raises(TimeoutError):
        agent.invoke({"messages": "three"}, thread("t"))
    prune(saver, keep_last=1, graph=agent)
    broken.clear()
    assert agent.get_state(thread("t")).next == ("model",)
    done = agent.invoke(None, thread("t"))
    assert [message.text for message in done["messages"]] == ["one", "answer 1", "two", "answer 3", "three", "answer 5"]


def test_a_fork_from_a_checkpoint_that_stays(saver: Saver) -> None:
    graph = notebook(saver)
    turns(graph, 4)
    prune(saver, keep_last=4, graph=graph)
    oldest = [*states(graph)][-1]
    before = states(graph)[oldest]
    there = graph.update_state({"configurable": {"thread_id": "t", "checkpoint_id": oldest}}, {"notes": ["forked"]})
    assert graph.get_state(there).values["notes"] == [*before["notes"], "forked"]
    graph.invoke(None, there)
    assert states(graph)[oldest] == before
    copied = fork(graph, "t", oldest, "other")
    assert graph.get_state(copied).values == before


def test_what_is_young_stays_and_what_is_old_goes(saver: Saver) -> None:
    graph = notebook(saver)
    turns(graph, 3)
    everything = len(states(graph))
    assert prune(saver, older_than=timedelta(hours=1)).checkpoints == 0
    assert prune(saver, keep_last=2, older_than=timedelta(hours=1)).checkpoints == 0
    assert prune(saver, keep_last=everything, older_than=timedelta(0)).checkpoints == 0
    report = prune(saver, older_than=datetime.now(UTC), graph=graph)
    assert len(states(graph)) == 1
    assert report.checkpoints >= everything - 1


async def test_a_dry_run_tells_and_deletes_nothing(saver: Saver) -> None:
    graph = notebook(saver)
    for name in ("a", "b"):
        turns(graph, 3, name)
    before = states(graph, "a")
    told = await aprune(saver, keep_last=1, graph=graph, dry_run=True)
    assert states(graph, "a") == before
    done = await aprune(saver, keep_last=1, graph=graph)
    assert (done.threads, done.checkpoints, done.kept) == (told.threads, told.checkpoints, told.kept)
    assert done.threads == 2
    assert done.bytes >= told.bytes > 0
    assert await aprune(saver, keep_last=1, graph=graph) == PruneReport(kept=done.kept)


def test_a_file_holds_no_more_than_what_stays(saver: Saver) -> None:
    graph = notebook(saver)
    turns(graph, 30)
    (before,) = checkpoint.list_threads(saver)
    report = prune(saver, keep_last=1, graph=graph)
    (after,) = checkpoint.list_threads(saver)
    assert after.bytes < before.bytes / 5
    assert report.bytes > before.bytes / 2


@pytest.mark.parametrize("options", [{}, {"keep_last": 0}])
def test_a_prune_that_would_lose_threads_is_refused(options: dict[str, Any]) -> None:
    with checkpoint.open("memory:") as saver, pytest.raises(ConfigurationError, match=r"keep_last"):
        prune(saver, **options)
