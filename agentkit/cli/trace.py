"""`agentkit trace FILE`: a recorded run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentkit.cli.screen import Mistake, printable, write_file

__all__ = ["trace"]


def trace(
    file: Annotated[Path, typer.Argument(help="Spans, one JSON object per line, as FileExporter writes them.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to. Default of a page: FILE with .html.")
    ] = None,
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

        drawn = "".join(f"{printable(line)}\n" for root in roots(spans) for line in tree(root))
        if output is None:
            typer.echo(drawn, nl=False)
        else:
            write_file(output, drawn.encode())
        return
    target = output or file.with_suffix(".html")
    write_file(target, page(spans, file.name).encode())
    typer.echo(target)
