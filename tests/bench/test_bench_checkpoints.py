"""`make bench-checkpoints` runs every contender through the same turns, and says what each cost."""

from __future__ import annotations

from agentkit import checkpoint
from bench.checkpoints import Mark, contenders, markdown, measure


def test_every_contender_is_measured_on_a_store() -> None:
    found = {}
    for name, build in contenders().items():
        with checkpoint.open("memory:") as saver:
            agent = build(saver)
            found["memory", name] = measure(agent, saver, [1, 3])
            assert len(agent.get_state({"configurable": {"thread_id": "t"}}).values["messages"]) == 12
    assert [mark.turns for marks in found.values() for mark in marks] == [1, 3] * 3
    assert all(mark.bytes > 1000 and mark.milliseconds > 0 for marks in found.values() for mark in marks)
    table = markdown(found)
    assert len(table.splitlines()) == 5


def test_the_table_tells_bytes_in_a_unit_that_fits() -> None:
    table = markdown({("SQLite", "one"): [Mark(50, 1_234.0, 2.04, 1.5, 3.0), Mark(100, 2_500_000.0, 20.0, 9.0, 40.4)]})
    assert table.splitlines()[0] == "| store |  | 50 turns | 100 turns | read back at 100 |"
    assert table.splitlines()[2] == "| SQLite | one | 1.2 kB, 2.0 ms (1.5) | 2.50 MB, 20.0 ms (9.0) | 40 ms |"
