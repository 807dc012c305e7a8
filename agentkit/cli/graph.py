"""`agentkit graph`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agentkit.cli.loading import graph_at
from agentkit.cli.picture.layout import laid_out
from agentkit.cli.picture.mermaid import as_mermaid
from agentkit.cli.picture.model import picture_of
from agentkit.cli.picture.png import as_png
from agentkit.cli.picture.scene import scene_of
from agentkit.cli.picture.svg import as_svg
from agentkit.cli.picture.text import as_text
from agentkit.errors import ConfigurationError

__all__ = ["graph"]


class Format(StrEnum):
    """What kind of picture."""

    ascii = "ascii"
    mermaid = "mermaid"
    svg = "svg"
    png = "png"


def graph(
    target: Annotated[str, typer.Argument(metavar="MODULE:AGENT", help="An agent, or any LangGraph graph.")],
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="What kind. Default: by the ending of --output, else ascii."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there.")] = None,
) -> None:
    """Draw a graph or an agent, offline. Hooks stand by phase; gates and what asks a person are marked."""
    kind = format_ or _by_ending(output)
    picture = picture_of(graph_at(target))
    if kind is Format.mermaid:
        _write(as_mermaid(picture), output)
    elif kind is Format.svg:
        _write(as_svg(scene_of(laid_out(picture))), output)
    elif kind is Format.png:
        _write_bytes(as_png(scene_of(laid_out(picture))), output)
    else:
        plain = output is None and (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        _write(as_text(laid_out(picture), ascii_only=plain), output)


def _by_ending(output: Path | None) -> Format:
    ending = output.suffix.removeprefix(".") if output is not None else ""
    known = {"svg": Format.svg, "png": Format.png, "mmd": Format.mermaid, "mermaid": Format.mermaid}
    return known.get(ending, Format.ascii)


def _write(text: str, output: Path | None) -> None:
    if output is not None:
        output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


def _write_bytes(data: bytes, output: Path | None) -> None:
    if output is not None:
        output.write_bytes(data)
    elif sys.stdout.isatty():
        raise ConfigurationError("a PNG is not for the terminal; name a file: --output graph.png")
    else:
        sys.stdout.buffer.write(data)
