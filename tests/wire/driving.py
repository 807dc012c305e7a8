"""Runs an agent through each of its entry points, all async ones on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from agentkit.testing import ENTRY_POINTS, EntryPoint, RunResult, arun, run

__all__ = ["Drive", "drive", "loop"]


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """One event loop for all tests: langchain-openai keeps one async client per base URL, bound to its loop."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@dataclass(frozen=True)
class Drive:
    """Runs an agent through one entry point."""

    entry: EntryPoint
    loop: asyncio.AbstractEventLoop

    def __call__(self, agent: Any, given: Any, config: Any = None, *, catch: bool = False) -> RunResult:
        if self.entry in ("ainvoke", "astream"):
            return self.loop.run_until_complete(arun(agent, given, config, entry=self.entry, catch=catch))
        return run(agent, given, config, entry=self.entry, catch=catch)


@pytest.fixture(params=ENTRY_POINTS)
def drive(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> Drive:
    return Drive(request.param, loop)
