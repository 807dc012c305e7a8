"""The monthly report: killed for real, it goes on after the last finished pull."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentkit import checkpoint
from agentkit.errors import ThreadBusy
from examples.monthly_report.__main__ import app
from examples.monthly_report.report import Watch, build
from examples.monthly_report.sources import SOURCES

NAMES = [source.name for source in SOURCES]
MONTH = "2026-10"


def start(root: Path, db: Path, pace: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "examples.monthly_report", MONTH, "--db", str(db), "--pace", str(pace)]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def pulls(running: subprocess.Popen[str], upto: int) -> list[str]:
    """The next pulls that a process tells of."""
    assert running.stdout is not None
    found: list[str] = []
    while len(found) < upto and (line := running.stdout.readline()):
        if line.startswith("pulled "):
            found.append(line.split()[1])
    return found


def whole() -> str:
    with checkpoint.open("memory:") as saver:
        given: Any = {"month": MONTH, "figures": {}}
        text: str = build(saver).invoke(given, {"configurable": {"thread_id": "x"}}, context=Watch())["text"]
        return text


@pytest.mark.skipif(sys.platform == "win32", reason="signals are missing on Windows")
def test_killed_and_interrupted_it_goes_on_after_the_last_finished_pull(root: Path, tmp_path: Path) -> None:
    db = tmp_path / "report.db"
    first = start(root, db, 0.25)
    done = pulls(first, 4)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    second = start(root, db, 0.25)
    again = pulls(second, 3)
    second.send_signal(signal.SIGINT)
    told, _ = second.communicate()
    assert (second.returncode, "continues after the last" in told) == (130, True)
    assert done == NAMES[:4]
    assert again[0] in NAMES[3:6]  # the pull that was under way, or was being kept, may be asked again
    third = start(root, db, 0)
    text, _ = third.communicate()
    rest = [line.split()[1] for line in text.splitlines() if line.startswith("pulled ")]
    assert (third.returncode, rest[-1]) == (0, NAMES[-1])
    asked = [*done, *again, *rest]
    assert set(asked) | set(NAMES[NAMES.index(done[-1]) :]) == set(NAMES)
    assert len(asked) <= len(NAMES) + 2  # one for each stop
    assert whole() in text


def test_a_finished_report_is_only_shown_and_a_fresh_one_pulled_anew(tmp_path: Path) -> None:
    command = [MONTH, "--db", str(tmp_path / "report.db"), "--pace", "0"]
    first, second, third = (CliRunner().invoke(app, [*command, *more]) for more in ([], [], ["--fresh"]))
    assert [result.output.count("pulled") for result in (first, second, third)] == [12, 0, 12]
    assert all(whole() in result.output for result in (first, second, third))


def test_mistakes_are_told_in_a_line(tmp_path: Path) -> None:
    for arguments, told in (
        (["2026-13"], "no month"),
        ([MONTH, "--db", str(tmp_path / "nowhere" / "report.db")], "nowhere"),
        ([MONTH, "--db", "mysql://host/name"], "mysql"),
    ):
        result = CliRunner().invoke(app, arguments)
        assert (result.exit_code, told in result.output) == (2, True), result.output
        assert "Traceback" not in result.output


def test_two_processes_do_not_write_one_report(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/report.db"
    with checkpoint.open(url) as saver:
        saver.leases.take(MONTH, "the other process", ttl=60)
        result = CliRunner().invoke(app, [MONTH, "--db", url, "--pace", "0"])
        assert (result.exit_code, "another process" in result.output) == (2, True), result.output
        with pytest.raises(ThreadBusy):
            saver.leases.take(MONTH, "a third one")


def test_help_says_how_to_continue() -> None:
    result = CliRunner().invoke(app, ["--help"], env={**os.environ, "COLUMNS": "100"})
    assert result.exit_code == 0
    assert "the same" in result.output and "--fresh" in result.output
