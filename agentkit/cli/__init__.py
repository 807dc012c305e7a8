"""The command `agentkit`: run, talk to, draw and look after agents from a terminal. Needs the extra `cli`."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]

_EXTRA = frozenset(("typer", "rich"))
_MISTAKE, _INTERRUPTED = 2, 130


def main() -> None:
    """Run the command line; what `agentkit` in a shell starts."""
    try:
        from agentkit.cli.app import app
    except ModuleNotFoundError as missing:
        if missing.name not in _EXTRA:
            raise
        print(
            f"error: the command line needs the package {missing.name}; install it with: pip install 'agentkit[cli]'",
            file=sys.stderr,
        )
        sys.exit(_MISTAKE)
    try:
        app(prog_name="agentkit")
    except SystemExit as done:
        if done.code == _INTERRUPTED:  # whoever pressed Ctrl-C does not wait for threads that a tool has left running
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_INTERRUPTED)
        raise
