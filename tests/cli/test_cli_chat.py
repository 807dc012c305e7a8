"""`agentkit chat`: piped, and typed on a real terminal."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Command

STORE = "sqlite:///threads.db"


def test_a_conversation_is_shown_as_if_it_were_typed(agentkit: Command) -> None:
    done = agentkit("chat", "shop:support", input="Where is it?\n/help\n/new\n/nonsense\n/quit\n")
    assert done.exit_code == 0, done.output
    shown = [line.rstrip() for line in done.stdout.splitlines()]
    assert shown[1:5] == [
        "you > Where is it?",
        "agent > Let me see.",
        "✓ done order_status(order_id=A-17)",
        "agent > Done: order A-17 was shipped.",
    ]
    assert "/retry   finish a turn that failed or was cut off" in shown
    assert "there is no /nonsense" in shown


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["a"], "Done: refunded 80.0 euros for A-17."),
        (["r", "too late"], "`refund` was rejected by ann: too late"),
        (["e", "", "x", "20"], "refunded 20.0 euros for A-17"),
        (["what", "yes"], "Done: refunded 80.0 euros for A-17."),
        (["t", "it was refunded before"], "Done: it was refunded before."),
    ],
)
def test_a_call_is_decided_in_place(agentkit: Command, typed: list[str], told: str) -> None:
    done = agentkit("chat", "shop:support", "--by", "ann", input="\n".join(["Refund it.", *typed, "/quit"]) + "\n")
    assert done.exit_code == 0, done.output
    assert "? refund waits for your decision" in done.stdout
    assert "    euros     80.0" in done.stdout
    assert "  rule: refunds" in done.stdout
    assert "  may decide: ann" in done.stdout
    assert told in " ".join(done.stdout.split())


def test_a_decision_of_somebody_else_is_refused_and_asked_again(agentkit: Command) -> None:
    done = agentkit("chat", "shop:support", "--by", "bob", input="Refund it.\na\nl\n/quit\n")
    assert "'bob' may not decide; ann may" in done.stderr
    assert done.stdout.count("? refund waits for your decision") == 2
    assert "left open; /retry asks again" in done.stdout


def test_a_plain_interrupt_is_asked_too(agentkit: Command) -> None:
    done = agentkit("chat", "shop:support", input="Confirm it.\ngladly\n")
    assert "? Shall I go on?\nanswer > gladly\n" in done.stdout
    assert "agent > Done: somebody said 'gladly'." in done.stdout


def test_a_failed_turn_does_not_end_the_conversation(agentkit: Command) -> None:
    done = agentkit("chat", "shop:support", input="Fail.\nWhere is it?\n")
    assert done.exit_code == 1
    assert "error: ConnectionError: the provider is away (/retry tries again)\n" in done.stderr
    assert "agent > Done: order A-17 was shipped." in done.stdout


def test_the_next_start_goes_on_and_asks_what_was_left_open(agentkit: Command) -> None:
    first = agentkit("chat", "shop:support", "--store", STORE, "--by", "ann", input="Refund it.\nl\n")
    assert f"go on with: agentkit chat shop:support --store {STORE} --thread main" in first.stdout
    second = agentkit("chat", "shop:support", "--store", STORE, "--by", "ann", input="a\n")
    assert "goes on after 1 message\n" in second.stdout
    assert "agent > Done: refunded 80.0 euros for A-17." in second.stdout


class Terminal:
    """A command on a terminal of 80 columns."""

    def __init__(self, folder: Path, root: Path, *args: str) -> None:
        self.screen = ""
        self._main, side = pty.openpty()
        env = {**os.environ, "PYTHONPATH": str(root), "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
        command = [sys.executable, "-m", "agentkit.cli", *args]
        self.process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=side, stdout=side, stderr=side, start_new_session=True
        )
        os.close(side)

    def type(self, text: str) -> None:
        os.write(self._main, text.encode())

    def wait_for(self, text: str) -> None:
        until = time.monotonic() + 60
        while text not in self.screen:
            assert time.monotonic() < until, self.screen
            if select.select([self._main], [], [], 1)[0]:
                try:
                    self.screen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", os.read(self._main, 65536).decode())
                except OSError:  # the command has ended
                    assert text in self.screen, self.screen
                    return

    def end(self) -> int:
        code = self.process.wait(60)
        os.close(self._main)
        return code


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_leaves_the_thread_resumable_and_the_next_start_finishes_it(folder: Path, root: Path) -> None:
    args = ("chat", "shop:support", "--store", STORE)
    first = Terminal(folder, root, *args)
    first.wait_for("you > ")
    first.type("Archive it.\r")
    first.wait_for("slow(order_id=A-1)")  # the live line of the running tool
    while not folder.joinpath("asked").exists():
        time.sleep(0.02)
    first.process.send_signal(signal.SIGINT)
    first.wait_for("stopped; go on with: agentkit chat shop:support")
    assert first.end() == 130
    assert "Traceback" not in first.screen

    second = Terminal(folder, root, *args)
    second.wait_for("the last answer was cut off; finishing it")
    second.wait_for("Done: order A-1 is in the archive.")
    second.type("/quit\r")
    assert second.end() == 0
