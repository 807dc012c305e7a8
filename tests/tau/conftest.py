"""The retail shop's data, where it is present, and the ways into an agent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tau.record import Conversation, Task, read_conversations, read_tasks
from tests.tau.shop import Shop
from tests.wire.driving import drive, loop

__all__ = ["drive", "loop"]


@pytest.fixture(scope="session")
def folder(root: Path) -> Path:
    """The folder with the shop's rows and the records."""
    shared = Path(os.environ.get("AGENTKIT_SHARED", root.parent / "shared"))
    found = shared / "tau_retail"
    if not (found / "tasks.jsonl").is_file():
        pytest.skip(f"no retail records: {found}/tasks.jsonl is missing (AGENTKIT_SHARED names the folder above)")
    return found


@pytest.fixture(scope="session")
def tasks(folder: Path) -> list[Task]:
    return read_tasks(folder)


@pytest.fixture(scope="session")
def conversations(folder: Path) -> list[Conversation]:
    return read_conversations(folder)


@pytest.fixture(scope="session")
def policy(folder: Path) -> str:
    """The system prompt that the recorded agents were given."""
    return (folder / "policy.md").read_text()


@pytest.fixture(scope="session")
def _shop(folder: Path) -> Shop:
    return Shop(folder)


@pytest.fixture
def shop(_shop: Shop) -> Shop:
    """The shop with its rows as on disk."""
    _shop.reset()
    return _shop
