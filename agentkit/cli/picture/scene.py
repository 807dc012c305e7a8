"""A picture as shapes with places and colours, for whatever draws it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from agentkit.cli.picture.layout import Layout

__all__ = ["Area", "Arrow", "Scene", "Words", "scene_of"]

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle with round corners; lengths in pixels."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    edge: str
    round: float = 8


@dataclass(frozen=True, slots=True)
class Words:
    """A line of text that begins at a point, its height in the middle."""

    x: float
    y: float
    text: str
    size: int = 14
    colour: str = "#111827"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A way along some points, with a head at the last one unless another arrow goes on."""

    points: tuple[Point, ...]
    dashed: bool = False
    head: bool = True


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything there is to draw."""

    title: str
    width: float
    height: float
    areas: tuple[Area, ...]
    arrows: tuple[Arrow, ...]
    words: tuple[Words, ...]


_ROW: Final = 58
_BOX: Final = 34
_TOP: Final = 20
_LANE: Final = 22
_LETTER: Final = 8.2  # of a letter at size 14, on the wide side, so that no text leaves its box
_BAND: Final = 118
_FILLS: Final = {
    "end": ("#374151", "#374151"),
    "hook": ("#ffffff", "#6b7280"),
    "node": ("#ffffff", "#6b7280"),
    "gate": ("#fde8c8", "#b45309"),
    "pause": ("#fbd5d5", "#b91c1c"),
    "model": ("#dbe7fd", "#1d4ed8"),
    "tools": ("#d8f3e3", "#047857"),
    "graph": ("#ece6fb", "#6d28d9"),
}


def scene_of(layout: Layout) -> Scene:
    """Give everything its place, in pixels."""
    boxes = layout.picture.boxes
    left = 20 + (_BAND if any(box.group for box in boxes) else 0)
    widths = [28 + _LETTER * max(len(box.label), 0.86 * len(box.note)) for box in boxes]
    lanes = left + max(widths) + 24
    width = lanes + _LANE * layout.columns + 20
    height = 2 * _TOP + _ROW * len(boxes)
    areas, words = _bands(layout, width)
    for row, box in enumerate(boxes):
        y = _y(row)
        fill, edge = _FILLS[box.kind]
        areas.append(Area(left, y - _BOX / 2, widths[row], _BOX, fill, edge))
        colour = "#ffffff" if box.kind == "end" else "#111827"
        words.append(Words(left + 12, y - (7 if box.note else 0), box.label, 14, colour))
        if box.note:
            words.append(Words(left + 12, y + 9, box.note, 11, "#4b5563"))
    arrows = [*_straight(layout, left), *_far(layout, left, widths, lanes)]
    return Scene(layout.picture.title, width, height, tuple(areas), tuple(arrows), tuple(words))


def _y(row: float) -> float:
    return _TOP + _ROW * (row + 0.5)


def _bands(layout: Layout, width: float) -> tuple[list[Area], list[Words]]:
    """A band behind the boxes of each phase, with its name."""
    areas: list[Area] = []
    words: list[Words] = []
    first = 0
    boxes = layout.picture.boxes
    for row in range(1, len(boxes) + 1):
        if row == len(boxes) or boxes[row].group != boxes[first].group:
            if boxes[first].group:
                top, bottom = _y(first - 0.5) + 3, _y(row - 0.5) - 3
                areas.append(Area(10, top, width - 20, bottom - top, "#f3f4f6", "#f3f4f6", 10))
                words.append(Words(20, top + 18, boxes[first].group, 13, "#6b7280"))
            first = row
    return areas, words


def _straight(layout: Layout, left: float) -> list[Arrow]:
    x = left + 24
    return [
        Arrow(((x, _y(row) + _BOX / 2), (x, _y(row + 1) - _BOX / 2)), dashed=line.chosen)
        for row, line in layout.straight.items()
    ]


def _far(layout: Layout, left: float, widths: list[float], lanes: float) -> list[Arrow]:
    arrows = []
    for lane in layout.lanes:
        x = lanes + _LANE * lane.column
        enter = _y(lane.target) - 5
        for row, chosen in lane.sources:
            leave = _y(row) + 8
            way = ((left + widths[row], leave), (x, leave), (x, enter), (left + widths[lane.target], enter))
            arrows.append(Arrow(way, dashed=chosen))
    return arrows
