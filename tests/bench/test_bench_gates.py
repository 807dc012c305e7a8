"""`make bench-gates` finds what was put into the conversations, and says it right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentkit.middleware import ConsecutiveFailures, RepeatedCall, SameCallFailed, StepBudget, ToolCallBudget
from bench.gates import groups, main, measure
from bench.replay import Conversation, fires, read


def user(text: str = "hi") -> dict[str, Any]:
    return {"role": "user", "content": text}


def asks(tool: str, result: str, number: int, **args: Any) -> list[dict[str, Any]]:
    call = {"id": f"c{number}", "name": tool, "args": args}
    answer = {"role": "tool", "content": result, "tool_call_id": call["id"], "name": tool}
    return [{"role": "assistant", "content": "", "tool_calls": [call]}, answer]


def says(text: str = "done") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def record(*messages: Any, solved: bool = False, env: str = "upstream") -> dict[str, Any]:
    flat = [m for part in messages for m in (part if isinstance(part, list) else [part])]
    return {"label": "a run", "env": env, "reward": float(solved), "messages": flat}


@pytest.fixture
def recorded(tmp_path: Path) -> Any:
    def write(*records: dict[str, Any]) -> Path:
        path = tmp_path / "recorded.jsonl"
        path.write_text("\n".join(map(json.dumps, records)))
        return path

    return write


def one(recorded: Any, *messages: Any) -> Conversation:
    found = read(recorded(record(*messages)))
    assert len(found) == 1
    return found[0]


def test_a_call_that_failed_twice_is_found_before_the_next_model_call(recorded: Any) -> None:
    wrong = [*asks("refund", "Error: no such order", 1, id=1), *asks("refund", "Error: no such order", 2, id=1)]
    conversation = one(recorded, user(), *wrong, *asks("refund", "ok", 3, id=2), says())
    firing = fires(SameCallFailed(2), conversation)
    assert firing and firing.calls_made == 2
    assert fires(SameCallFailed(3), conversation) is None


def test_a_step_budget_lets_the_answer_pass(recorded: Any) -> None:
    conversation = one(recorded, user(), *asks("get_a", "1", 1), *asks("get_b", "2", 2), says())
    assert fires(StepBudget(3), conversation) is None
    firing = fires(StepBudget(2), conversation)
    assert firing and firing.calls_made == 2


def test_turns_count_by_themselves_and_the_whole_conversation_does_not(recorded: Any) -> None:
    turn = [user(), *asks("refund", "Error", 1), says()]
    conversation = one(recorded, *turn, *turn, *turn)
    assert fires(ConsecutiveFailures(2), conversation) is None
    assert fires(ConsecutiveFailures(2), conversation, whole=True)


def test_a_write_between_two_reads_starts_the_count_anew(recorded: Any) -> None:
    read_it = [asks("get_a", "1", n) for n in (1, 2, 3)]
    assert fires(RepeatedCall(3), one(recorded, user(), *read_it, says()))
    assert not fires(
        RepeatedCall(3), one(recorded, user(), *read_it[:2], *asks("refund", "ok", 9), *read_it[2:], says())
    )


def test_a_rule_is_measured_against_what_became_of_the_conversations(recorded: Any) -> None:
    loop = [user("x" * 400), *[asks("get_a", "1", n) for n in range(4)], says("y" * 40)]
    path = recorded(
        record(*loop), record(*loop, solved=True), record(user(), says(), solved=True), record(user(), says())
    )
    row = measure("it", RepeatedCall(3), False, read(path), 0)
    assert (row.fired, row.caught, row.harmed, row.failed) == (2, 1, 1, 2)
    assert row.saved == pytest.approx(row.cut)
    assert 0 < row.saved < 0.5


def test_an_environment_of_its_own_gets_a_table_of_its_own(recorded: Any) -> None:
    path = recorded(record(user(), says()), record(user(), says(), env="flaky"))
    assert {name: len(group) for name, group in groups(read(path)).items()} == {"all": 2, "upstream": 1, "flaky": 1}


def test_the_command_prints_a_line_per_rule(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    loop = [user(), *[asks("get_a", "1", n) for n in range(11)], says()]
    assert main([str(recorded(record(*loop), record(user(), says(), solved=True)))]) == 0
    printed = capsys.readouterr().out
    assert "StepBudget(10)" in printed and "estimated" in printed
    line = next(line for line in printed.splitlines() if line.startswith("StepBudget(10) "))
    assert line.split()[1:] == ["1", "(50%)", "100%", "100%", "0", "(0%)", *line.split()[-2:]]


def test_a_file_that_is_not_there_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.jsonl")]) == 2
    error = capsys.readouterr().err
    assert "none.jsonl is not here" in error and "Traceback" not in error


def test_a_budget_of_calls_stops_at_the_call_that_exceeds_it(recorded: Any) -> None:
    conversation = one(recorded, user(), *asks("get_a", "1", 1), *asks("get_b", "2", 2), says())
    firing = fires(ToolCallBudget(1), conversation)
    assert firing and firing.calls_made == 2
