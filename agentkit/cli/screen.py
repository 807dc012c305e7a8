"""What every command shares of the screen: consoles, errors in one line, exit codes, JSON.

What a command is asked for goes to stdout, and everything about it (progress, reasons, errors) to stderr, so that a
pipe gets the first alone. Rich leaves colours out by itself where NO_COLOR is set or nobody looks at a terminal.
"""

from __future__ import annotations

import io
import json
import re
import sys
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

__all__ = [
    "Code",
    "Failed",
    "Mistake",
    "Stop",
    "complain",
    "err",
    "forgiving",
    "note",
    "one_line",
    "out",
    "printable",
    "write_file",
    "write_json",
]


# What moves the cursor, changes colours or turns the direction of reading; line breaks, tabs and joined emoji stay.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Code(IntEnum):
    """How a command ends."""

    fine = 0
    findings = 1
    """Something was found, or a run failed."""
    mistake = 2
    """The user asked for something that cannot be."""
    interrupted = 130


class Stop(Exception):
    """Ends a command: shown as one line without a traceback, then the process ends with `code`."""

    code = Code.findings


class Mistake(Stop):
    """The user asked for something that cannot be; the message says what is wrong and how to mend it."""

    code = Code.mistake


class Failed(Stop):
    """The work failed; raised from the exception that it failed with."""


def out() -> Console:
    """The console of stdout, at this moment's size."""
    return Console(highlight=False)


def err() -> Console:
    """The console of stderr; lines are not broken, so that they can be searched."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def note(text: str, style: str = "dim") -> None:
    """Say something about the work, on stderr."""
    err().print(Text(printable(text), style=style))


def complain(problem: str) -> None:
    """Show an error in one line on stderr."""
    err().print(Text.assemble(("error: ", "bold red"), printable(problem)))


def printable(text: str) -> str:
    """Text of others (models, tools, users) for a terminal, which obeys none of it: controls are written out."""
    return _CONTROLS.sub(lambda control: control[0].encode("unicode_escape").decode(), text)


def one_line(error: BaseException) -> str:
    """An exception as one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:600]}" if text else type(error).__name__


def write_json(value: Any) -> None:
    """Write one JSON document to stdout, as one line if it is piped; what JSON cannot hold becomes text."""
    from pydantic import TypeAdapter

    indent = 2 if sys.stdout.isatty() else None
    plain = TypeAdapter(Any).dump_python(value, mode="json", fallback=str)
    sys.stdout.write(json.dumps(plain, indent=indent, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def write_file(path: Path, data: bytes) -> None:
    """Write what an option names a file for.

    Raises:
        Mistake: If it cannot be written there.
    """
    try:
        path.write_bytes(data)
    except OSError as error:
        raise Mistake(f"{path} cannot be written: {error.strerror or error}") from None


def forgiving() -> None:
    """Let stdin and stdout replace what their encoding cannot hold, rather than fail half-way."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
