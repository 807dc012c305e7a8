"""The teller: a transfer above 1,000 waits for a person over restarts, each command being a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from typer.testing import CliRunner, Result

from agentkit import thread
from agentkit.middleware import decide, pending_approvals
from examples.transfer_approval.__main__ import app
from examples.transfer_approval.bank import Bank
from examples.transfer_approval.teller import teller


class Counter:
    """A counter of a bank: runs commands in processes of their own, on one folder."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
        self.environment = {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"}

    def arguments(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "examples.transfer_approval", *words, "--db", str(self.folder)]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.arguments(*words), env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip

    @property
    def transfers(self) -> list[tuple[str, float]]:
        return Bank(self.folder / "bank.db").transfers()


@pytest.fixture
def counter(root: Path, tmp_path: Path) -> Counter:
    return Counter(root, tmp_path / "bank")


def test_a_waiting_transfer_survives_a_killed_process_and_goes_on_with_another_amount(counter: Counter) -> None:
    asking = subprocess.Popen(
        counter.arguments("ask", "transfer 1500 to Ann", "--here"), env=counter.environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert asking.stdout is not None
    assert asking.stdin is not None
    assert asking.stdout.readline() == "waits for a person: transfer 1,500.00 to ann\n"
    asking.send_signal(signal.SIGKILL)
    asking.wait(timeout=30)
    asking.stdout.close()
    asking.stdin.close()
    assert counter.transfers == []

    decided = counter.run("decide", "edit", "--amount", "900", "--by", "eve")
    assert decided.stdout == "Done: 900.00 transferred to ann.\n", decided.stderr
    assert counter.transfers == [("ann", 900.0)]


def typed(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--db", str(folder)])


def test_what_waits_is_shown_and_mistakes_are_one_line(tmp_path: Path) -> None:
    assert typed(tmp_path, "ask", "transfer 1500 to Ann").output == "waits for a person: transfer 1,500.00 to ann\n"
    shown = typed(tmp_path, "show").output
    assert shown.endswith("waits for a person: transfer 1,500.00 to ann\n")
    assert str(typed(tmp_path, "decide", "edit").exception) == "error: an edit needs an amount"
    assert typed(tmp_path, "decide", "approve").output == "Done: 1,500.00 transferred to ann.\n"
    again = typed(tmp_path, "decide", "approve")
    assert str(again.exception) == "error: nothing waits in the conversation 'main'"


def test_what_waits_is_not_lost_by_asking_for_something_else(tmp_path: Path) -> None:
    typed(tmp_path, "ask", "transfer 1500 to Ann")
    refused = typed(tmp_path, "ask", "transfer 20 to Ben")
    told = "error: decide first about what waits in the conversation 'main': transfer 1,500.00 to ann"
    assert str(refused.exception) == told
    assert refused.exit_code == 1
    assert (
        typed(tmp_path, "ask", "transfer 20 to Ben", "--thread", "other").output == "Done: 20.00 transferred to ben.\n"
    )
    assert str(typed(tmp_path, "decide", "approve", "--amount", "3").exception) == (
        "error: approve takes no amount; edit does"
    )
    assert typed(tmp_path, "decide", "reject", "--by", "eve").output == (
        "Not transferred: `transfer` was rejected by eve.\n"
    )


def test_whoever_decides_here_is_asked_until_the_answer_is_one(tmp_path: Path) -> None:
    answers = "maybe\n\nedit\nedit ten\nedit 900\n"
    done = CliRunner().invoke(app, ["ask", "transfer 1500 to Ann", "--here", "--db", str(tmp_path)], input=answers)
    assert done.output.count("approve, edit AMOUNT, or reject: ") == 5
    assert done.output.endswith("Done: 900.00 transferred to ann.\n")


def test_a_place_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = CliRunner().invoke(app, ["show", "--db", str(tmp_path / "file")])
    assert refused.exit_code == 2
    assert "Traceback" not in refused.output


def ordered(tmp_path: Path, *orders: str) -> tuple[Bank, list[str]]:
    bank = Bank(tmp_path / "bank.db")
    agent = teller(bank, InMemorySaver())
    return bank, [agent.invoke({"messages": order}, thread("t"))["messages"][-1].text for order in orders]


def test_a_small_transfer_is_made_at_once(tmp_path: Path) -> None:
    bank, told = ordered(tmp_path, "transfer 1,000 to Ben", "hello", "transfer 10 to nobody")
    assert told[0] == "Done: 1,000.00 transferred to ben."
    assert told[1].startswith("Say it like this")
    assert told[2].startswith("Not transferred: ")
    assert bank.transfers() == [("ben", 1000.0)]


def test_a_rejected_transfer_is_not_made_and_the_reason_is_told(tmp_path: Path) -> None:
    bank = Bank(tmp_path / "bank.db")
    agent = teller(bank, InMemorySaver())
    paused = agent.invoke({"messages": "transfer 1500 to ann"}, thread("t"))
    (waiting,) = pending_approvals(paused)
    ended = agent.invoke(decide(paused, {waiting.id: {"type": "reject", "message": "too much"}}), thread("t"))
    assert "too much" in ended["messages"][-1].text
    assert bank.transfers() == []


def test_a_key_is_booked_once(tmp_path: Path) -> None:
    bank = Bank(tmp_path / "bank.db")
    assert bank.transfer("k", "ann", 5) == bank.transfer("k", "ann", 5)
    assert bank.transfers() == [("ann", 5.0)]
