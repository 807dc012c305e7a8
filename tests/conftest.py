"""What every test relies on: the right agentkit, no network keys, no tracing."""

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _without_links() -> None:
    """Import the installed agentkit where the checkout holds only half of it.

    In an unpacked sdist, or a checkout whose symlinks became text files, ROOT/agentkit lacks `middleware` and `tools`
    and would shadow the installed package. ROOT comes back afterwards, since tests import `examples` from it.
    """
    if (ROOT / "agentkit" / "middleware").is_dir():
        return
    kept = sys.path[:]
    sys.path[:] = [entry for entry in kept if Path(entry or os.curdir).resolve() != ROOT]
    import agentkit  # noqa: F401  (the import is the point: it fills sys.modules)

    sys.path[:] = kept


def _heed_ctrl_c() -> None:
    """Undo an ignored SIGINT, which a shell gives to what it starts in the background and which children inherit."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_without_links()
_heed_ctrl_c()
for _name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING_V2"):
    os.environ[_name] = "false"  # before LangChain reads them: a developer's own tracing must not record the tests
for _name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
    os.environ.pop(_name, None)  # a test that would call a real provider fails at once


def pytest_report_header() -> str:
    """Say which agentkit is tested: the checkout's or an installed one's."""
    import agentkit

    return f"agentkit under test: {agentkit.__file__}"


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder that holds pyproject.toml."""
    return ROOT


class FakeClock:
    """Time that passes only where agentkit waits."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.waits: list[float] = []

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """agentkit's clock, replaced by one that only its own waits move."""
    fake = FakeClock()
    monkeypatch.setattr("agentkit.clock.monotonic", fake.read)
    monkeypatch.setattr("agentkit.clock.wall", fake.read)
    monkeypatch.setattr("agentkit.clock.sleep", fake.sleep)
    monkeypatch.setattr("agentkit.clock.asleep", fake.asleep)
    return fake
