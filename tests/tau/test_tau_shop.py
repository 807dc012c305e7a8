"""The shop by itself answers as recorded, so that a replay through an agent tests the agent."""

from __future__ import annotations

from tests.tau.record import Conversation, Task
from tests.tau.shop import Shop, Touched


def test_every_task_gives_the_recorded_results_and_changes(shop: Shop, tasks: list[Task]) -> None:
    assert len(tasks) == 55
    for task in tasks:
        shop.reset()
        for action in task.actions:
            assert shop.call(action.name, action.args) == action.result, f"task {task.number}: {action.name}"
        assert shop.changed() == task.changed, f"task {task.number}"


def test_every_call_of_the_conversations_gives_the_recorded_result(
    shop: Shop, conversations: list[Conversation]
) -> None:
    assert len(conversations) == 62
    for conversation in conversations:
        shop.reset()
        results = conversation.results
        for reply in conversation.replies:
            for call in reply.tool_calls:
                recorded = next(results)
                if conversation.flaky and recorded == "Error: 503 Service Unavailable":
                    continue
                assert shop.call(call["name"], call["args"]) == recorded, f"{conversation.name}: {call['name']}"


def test_reset_forgets_every_change(shop: Shop, tasks: list[Task]) -> None:
    for task in tasks:
        for action in task.actions:
            shop.call(action.name, action.args)
    assert shop.changed()
    shop.reset()
    assert shop.changed() == {}


def test_calls_disturb_each_other_where_one_changes_what_the_other_looks_at() -> None:
    every_user = Touched(reads=frozenset({("users", "*")}))
    ada, bob = (Touched(reads=frozenset({("users", name)})) for name in ("ada", "bob"))
    change_ada = Touched(writes=frozenset({("users", "ada")}))
    change_bob = Touched(writes=frozenset({("users", "bob")}))
    assert not every_user.disturbs(ada)
    assert not ada.disturbs(bob)
    assert not change_ada.disturbs(bob)
    assert not change_ada.disturbs(change_bob)
    assert change_ada.disturbs(change_ada)
    assert change_ada.disturbs(ada)
    assert ada.disturbs(change_ada)
    assert every_user.disturbs(change_ada)
    assert change_ada.disturbs(every_user)
