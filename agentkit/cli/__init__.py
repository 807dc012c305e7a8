"""The command `agentkit`: run, talk to, draw and look after agents from a terminal. Needs the extra `cli`."""

from __future__ import annotations

import sys

__all__ = ["main"]

_EXTRA = frozenset(("typer", "rich"))
_MISTAKE = 2


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
    app(prog_name="agentkit")
