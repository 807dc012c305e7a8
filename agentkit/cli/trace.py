"""`agentkit trace FILE`: a recorded run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentkit.cli.screen import Mistake

__all__ = ["trace"]


def trace(
    file: Annotated[Path, typer.Argument(help="Spans, one JSON object per line, as FileExporter writes them.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The page. Default: FILE with .html.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Print a tree instead of writing a page.")] = False,
) -> None:
    """Draw a recorded run as one self-contained HTML page."""
    from agentkit.errors import UnreadableTrace
    from agentkit.telemetry.records import read, roots
    from agentkit.telemetry.waterfall import page

    try:
        spans = read(file)
    except UnreadableTrace as error:
        raise Mistake(str(error)) from None
    if text:
        from agentkit.telemetry.tree import tree

        for root in roots(spans):
            typer.echo("\n".join(tree(root)))
        return
    target = output or file.with_suffix(".html")
    try:
        target.write_text(page(spans, file.name), encoding="utf-8")
    except OSError as error:
        raise Mistake(f"{target} cannot be written: {error.strerror}") from None
    typer.echo(target)
