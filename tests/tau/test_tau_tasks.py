"""Every task's calls through an agent, one by one and in parallel batches: exactly the recorded results and rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_core.messages import ToolMessage

from agentkit import create_agent
from agentkit.testing import ScriptedModel, ai, pairing_problems, tool_call
from tests.tau.record import Action, Task
from tests.tau.shop import READS, Shop
from tests.wire.driving import Drive


def _alone(task: Task, shop: Shop) -> Iterator[list[Action]]:
    for action in task.actions:
        yield [action]


def _together(task: Task, shop: Shop) -> Iterator[list[Action]]:
    """As many consecutive calls at once as do not disturb each other."""
    batch: list[Action] = []
    for action in task.actions:
        mine = shop.touched(action.name, action.args)
        if any(mine.disturbs(shop.touched(other.name, other.args)) for other in batch):
            yield batch
            batch = []
        batch.append(action)
    if batch:
        yield batch


BATCHING = {"one by one": _alone, "together": _together}


@pytest.mark.parametrize("batching", BATCHING)
def test_the_calls_of_every_task(batching: str, drive: Drive, shop: Shop, tasks: list[Task]) -> None:
    tools = shop.tools()
    for task in tasks:
        shop.reset()
        batches = list(BATCHING[batching](task, shop))
        steps = [ai("", *(tool_call(a.name, a.args, f"call_{at}") for at, a in enumerate(batch))) for batch in batches]
        model = ScriptedModel(*steps, "Done.")
        outcome = drive(create_agent(model, tools), "Please help me.")
        results = [message.content for message in outcome.messages if isinstance(message, ToolMessage)]
        assert results == [action.result for action in task.actions], f"task {task.number}"
        assert shop.changed() == task.changed, f"task {task.number}"
        assert [pairing_problems(request.messages) for request in model.requests] == [[]] * (len(steps) + 1)


def test_batches_hold_reads_writes_and_both(shop: Shop, tasks: list[Task]) -> None:
    """The records are varied enough for the test above to mean something; no task has two writes on different rows."""
    several = [batch for task in tasks for batch in _together(task, shop) if len(batch) > 1]
    writes = [sum(action.name not in READS for action in batch) for batch in several]
    assert any(count == 0 for count in writes)
    assert any(0 < count < len(batch) for count, batch in zip(writes, several, strict=True))


def test_writes_on_different_rows_at_once(drive: Drive, shop: Shop, tasks: list[Task]) -> None:
    """The first write of every task whose rows no earlier one touches, all in one message."""
    batch: list[Action] = []
    for task in tasks:
        first = next((action for action in task.actions if action.name not in READS), None)
        if first is not None:
            rows = shop.touched(first.name, first.args)
            if not any(rows.disturbs(shop.touched(other.name, other.args)) for other in batch):
                batch.append(first)
    assert len(batch) > 20
    model = ScriptedModel(ai("", *(tool_call(a.name, a.args, f"call_{at}") for at, a in enumerate(batch))), "Done.")
    outcome = drive(create_agent(model, shop.tools()), "Please help everybody.")
    results = [message.content for message in outcome.messages if isinstance(message, ToolMessage)]
    assert results == [action.result for action in batch]
