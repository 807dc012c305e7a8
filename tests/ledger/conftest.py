"""What the ledger's tests share: databases of both kinds, and processes that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentkit.ledger import Ledger

Processes = Callable[..., list[dict[str, Any]]]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a fresh database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger(url) as opened:
        yield opened


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    """Runs orders in processes of their own, all at once; see `killed.py`."""
    script = Path(__file__).with_name("killed.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        asks, tells = server.stdin, server.stdout

        def run(*orders: dict[str, Any]) -> list[dict[str, Any]]:
            asks.write(json.dumps(orders) + "\n")
            asks.flush()
            said: list[dict[str, Any]] = json.loads(tells.readline())
            return said

        yield run
        asks.close()
