"""Each kind of store, open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentkit import checkpoint
from agentkit.checkpoint import Saver


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'agent.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def durable_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store that outlives a process."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'agent.db'}"


@pytest.fixture
def saver(durable_url: str) -> Iterator[Saver]:
    """An empty store; one in memory is SQLite's, without a file."""
    with checkpoint.open(durable_url) as opened:
        yield opened
