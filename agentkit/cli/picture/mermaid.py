"""A picture as Mermaid, which code hosts and documentation draw themselves."""

from __future__ import annotations

from typing import Final

from agentkit.cli.picture.model import Box, Picture

__all__ = ["as_mermaid"]

_SHAPES: Final = {"end": ("([", "])"), "gate": ("{{", "}}"), "pause": ("[/", "/]"), "graph": ("[[", "]]")}
_COLOURS: Final = {
    "gate": "fill:#fde8c8,stroke:#b45309",
    "pause": "fill:#fbd5d5,stroke:#b91c1c",
    "model": "fill:#dbe7fd,stroke:#1d4ed8",
    "tools": "fill:#d8f3e3,stroke:#047857",
}


def as_mermaid(picture: Picture) -> str:
    """Write a picture as a Mermaid flow chart."""
    ids = {box.name: f"n{number}" for number, box in enumerate(picture.boxes)}
    lines = ["flowchart TD"]
    group = ""
    for box in picture.boxes:
        if box.group != group:
            lines += ["  end"] if group else []
            lines += [f'  subgraph "{box.group}"'] if box.group else []
            group = box.group
        lines.append(f"  {'  ' if group else ''}{ids[box.name]}{_shape(box)}")
    lines += ["  end"] if group else []
    for line in picture.lines:
        lines.append(
            f"  {ids[line.source]} {'-.->' if line.chosen else '==>' if line.joined else '-->'} {ids[line.target]}"
        )
    for kind, colour in _COLOURS.items():
        members = [ids[box.name] for box in picture.boxes if box.kind == kind]
        lines += [f"  classDef {kind} {colour}", f"  class {','.join(members)} {kind}"] if members else []
    return "\n".join(lines) + "\n"


def _shape(box: Box) -> str:
    opening, closing = _SHAPES.get(box.kind, ("[", "]"))
    text = box.label.replace('"', "#quot;")
    return f'{opening}"{text}{f"<br>{box.note}" if box.note else ""}"{closing}'
