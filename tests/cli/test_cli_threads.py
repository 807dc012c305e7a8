"""`agentkit threads`: what a store holds, forks, decisions, room."""

import json
from pathlib import Path

import pytest

from agentkit.checkpoint import open
from tests.cli.conftest import Command

STORE = "sqlite:///threads.db"


@pytest.fixture(scope="module")
def made() -> dict[str, bytes]:
    """The files of the store, once they are made."""
    return {}


@pytest.fixture
def store(agentkit: Command, folder: Path, made: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Command:
    """A store with a thread that is done and one that waits for a decision."""
    monkeypatch.setenv("AGENTKIT_STORE", STORE)
    if not made:
        assert agentkit("run", "shop:support", "Where is it?", "--thread", "done-1").exit_code == 0
        assert agentkit("run", "shop:support", "Refund it.", "--thread", "open-1").exit_code == 1
        made.update((path.name, path.read_bytes()) for path in folder.glob("threads.db*"))
    for name, content in made.items():
        folder.joinpath(name).write_bytes(content)
    return agentkit


def test_list_tells_what_waits(store: Command) -> None:
    done = store("threads", "list")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["thread", "status", "steps", "size", "first", "last"]
    assert [line.split()[:2] for line in lines[1:]] == [["open-1", "waiting"], ["done-1", "done"]]
    assert max(map(len, lines)) <= 80
    told = json.loads(store("threads", "list", "--json").stdout)
    assert {one["id"]: one["status"] for one in told} == {"open-1": "waiting", "done-1": "done"}
    assert len(json.loads(store("threads", "list", "--json", "--limit", "1").stdout)) == 1


def test_show_lists_the_steps_with_what_changed(store: Command) -> None:
    done = store("threads", "show", "open-1")
    assert max(map(len, done.stdout.splitlines())) <= 80
    words = " ".join(done.stdout.split())
    assert "user 'Refund it.'" in words
    assert "model ai calls refund(order_id='A-17', euros=80.0)" in words
    assert "waits for a decision on refund(order_id='A-17', euros=80.0)" in done.stderr
    told = json.loads(store("threads", "show", "open-1", "--json").stdout)
    assert told["steps"][0]["source"] == "input"
    assert any("messages" in step["changed"] for step in told["steps"])
    assert told["waiting"][0]["name"] == "refund"


def test_fork_goes_on_from_a_step_and_leaves_the_thread_as_it_was(store: Command) -> None:
    steps = json.loads(store("threads", "show", "done-1", "--json").stdout)["steps"]
    asked = next(number for number, step in enumerate(steps, 1) if step["nodes"] == ["model"])
    done = store("threads", "fork", "done-1", str(asked), "--as", "other", "--agent", "shop:support")
    assert done.exit_code == 0, done.output
    assert done.stdout == "Done: order A-17 was shipped.\n"
    assert len(json.loads(store("threads", "show", "done-1", "--json").stdout)["steps"]) == len(steps)
    by_end = store("threads", "fork", "done-1", steps[asked - 1]["checkpoint_id"][-8:], "--as", "third", "--json")
    assert json.loads(by_end.stdout)["thread"] == "third"
    listed = {one["id"]: one["status"] for one in json.loads(store("threads", "list", "--json").stdout)}
    assert (listed["other"], listed["third"]) == ("done", "resumable")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-d", "approve"], "Done: refunded 80.0 euros for A-17."),
        (["-d", "reject", "--message", "too late"], "rejected by ann: too late"),
        (["-d", "edit", "--args", '{"order_id": "A-17", "euros": 5.0}'], "refunded 5.0 euros"),
        (["-d", "respond", "--message", "done by hand"], "Done: done by hand."),
    ],
)
def test_approve_decides_and_the_thread_goes_on(store: Command, options: list[str], told: str) -> None:
    done = store("threads", "approve", "shop:support", "open-1", "--by", "ann", *options)
    assert done.exit_code == 0, done.output
    assert told in done.stdout
    again = store("threads", "approve", "shop:support", "open-1", "--by", "ann", *options)
    assert again.exit_code == 2  # it was decided
    assert "waits for nothing" in again.stderr


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["approve", "shop:support", "open-1"], 2, "nobody can be asked without a terminal"),
        (["approve", "shop:support", "open-1", "-d", "approve", "--call", "x"], 2, "no call 'x' waits; waiting: c1"),
        (["approve", "shop:support", "open-1", "-d", "edit"], 2, "edit needs --args"),
        (["approve", "shop:support", "open-1", "-d", "approve", "--by", "bob"], 2, "Decide again with"),
        (["show", "nothing"], 2, "there is no thread 'nothing'; there are open-1, done-1"),
        (["fork", "open-1", "99"], 2, "'99' is not the number (1 to "),
        (["fork", "open-1", "1", "--as", "done-1"], 2, "there is a thread 'done-1' already"),
        (["prune"], 2, "say what may go"),
        (["prune", "--older-than", "soon"], 2, "'soon' is no length of time"),
    ],
)
def test_a_mistake_is_one_line(store: Command, args: list[str], code: int, told: str) -> None:
    done = store("threads", *args)
    assert done.exit_code == code, done.output
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")


def test_prune_says_first_and_leaves_what_is_needed(store: Command) -> None:
    before = store("threads", "list", "--json").stdout
    would = store("threads", "prune", "--keep-last", "1", "--dry-run")
    assert would.stdout.startswith("would delete ")
    assert store("threads", "list", "--json").stdout == before
    report = json.loads(store("threads", "prune", "--keep-last", "1", "--json").stdout)
    assert report["checkpoints"] > 0
    assert f"would delete {report['checkpoints']} steps of 2 threads" in would.stdout
    done = store("threads", "approve", "shop:support", "open-1", "-d", "approve", "--by", "ann")
    assert done.stdout == "Done: refunded 80.0 euros for A-17.\n"


def test_looking_at_a_store_that_is_not_there_makes_none(agentkit: Command, folder: Path) -> None:
    done = agentkit("threads", "list", "--store", "sqlite:///treads.db")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "there is no store sqlite:///treads.db" in done.stderr
    assert not folder.joinpath("treads.db").exists()


def test_an_old_thread_is_young_enough(store: Command) -> None:
    assert store("threads", "prune", "--older-than", "30d").stdout.startswith("deleted 0 steps of 0 threads")


def test_an_empty_store_is_no_mistake(agentkit: Command, folder: Path) -> None:
    open(STORE).close()
    done = agentkit("threads", "list", "--store", STORE)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "the store has no threads\n")
    assert json.loads(agentkit("threads", "list", "--store", STORE, "--json").stdout) == []
