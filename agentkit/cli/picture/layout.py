"""Where everything goes: boxes one below the other, and beside them a lane for each node that is reached from afar.

All ways to one node share its lane, so a picture of thirty nodes has few lines, and none runs through a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentkit.cli.picture.model import Line, Picture

__all__ = ["Lane", "Layout", "laid_out"]


@dataclass(frozen=True, slots=True)
class Lane:
    """The way to one node from nodes that do not stand right above it."""

    target: int
    """The row that it leads to."""
    sources: tuple[tuple[int, bool], ...]
    """The rows that it comes from, each with whether that way is taken only sometimes."""
    column: int
    """From 0, the lane next to the boxes."""

    @property
    def top(self) -> float:
        """Where it begins: in its row a node is entered, half a row below it is left."""
        return min(self.target, *(row + 0.5 for row, _ in self.sources))

    @property
    def bottom(self) -> float:
        """Where it ends."""
        return max(self.target, *(row + 0.5 for row, _ in self.sources))


@dataclass(frozen=True, slots=True)
class Layout:
    """A picture with its places."""

    picture: Picture
    straight: dict[int, Line]
    """By row: the line to the node right below."""
    lanes: tuple[Lane, ...]

    @property
    def columns(self) -> int:
        """How many lanes stand side by side."""
        return 1 + max((lane.column for lane in self.lanes), default=-1)


def laid_out(picture: Picture) -> Layout:
    """Give everything its place."""
    rows = {box.name: row for row, box in enumerate(picture.boxes)}
    straight: dict[int, Line] = {}
    far: dict[int, list[tuple[int, bool]]] = {}
    for line in picture.lines:
        source, target = rows[line.source], rows[line.target]
        if target == source + 1:
            straight[source] = line
        else:
            far.setdefault(target, []).append((source, line.chosen))
    lanes: list[Lane] = []
    for target, sources in sorted(far.items(), key=lambda each: _span(*each)):
        lane = Lane(target, tuple(sorted(sources)), 0)
        taken = {other.column for other in lanes if other.top <= lane.bottom and lane.top <= other.bottom}
        lanes.append(Lane(target, lane.sources, next(c for c in range(len(lanes) + 1) if c not in taken)))
    return Layout(picture, straight, tuple(lanes))


def _span(target: int, sources: Sequence[tuple[int, bool]]) -> float:
    lane = Lane(target, tuple(sources), 0)
    return lane.bottom - lane.top  # short lanes first: they stay close to the boxes
