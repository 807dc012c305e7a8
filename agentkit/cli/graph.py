"""`agentkit graph`: a picture of an agent or of any graph."""

from __future__ import annotations

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentkit.cli.screen import Mistake, note, out, write_file, write_json
from agentkit.cli.target import Target

if TYPE_CHECKING:
    from agentkit.cli.pictures.parts import Picture

__all__ = ["graph"]


class Format(StrEnum):
    """What a picture is made as."""

    ascii = "ascii"
    mermaid = "mermaid"
    svg = "svg"
    png = "png"


_BY_ENDING = {
    ".svg": Format.svg,
    ".png": Format.png,
    ".mmd": Format.mermaid,
    ".mermaid": Format.mermaid,
    ".txt": Format.ascii,
    "": Format.ascii,
}


def graph(
    target: Target,
    form: Annotated[
        Format | None, typer.Option("--format", "-f", help="Default: by the ending of --output, else ascii.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there instead of to stdout.")
    ] = None,
    flat: Annotated[bool, typer.Option("--flat", help="Leave out what is inside of sub-graphs.")] = False,
    width: Annotated[
        int | None, typer.Option(min=40, metavar="COLUMNS", help="Of the ascii picture. Default: the terminal's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write boxes and links as one JSON document.")] = False,
) -> None:
    """Draw an agent, or any LangGraph graph.

    An agent's hooks are grouped by phase; gates and calls that need approval are marked. Dashed ways are decided while
    the graph runs. Nothing is sent anywhere.
    """
    from agentkit.cli.pictures.graphs import picture_of
    from agentkit.cli.target import graph as graph_of

    form = form or (_by_ending(output) if output else Format.ascii)
    if form is Format.png and output is None and sys.stdout.isatty():
        raise Mistake("a PNG is no text for a terminal; name a file with --output agent.png")
    picture = picture_of(graph_of(target), inner=not flat)
    if as_json:
        write_json(_data(picture))
    elif output is not None:
        write_file(output, _drawn(picture, form, width or 100))
        note(f"{output}: {len(picture.boxes)} boxes as {form.value}")
    elif form is Format.ascii:
        _show(picture, width)
    elif form is Format.png:
        sys.stdout.buffer.write(_drawn(picture, form, 0))
    else:
        typer.echo(_drawn(picture, form, 0).decode(), nl=False)


def _by_ending(output: Path) -> Format:
    try:
        return _BY_ENDING[output.suffix.lower()]
    except KeyError:
        known = ", ".join(ending for ending in _BY_ENDING if ending)
        raise Mistake(f"{output}: no picture is made by that ending; there are {known}, or say --format") from None


def _drawn(picture: Picture, form: Format, width: int) -> bytes:
    if form is Format.ascii:
        from agentkit.cli.pictures.text import as_text

        return f"{as_text(picture, width).plain}\n".encode()
    if form is Format.mermaid:
        from agentkit.cli.pictures.mermaid import as_mermaid

        return as_mermaid(picture).encode()
    from agentkit.cli.pictures.vector import as_png, as_svg

    if form is Format.svg:
        return as_svg(picture).encode()
    try:
        return as_png(picture)
    except ImportError:
        raise Mistake("a PNG needs the package pillow; install it with: pip install 'agentkit[cli]'") from None


def _show(picture: Picture, width: int | None) -> None:
    from agentkit.cli.pictures.text import as_text

    console = out()
    columns = width or console.width
    text = as_text(picture, columns, plain=not _can_draw())
    console.print(text, soft_wrap=True)
    widest = max(map(len, text.plain.splitlines()), default=0)
    if console.is_terminal and widest > console.width:
        note(f"the picture is {widest} columns wide; -o agent.svg makes one that can be scrolled")


def _can_draw() -> bool:
    try:
        "┌▼┄".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _data(picture: Picture) -> dict[str, Any]:
    boxes = [
        {
            "id": box.id,
            "kind": box.kind,
            "lines": box.lines,
            "marks": box.marks,
            "inner": _data(box.inner) if box.inner else None,
        }
        for box in picture.boxes
    ]
    return {"boxes": boxes, "links": [asdict(link) for link in picture.links]}
