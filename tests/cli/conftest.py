"""The command line as a user meets it: in a folder of their own, mostly in this process, sometimes a real command."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from agentkit.cli.app import app

HERE = Path(__file__).parent

Command = Callable[..., Result]
Real = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with `shop.py`, which is the current one; what commands import is forgotten afterwards."""
    shutil.copy(HERE / "shop.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    for name in ("AGENTKIT_STORE", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    path, modules = sys.path[:], set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def agentkit(folder: Path) -> Command:
    """Run a command in this process."""

    def invoke(*args: str, input: str | None = None, **options: Any) -> Result:
        return CliRunner().invoke(app, list(args), input=input, prog_name="agentkit", **options)

    return invoke


@pytest.fixture
def real(folder: Path, root: Path) -> Real:
    """Run a command as a process of its own."""

    def invoke(
        *args: str, input: str = "", stdout: Any = subprocess.PIPE, **env: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "agentkit.cli", *args],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(root), **env},
            input=input,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    return invoke
