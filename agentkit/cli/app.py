"""The command `agentkit`: the table of its commands, and how a mistake is told."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Final

from agentkit.errors import AgentkitError

__all__ = ["COMMANDS", "main"]

COMMANDS: Final[dict[str, str]] = {
    "chat": "Talk to an agent in the terminal.",
    "run": "Run an agent once.",
    "check": "Look for what is wrong in a graph or an agent, without running it.",
    "graph": "Draw a graph or an agent: text, Mermaid, SVG or PNG.",
    "plan": "Show the plan of an agent: its stops, and where each may lead.",
    "threads": "List, show, fork and prune threads.",
    "trace": "Show what a run did.",
}
"""The commands with what they do. `NAME` is the function, or the typer app, `NAME` of the module `agentkit.cli.NAME`;
one whose module is not there is not offered."""

MISTAKE: Final = 2
"""The exit status of a mistake of the caller's."""
_MISSING: Final = "error: this command needs the extra `cli`: pip install 'agentkit[cli]'"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        import typer
    except ImportError:
        print(_MISSING, file=sys.stderr)
        raise SystemExit(MISTAKE) from None
    app = typer.Typer(
        name="agentkit", help="Check, draw and run agents.", no_args_is_help=True, pretty_exceptions_enable=False
    )
    app.callback()(_nothing)
    called = next((argument for argument in given if not argument.startswith("-")), None)
    for name, help_ in COMMANDS.items():
        if find_spec(f"agentkit.cli.{name}") is not None:
            _add(typer, app, name, help_, load=name == called)
    try:
        app(given, prog_name="agentkit")
    except AgentkitError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(MISTAKE) from None


def _nothing() -> None:
    """Check, draw and run agents."""


def _add(typer: Any, app: Any, name: str, help_: str, *, load: bool) -> None:
    """Add a command; of those that are not called only the line in the list."""
    found: Callable[..., Any] = _nothing
    if load:
        try:
            found = getattr(importlib.import_module(f"agentkit.cli.{name}"), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "agentkit":
                raise
            print(f"{_MISSING} (there is no {error.name})", file=sys.stderr)
            raise SystemExit(MISTAKE) from None
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name, help=help_)
    else:
        app.command(name, help=None if load else help_, short_help=help_)(found)
