"""What a picture is made of, before anything has a place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = ["FINISH", "START", "Box", "Kind", "Link", "Picture", "boxes_of"]

START: Final = "__start__"
FINISH: Final = "__end__"

Kind = Literal["terminal", "model", "tools", "hooks", "node", "graph"]


@dataclass(frozen=True, slots=True)
class Box:
    """One node, or the hooks of one phase together."""

    id: str
    title: str
    kind: Kind = "node"
    lines: tuple[str, ...] = ()
    """What is in it, one line each."""
    marks: tuple[str, ...] = ()
    """What is worth a second look: `gate`, `approval`, `pauses before`, ..."""
    inner: Picture | None = None
    """The sub-graph that the node is."""


@dataclass(frozen=True, slots=True)
class Link:
    """A way from one box to another."""

    source: str
    target: str
    decided: bool = False
    """Whether something is decided at the source: drawn dashed."""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes and the ways between them."""

    boxes: tuple[Box, ...]
    links: tuple[Link, ...]
    by_id: dict[str, Box] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Index the boxes."""
        self.by_id.update((box.id, box) for box in self.boxes)


def boxes_of(picture: Picture) -> list[Box]:
    """All boxes, those of sub-graphs too."""
    return [one for box in picture.boxes for one in (box, *(boxes_of(box.inner) if box.inner else ()))]
