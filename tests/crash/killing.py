"""Kill processes at chosen points and let new ones go on: everything is imported once, and each process is a fork."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.crash.victim import Ended, Job, work

__all__ = ["Child", "Failed", "finish", "start"]


class Failed(Exception):
    """A process ended by itself, and not well."""


@dataclass(frozen=True)
class Child:
    """A process of our own."""

    pid: int
    errors: Any

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> bool:
        """Wait for its end; whether it was killed.

        Raises:
            Failed: If it ended with an exception.
        """
        _, status = os.waitpid(self.pid, 0)
        told = self.errors.read_text() if self.errors.exists() else ""
        if os.WIFSIGNALED(status):
            if os.WTERMSIG(status) != signal.SIGKILL:
                raise Failed(f"signal {os.WTERMSIG(status)}\n{told}")
            return True
        if status != 0:
            raise Failed(told)
        return False

    def kill_after(self, seconds: float) -> bool:
        """Kill it from outside, unless it is done before; whether it was killed."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return self.wait()
            time.sleep(0.0005)
        self.signal(signal.SIGKILL)
        return self.wait()


def start(job: Job, end_at: int | None = None, do: Callable[[Job, int | None], None] = work) -> Child:
    """Let a new process do a job."""
    errors = job.folder / "error"
    errors.unlink(missing_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Child(pid, errors)
    code = 1
    try:
        do(job, end_at)
        code = 0
    except BaseException:
        errors.write_text(traceback.format_exc())
    finally:
        os._exit(code)


def finish(job: Job) -> Ended:
    """Let a new process bring a job to its end, undisturbed."""
    if start(job).wait():
        raise Failed("somebody else killed it")
    return Ended(**json.loads((job.folder / "ended.json").read_text()))
