"""pydantic-ai and openai-agents: an environment of their own, and a process for each that does what it is told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Literal

from bench.turns.processes import ROOT, process
from bench.turns.scenario import LeftOut, Sampler

FOLDER = ROOT / ".venv-peers"
PEERS = {"pydantic-ai": "pydantic-ai-slim~=2.68", "openai-agents": "openai-agents~=0.24"}
"""The contenders, and what is installed for each."""
_CHILD = ("-P", str(Path(__file__).with_name("peer.py")))  # -P: this folder is none of its imports
_MADE = ".made"


def environment(folder: Path = FOLDER) -> Path:
    """The Python of the environment, which is made at first, and again when other versions are wanted.

    Raises:
        LeftOut: If it cannot be made.
    """
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    wanted = "\n".join(PEERS.values())
    made = folder / _MADE
    if python.exists() and made.exists() and made.read_text() == wanted:
        return python
    print(f"installing {', '.join(PEERS.values())} into {folder.name} ...", file=sys.stderr, flush=True)
    install = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-qq", *PEERS.values()]
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
        subprocess.run(install, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise LeftOut(f"{folder.name} could not be made; try: {' '.join(install)}") from None
    made.write_text(wanted)
    return python


def versions(folder: Path = FOLDER) -> dict[str, str]:
    """What is installed there of what was asked for."""
    path = [str(each) for each in folder.glob("[Ll]ib/**/site-packages")]
    packages = (wanted.partition("~=")[0] for wanted in PEERS.values())
    found = (each for package in packages for each in distributions(name=package, path=path))
    return {each.metadata["Name"]: each.version for each in found}


class Peer:
    """One library's process."""

    def __init__(self, python: Path, name: str) -> None:
        self.name = name
        self._python = str(python)
        self._child = subprocess.Popen(
            [self._python, *_CHILD, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for us; it ends with its input
        )

    def do(self, task: dict[str, Any]) -> dict[str, float]:
        """CPU milliseconds and those by the clock.

        Raises:
            LeftOut: If the process has ended.
        """
        assert self._child.stdin is not None and self._child.stdout is not None
        with suppress(BrokenPipeError):
            print(json.dumps(task), file=self._child.stdin, flush=True)
        answer = self._child.stdout.readline()
        if not answer:
            raise LeftOut(f"the process of {self.name} has ended; what it says is above.")
        spent: dict[str, float] = json.loads(answer)
        return spent

    def once(self, task: str) -> tuple[float, int]:
        """CPU milliseconds and bytes of memory of a new process."""
        return process([self._python, *_CHILD, self.name, task])

    def close(self) -> None:
        """End the process."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe:
                pipe.close()
        self._child.wait()


class Peers:
    """All of them."""

    def __init__(self, names: Sequence[str] = tuple(PEERS)) -> None:
        python = environment()
        self._all = [Peer(python, name) for name in names]

    def samplers(self, by: Literal["cpu", "wall"] = "cpu", **task: Any) -> dict[str, Sampler]:
        """What does a task in each of them; see `peer.py`. Per turn: CPU, or the clock and then CPU."""
        return {peer.name: _sampler(peer, by, task) for peer in self._all}

    def started(self, task: str, *, memory: bool) -> dict[str, Sampler]:
        """What starts a new process of each: its megabytes or its milliseconds."""
        return {peer.name: _starter(peer, task, memory) for peer in self._all}

    def close(self) -> None:
        """End their processes."""
        for peer in self._all:
            peer.close()


def _sampler(peer: Peer, by: str, task: dict[str, Any]) -> Sampler:
    turns = task["turns"] * task.get("at_once", 1)

    def sample() -> list[float]:
        spent = peer.do(task)
        return [spent["cpu"] / turns] if by == "cpu" else [spent["wall"] / turns, spent["cpu"] / turns]

    return sample


def _starter(peer: Peer, task: str, memory: bool) -> Sampler:
    def sample() -> list[float]:
        spent, held = peer.once(task)
        return [held / 1e6 if memory else spent]

    return sample
