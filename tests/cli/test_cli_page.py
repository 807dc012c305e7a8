"""The screens of docs/guide/cli.md are what the commands above them print.

`AGENTKIT_WRITE_SCREENS=1 python -m pytest tests/cli/test_cli_page.py` writes them anew; read the difference.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Command

_BLOCK = re.compile(r"```console\n(\$ .*?)```", re.DOTALL)
_PASSING = [  # what differs from run to run: times, ids, sizes
    (r"\d{4}-\d\d-\d\d \d\d:\d\d", "2026-01-01 12:00"),
    (r"\d\d:\d\d:\d\d", "12:00:00"),
    (r"…[0-9a-f]{8}", "…00000000"),
    (r"\b\d+(\.\d)? k?B", "1 kB"),
    (r" +$", ""),
]


def test_the_screens_are_what_the_commands_print(
    agentkit: Command, folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = root / "docs" / "guide" / "cli.md"
    text = page.read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    folder.joinpath("shop.py").write_text(code[1])

    def played(block: re.Match[str]) -> str:
        commands = [line for line in block[1].splitlines() if line.startswith("$ ")]
        return "```console\n" + "".join(f"{command}\n{_output(agentkit, command)}" for command in commands) + "```"

    printed = _BLOCK.sub(played, text)
    if os.environ.get("AGENTKIT_WRITE_SCREENS"):
        page.write_text(printed)
    assert _without_passing(text) == _without_passing(printed)
    assert max(len(line) for block in _BLOCK.findall(printed) for line in _screen(block)) <= 80


def _output(agentkit: Command, command: str) -> str:
    piped, _, words = command.removeprefix("$ ").rpartition(" | ")
    typed = shlex.split(piped)[1].encode().decode("unicode_escape") if piped else None
    done = agentkit(*shlex.split(words)[1:], input=typed)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return "".join(f"{line.rstrip()}\n" for line in done.output.splitlines())


def _screen(block: str) -> list[str]:
    """The lines of a block that must fit; notes and errors are one line each, however long."""
    return [line for line in block.splitlines() if line.startswith(("│", "┌", "└", "┃", "  ", "thread", "step"))]


def _without_passing(text: str) -> str:
    for pattern, stands in _PASSING:
        text = re.sub(pattern, stands, text, flags=re.MULTILINE)
    return text
