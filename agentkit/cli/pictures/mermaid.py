"""A picture as Mermaid text, for pages that draw it themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from agentkit.cli.pictures.parts import Box, Picture, boxes_of

__all__ = ["as_mermaid"]

_CLASSES: Final = {
    "model": "fill:#dcfce7,stroke:#16a34a",
    "tools": "fill:#e0f2fe,stroke:#0284c7",
    "hooks": "fill:#f3e8ff,stroke:#9333ea",
}
_CODES: Final = {'"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;"}


def as_mermaid(picture: Picture) -> str:
    """The picture as a Mermaid flowchart."""
    names = {id(box): f"n{number}" for number, box in enumerate(boxes_of(picture))}
    lines = ["flowchart TD", *_body(picture, names, "    ")]
    for kind, look in _CLASSES.items():
        if members := [names[id(box)] for box in boxes_of(picture) if box.kind == kind]:
            lines += [f"    classDef {kind} {look},color:#1f2937", f"    class {','.join(members)} {kind}"]
    return "\n".join(lines) + "\n"


def _body(picture: Picture, names: Mapping[int, str], indent: str) -> Iterator[str]:
    for box in picture.boxes:
        name = names[id(box)]
        if box.inner:
            yield f'{indent}subgraph {name}["{_text(" · ".join((box.title, *box.marks)))}"]'
            yield from _body(box.inner, names, indent + "    ")
            yield f"{indent}end"
        elif box.kind == "terminal":
            yield f'{indent}{name}(["{_text(box.title)}"])'
        else:
            yield f'{indent}{name}["{_label(box)}"]'
    for link in picture.links:
        source, target = (names[id(picture.by_id[end])] for end in (link.source, link.target))
        label = f'|"{_text(link.label)}"|' if link.label else ""
        yield f"{indent}{source} {'-.->' if link.decided else '-->'}{label} {target}"


def _label(box: Box) -> str:
    head = f"<b>{_text(' · '.join((box.title, *box.marks)))}</b>"
    return "<br/>".join((head, *map(_text, box.lines)))


def _text(text: str) -> str:
    return "".join(_CODES.get(character, character) for character in text)
