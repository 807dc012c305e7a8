"""The command as people run it: a process of its own, with files, pipes and a terminal."""

import os
import re
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from llmock.scenarios import Fail, Reply, ToolCall
from llmock.testing import LLMockServer
from rich.cells import cell_len

COMMAND = [sys.executable, "-m", "examples.order_assistant"]
LIMIT = 60  # seconds until a hanging command is given up


@pytest.fixture
def environment(root: Path, tmp_path: Path) -> dict[str, str]:
    """No key of the developer's, no colour forced, and the data directory in a place of the test's."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "FORCE_COLOR", "NO_COLOR", "TTY_", "COLUMNS", "LINES"))
    }
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    return {**kept, "ORDER_ASSISTANT_HOME": str(tmp_path / "home"), "PYTHONPATH": path, "PYTHONUTF8": "1"}


def _run(environment: dict[str, str], *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=typed,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )


def _refunds(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT order_number, minor FROM refunds WHERE idempotency_key NOT LIKE 'seed:%' ORDER BY id"
        ).fetchall()


def test_help_tells_a_newcomer_what_it_is_and_what_to_say(environment: dict[str, str]) -> None:
    done = _run(environment, "--help")
    assert done.returncode == 0
    for part in (
        "order assistant",
        "no key and no network",
        "Where is my latest order?",
        "--customer",
        "--db",
        "--model",
    ):
        assert part in " ".join(done.stdout.split())
    assert all(cell_len(line) <= 80 for line in done.stdout.splitlines())


def test_the_script_plays_both_languages(environment: dict[str, str], tmp_path: Path) -> None:
    db = tmp_path / "shop.db"
    done = _run(environment, "--script", "--db", str(db))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert all(cell_len(line) <= 80 for line in done.stdout.splitlines())
    shown = "".join(done.stdout.split())
    for part in (
        "rules and templates, not a language model",
        "✓ done track_order(order_number=ORD-22301)",
        "✓ done get_reviews(product=Nimbus Earbuds)",
        "✗ failed get_order(order_number=ORD-22327): order_not_found",
        "I can't find order ORD-22327 among your orders",
        "I have refunded $65.00 for order ORD-22080",
        "不是语言模型",
        "在您的订单中没有找到 ORD-22301",
        "已为订单 ORD-22171 退款 ¥1,037.00",
    ):
        assert "".join(part.split()) in shown, part
    assert _refunds(db) == [("ORD-22080", 6500), ("ORD-22171", 103700)]


def test_the_script_leaves_the_default_database_alone(environment: dict[str, str]) -> None:
    done = _run(environment, "--script", "--lang", "zh")
    assert done.returncode == 0
    assert "Assistant" not in done.stdout
    assert not Path(environment["ORDER_ASSISTANT_HOME"]).exists()


def test_a_piped_talk_is_continued_by_the_next_command(environment: dict[str, str]) -> None:
    first = _run(environment, typed="refund order 22080\n")
    assert first.returncode == 0
    assert "You > refund order 22080\n" in first.stdout
    assert "Shall I refund $129.00" in first.stdout
    second = _run(environment, typed="yes\n")
    assert second.returncode == 0
    assert "Continuing where you left off (1 questions so far)" in " ".join(second.stdout.split())
    assert "? waiting refund_order(order_number=ORD-22080" in second.stdout
    assert _refunds(Path(environment["ORDER_ASSISTANT_HOME"]) / "shop.db") == []
    third = _run(environment, typed="y\n/new\nyes\n/nonsense\n/quit\nnever read\n")
    assert (third.returncode, third.stderr) == (0, "")
    shown = " ".join(third.stdout.split())
    assert "The shop has to consent: y approves, n refuses, anything else drops it. Shop staff > y" in shown
    assert shown.index("I have refunded $129.00") < shown.index("Nothing is waiting for your confirmation")
    assert "There is no command /nonsense" in shown
    assert "never read" not in shown
    assert _refunds(Path(environment["ORDER_ASSISTANT_HOME"]) / "shop.db") == [("ORD-22080", 12900)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--customer", "Bob"), "error: there is no customer 'Bob'; try C-1001 (Emma Clarke)"),
        (("--db", "."), "as the shop's database: unable to open database file; name another file with --db PATH"),
        (("--model", "nobody:knows"), "error: cannot use model 'nobody:knows': "),
        (("--script", "--customer", "C-1001"), "error: --script plays its own customers; leave --customer out"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    environment: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    done = _run(environment, *arguments, typed="hello\n")
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_model_behind_http_may_fail_once_and_then_calls_tools_and_answers(environment: dict[str, str]) -> None:
    with LLMockServer() as server:
        for behaviour in (Fail(401), Reply(tool_calls=(ToolCall("get_latest_order"),)), Reply(text="On its way.")):
            server.state.scenarios.add(behaviour)
        env = {**environment, "OPENAI_BASE_URL": server.base_url("openai"), "OPENAI_MODEL": "house-model"}
        done = _run(env, typed="where is it?\nand now?\n")
    assert "Model: house-model" in done.stdout
    assert re.search(r"You > where is it\?\nThe assistant could not answer: .*401", done.stdout)
    assert "You > and now?\n✓ done get_latest_order()\nAssistant > On its way.\n" in done.stdout
    assert (done.returncode, done.stderr) == (1, "")


# ---- on a terminal ---------------------------------------------------------------------------------------------------


class Terminal:
    """The command on a pseudo-terminal of 80 columns."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self.screen, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=child,
            stdout=child,
            stderr=child,
            env={**environment, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(child)
        self.shown = ""

    def until(self, text: str) -> str:
        """Read until the screen shows `text`."""
        end = time.monotonic() + LIMIT
        while text not in self.plain:
            assert time.monotonic() < end, f"never saw {text!r} in:\n{self.shown}"
            if not self._read():
                break
        assert text in self.plain
        return self.plain

    def type(self, text: str) -> None:
        os.write(self.screen, text.encode())

    def interrupt_prompt(self) -> None:
        """Press Ctrl-C until it is heard: Python misses one that comes between a prompt and its wait for a key."""
        while self.process.poll() is None and not select.select([self.screen], [], [], 2)[0]:
            self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        while self._read():
            pass
        return self.process.wait(LIMIT)

    @property
    def plain(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.shown)

    def _read(self) -> bool:
        if not select.select([self.screen], [], [], LIMIT)[0]:
            return False
        try:
            piece = os.read(self.screen, 65536)
        except OSError:  # Linux: the other side is closed
            return False
        self.shown += piece.decode("utf-8", "replace")
        return bool(piece)


@pytest.fixture
def terminal(environment: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def begin(**more: str) -> Terminal:
        opened.append(Terminal({**environment, **more}))
        return opened[-1]

    yield begin
    for each in opened:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()
        os.close(each.screen)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty module")
def test_ctrl_c_at_the_prompt_leaves_cleanly(terminal: Callable[..., Terminal]) -> None:
    talk = terminal(NO_COLOR="1")
    talk.until("You > ")
    talk.type("Where is my latest order?\n")
    shown = talk.until("It should arrive by")
    assert "✓ done track_order(order_number=ORD-22301)" in shown
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", talk.shown)
    talk.until("18 March 2026.\r\n\r\nYou > ")
    talk.process.send_signal(signal.SIGINT)
    talk.interrupt_prompt()
    assert talk.end() == 0
    assert "come back with --customer C-1001 --thread main" in talk.plain
    assert "Traceback" not in talk.plain


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty module")
def test_ctrl_c_leaves_a_model_that_never_answers_and_the_next_start_finishes(
    terminal: Callable[..., Terminal], environment: dict[str, str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(LIMIT)
        talk = terminal(OPENAI_BASE_URL=f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        talk.until("You > ")
        talk.type("Where is my latest order?\n")
        request, _ = silent.accept()
        with request:
            request.recv(1)
            talk.process.send_signal(signal.SIGINT)
            assert talk.end() == 130
    assert "Traceback" not in talk.plain
    again = _run(environment)
    assert "The last answer was cut off; finishing it now." in again.stdout
    assert "Order ORD-22301 went out with" in again.stdout
