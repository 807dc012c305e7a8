"""`agentkit graph`: a picture of a graph or an agent, drawn offline."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agentkit.cli.screen import Mistake
from agentkit.cli.target import Target, load

__all__ = ["graph"]


class Format(StrEnum):
    """What kind of picture."""

    ascii = "ascii"
    mermaid = "mermaid"
    svg = "svg"
    png = "png"


_ENDINGS = {".svg": Format.svg, ".png": Format.png, ".mmd": Format.mermaid, ".mermaid": Format.mermaid}


def graph(
    target: Target,
    form: Annotated[
        Format | None, typer.Option("--format", help="What kind. Default: by the ending of --output, else ascii.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there.")] = None,
) -> None:
    """Draw an agent or any LangGraph graph, offline. Hooks stand by phase; gates and what asks a person are marked."""
    from agentkit.cli.picture.layout import laid_out
    from agentkit.cli.picture.mermaid import as_mermaid
    from agentkit.cli.picture.model import picture_of
    from agentkit.cli.picture.scene import scene_of
    from agentkit.cli.picture.svg import as_svg
    from agentkit.cli.picture.text import as_text
    from agentkit.errors import NoGraph

    kind = form or (_ENDINGS.get(output.suffix, Format.ascii) if output is not None else Format.ascii)
    try:
        picture = picture_of(load(target))
    except NoGraph as error:
        raise Mistake(str(error)) from error
    if kind is Format.png:
        try:
            from agentkit.cli.picture.png import as_png  # Pillow is slow to import
        except ModuleNotFoundError as missing:
            raise Mistake(
                f"a PNG needs the package {missing.name}: pip install 'agentkit[cli]'; or draw --format svg"
            ) from None
        _write(as_png(scene_of(laid_out(picture))), output)
    elif kind is Format.svg:
        _write(as_svg(scene_of(laid_out(picture))).encode(), output)
    elif kind is Format.mermaid:
        _write(as_mermaid(picture).encode(), output)
    else:
        plain = output is None and (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        _write(as_text(laid_out(picture), ascii_only=plain).encode(), output)


def _write(data: bytes, output: Path | None) -> None:
    if output is not None:
        output.write_bytes(data)
    elif data.startswith(b"\x89PNG"):
        if sys.stdout.isatty():
            raise Mistake("a PNG is not for the terminal; name a file: --output graph.png")
        sys.stdout.buffer.write(data)
    else:
        sys.stdout.write(data.decode())
