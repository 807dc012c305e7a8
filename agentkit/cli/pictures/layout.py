"""A layered layout: what leads on is drawn below, ways between layers run on tracks of their own.

Units are the drawer's: characters or pixels. Ways from one box to several share a line, and so do ways to one box; ways
that lead back are laid out as if they led on, and get their arrow at the upper end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from agentkit.cli.pictures.ordering import arranged, layered, leading_back, placed
from agentkit.cli.pictures.parts import Box, Link, Picture

__all__ = ["Arrow", "Layout", "Line", "Measures", "Placed", "lay_out"]

Net: TypeAlias = tuple[str, str, bool]
"""Ways that share a line: from (`s`), to (`t`) or back to (`b`) a box, solid or dashed."""
Item: TypeAlias = tuple[str, Net | None, int]
"""A box (its id, None, 0), or the place where a net passes a layer ("", the net, the layer)."""

_FULL = 0.85  # of a layer's width may be taken by boxes; the rest is for lines that pass


@dataclass(frozen=True, slots=True)
class Measures:
    """The drawer's sizes."""

    box: Callable[[Box, tuple[float, float]], tuple[float, float]]
    """Width and height of a box, given those of what is laid out inside of it."""
    label: Callable[[str], float]
    """Width of a label beside an arrow."""
    gap: float
    """Between two boxes side by side."""
    port: float
    """Between two lines at one side of a box."""
    track: float
    """Between two lines that run side by side."""
    room: float
    """For an arrow."""
    inside: tuple[float, float]
    """Where the inner layout begins in its box, from the upper left."""
    whole: bool = False
    """Whether only whole numbers are places."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A box with its place; `x` and `y` are its upper left."""

    box: Box
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Line:
    """A straight piece of a way, horizontal or vertical."""

    x1: float
    y1: float
    x2: float
    y2: float
    net: object
    dashed: bool


@dataclass(frozen=True, slots=True)
class Arrow:
    """The end of a way at a box: its tip."""

    x: float
    y: float
    up: bool
    net: object
    dashed: bool
    label: str = ""


@dataclass(slots=True)
class Layout:
    """Everything with its place; drawn outer boxes first."""

    boxes: list[Placed] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    width: float = 0
    height: float = 0

    def take(self, inner: Layout, dx: float, dy: float, name: str) -> None:
        """Put another layout in, moved."""
        for one in inner.boxes:
            self.boxes.append(Placed(one.box, one.x + dx, one.y + dy, one.width, one.height))
        for line in inner.lines:
            ends = (line.x1 + dx, line.y1 + dy, line.x2 + dx, line.y2 + dy)
            self.lines.append(Line(*ends, (name, line.net), line.dashed))
        for arrow in inner.arrows:
            place = (arrow.x + dx, arrow.y + dy)
            self.arrows.append(Arrow(*place, arrow.up, (name, arrow.net), arrow.dashed, arrow.label))


def lay_out(picture: Picture, measures: Measures, limit: float) -> Layout:
    """Give everything its place.

    Args:
        picture: What is drawn.
        measures: The drawer's sizes.
        limit: The width that layers are kept to, if their boxes can be.
    """
    return _Layouter(picture, measures, limit).run()


class _Layouter:
    def __init__(self, picture: Picture, measures: Measures, limit: float) -> None:
        self.picture, self.m, self.limit = picture, measures, limit
        self.inner = {
            box.id: lay_out(box.inner, measures, limit - 2 * measures.inside[0]) for box in picture.boxes if box.inner
        }
        self.nets: dict[Net, list[tuple[Item, Item]]] = defaultdict(list)
        """Each net's pieces, from one layer to the next."""
        self.sides: dict[tuple[str, bool], set[Net]] = defaultdict(set)
        """The nets that meet a box below (True) and above."""
        self.labels: dict[tuple[Net, str], str] = {}

    def run(self) -> Layout:
        ids = [box.id for box in self.picture.boxes]
        forward = [(link.source, link.target) for link in self.picture.links]
        back = leading_back(ids, forward)
        nets = self._assigned(back)
        sizes = {box.id: self._size(box) for box in self.picture.boxes}
        widths = {id: width for id, (width, _) in sizes.items()}
        layer_of = layered(ids, forward, back, widths, self.m.gap, self.limit * _FULL)
        self._weave(nets, layer_of)
        layers = self._layers(layer_of)
        pieces = [piece for net in self.nets.values() for piece in net]
        layers = arranged(layers, pieces)
        room = {item: self._width(item, sizes) for layer in layers for item in layer}
        centers = placed(layers, pieces, room, self.m.gap, whole=self.m.whole)
        return self._drawn(layers, centers, sizes)

    def _size(self, box: Box) -> tuple[float, float]:
        inner = self.inner.get(box.id)
        width, height = self.m.box(box, (inner.width, inner.height) if inner else (0, 0))
        for below in (True, False):
            lines = len(self.sides[box.id, below])
            width = max(width, (lines - 1) * self._spacing(box.id, below) + self.m.port)
        return (width + (width + 1) % 2 if self.m.whole else width), height  # odd, so that each has a middle

    def _spacing(self, id: str, below: bool) -> float:
        """How far apart lines meet a box: a label must fit between two."""
        labels = [self.labels.get((net, id), "") for net in self.sides[id, below]]
        widest = max((self.m.label(label) for label in labels if label), default=0)
        return max(self.m.port, widest + self.m.port)

    def _width(self, item: Item, sizes: Mapping[str, tuple[float, float]]) -> float:
        return sizes[item[0]][0] if item[1] is None else self.m.track

    # ---- which ways share a line, and where they pass

    def _assigned(self, back: set[tuple[str, str]]) -> list[Net]:
        """The net of each link; notes which nets meet which side of a box."""
        out: dict[tuple[str, bool], int] = defaultdict(int)
        into: dict[tuple[str, bool], int] = defaultdict(int)
        for link in self.picture.links:
            out[link.source, link.decided] += 1
            into[link.target, link.decided] += 1
        nets = [self._net(link, back, out, into) for link in self.picture.links]
        for net, link in zip(nets, self.picture.links, strict=True):
            upwards = net[0] == "b"
            self.sides[link.source, not upwards].add(net)
            self.sides[link.target, upwards].add(net)
            if link.label:
                self.labels[net, link.target] = link.label
        return nets

    def _weave(self, nets: list[Net], layer_of: Mapping[str, int]) -> None:
        for net, link in zip(nets, self.picture.links, strict=True):
            upper, lower = (link.target, link.source) if net[0] == "b" else (link.source, link.target)
            between: list[Item] = [("", net, layer) for layer in range(layer_of[upper] + 1, layer_of[lower])]
            for piece in pairwise([(upper, None, 0), *between, (lower, None, 0)]):
                if piece not in self.nets[net]:
                    self.nets[net].append(piece)

    @staticmethod
    def _net(
        link: Link,
        back: set[tuple[str, str]],
        out: Mapping[tuple[str, bool], int],
        into: Mapping[tuple[str, bool], int],
    ) -> Net:
        if (link.source, link.target) in back:
            return ("b", link.target, link.decided)
        if link.label:  # a line of its own, or nobody could tell what the label belongs to
            return ("s", f"{link.source}\0{link.target}", link.decided)
        if out[link.source, link.decided] >= into[link.target, link.decided]:
            return ("s", link.source, link.decided)
        return ("t", link.target, link.decided)

    def _layers(self, layer_of: Mapping[str, int]) -> list[list[Item]]:
        layers: list[list[Item]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
        for id, layer in layer_of.items():
            layers[layer].append((id, None, 0))
        passing = {item for net in self.nets.values() for piece in net for item in piece if item[1] is not None}
        for item in sorted(passing, key=repr):
            layers[item[2]].append(item)
        return layers

    # ---- from places to lines

    def _drawn(
        self,
        layers: list[list[Item]],
        centers: Mapping[Item, float],
        sizes: Mapping[str, tuple[float, float]],
    ) -> Layout:
        layout = Layout()
        ports = self._ports(centers)
        y: float = 0
        for number, layer in enumerate(layers):
            height = max((sizes[item[0]][1] for item in layer if item[1] is None), default=0)
            bottoms: dict[Item, float] = {}
            tops: dict[Item, float] = {}
            for item in layer:
                if item[1] is not None:
                    layout.lines.append(_vertical(centers[item], y, y + height, item[1]))
                    tops[item], bottoms[item] = y, y + height
                    continue
                width, tall = sizes[item[0]]
                # not quite in the middle of a tall layer: lines from above stay short
                x, box = self._at(centers[item] - width / 2), self.picture.by_id[item[0]]
                tops[item], bottoms[item] = y, y + tall
                layout.boxes.append(Placed(box, x, y, width, tall))
                if inner := self.inner.get(box.id):
                    shift = (width - inner.width) / 2
                    layout.take(inner, x + self._at(shift), y + self.m.inside[1], box.id)
            if number + 1 < len(layers):
                y = self._channel(layout, layer, y + height, bottoms, ports)
            else:
                y += height
        layout.width = max((one.x + one.width for one in layout.boxes), default=0)
        layout.width = max([layout.width, *(max(line.x1, line.x2) + self.m.track for line in layout.lines)])
        layout.height = y
        return layout

    def _at(self, value: float) -> float:
        return float(round(value)) if self.m.whole else value

    def _ports(self, centers: Mapping[Item, float]) -> dict[tuple[Item, Net, bool], float]:
        """Where each net meets each item, below (True) and above it."""
        sides: dict[tuple[Item, bool], dict[Net, list[float]]] = defaultdict(lambda: defaultdict(list))
        for net, pieces in self.nets.items():
            for upper, lower in pieces:
                sides[upper, True][net].append(centers[lower])
                sides[lower, False][net].append(centers[upper])
        found = {}
        for (item, below), nets in sides.items():
            ordered = sorted(nets, key=lambda net: (sum(nets[net]) / len(nets[net]), repr(net)))
            for place, net in enumerate(ordered):
                apart = self._spacing(item[0], below) if item[1] is None else 0
                shift = (place - (len(ordered) - 1) / 2) * apart
                found[item, net, below] = self._at(centers[item] + shift)
        return found

    def _channel(
        self,
        layout: Layout,
        layer: list[Item],
        y: float,
        bottoms: Mapping[Item, float],
        ports: Mapping[tuple[Item, Net, bool], float],
    ) -> float:
        """Draw what runs from one layer to the next; where the next begins."""
        here: dict[Net, list[tuple[Item, Item]]] = {}
        members = set(layer)
        for net, pieces in self.nets.items():
            if mine := [piece for piece in pieces if piece[0] in members]:
                here[net] = mine
        pins = {
            net: (
                sorted({ports[upper, net, True] for upper, _ in pieces}),
                sorted({ports[lower, net, False] for _, lower in pieces}),
            )
            for net, pieces in here.items()
        }
        tracks = _tracks(pins, self.m.track)
        count = max(tracks.values(), default=-1) + 1
        end = y + self.m.room + count * self.m.track + self.m.room
        for net, pieces in here.items():
            across = y + self.m.room + tracks.get(net, 0) * self.m.track
            dashed = net[2]
            for upper in {upper for upper, _ in pieces}:
                x = ports[upper, net, True]
                layout.lines.append(Line(x, bottoms[upper], x, across if net in tracks else end, net, dashed))
                if net[0] == "b" and upper[1] is None:
                    label = self.labels.get((net, upper[0]), "")
                    layout.arrows.append(Arrow(x, bottoms[upper], True, net, dashed, label))
            for lower in {lower for _, lower in pieces}:
                x = ports[lower, net, False]
                if net in tracks:
                    layout.lines.append(Line(x, across, x, end, net, dashed))
                if net[0] != "b" and lower[1] is None:
                    label = self.labels.get((net, lower[0]), "")
                    layout.arrows.append(Arrow(x, end, False, net, dashed, label))
            if net in tracks:
                ends = [*pins[net][0], *pins[net][1]]
                layout.lines.append(Line(min(ends), across, max(ends), across, net, dashed))
        return end


def _vertical(x: float, y1: float, y2: float, net: Net) -> Line:
    return Line(x, y1, x, y2, net, net[2])


def _tracks(pins: Mapping[Net, tuple[list[float], list[float]]], apart: float) -> dict[Net, int]:
    """A track for each net that is not just a straight line, so that no two lie on each other."""
    bent = {net: ends for net, ends in pins.items() if len({*ends[0], *ends[1]}) > 1}
    spans = {net: (min(*ends[0], *ends[1]), max(*ends[0], *ends[1])) for net, ends in bent.items()}
    above: dict[Net, set[Net]] = {net: set() for net in bent}
    for upper, (tops, _) in bent.items():
        for lower, (_, bottoms) in bent.items():
            if upper != lower and any(abs(a - b) < apart for a in tops for b in bottoms):
                above[lower].add(upper)
    tracks: dict[Net, int] = {}
    for net in _sorted(above, spans):
        first = 1 + max((tracks[one] for one in above[net] if one in tracks), default=-1)
        while any(track == first and _meet(spans[net], spans[one], apart) for one, track in tracks.items()):
            first += 1
        tracks[net] = first
    return tracks


def _sorted(above: Mapping[Net, set[Net]], spans: Mapping[Net, tuple[float, float]]) -> Iterable[Net]:
    """The nets, each after those that must run above it, as far as that can be."""
    left = dict.fromkeys(sorted(above, key=lambda net: (spans[net], repr(net))))
    while left:
        free = next((net for net in left if not (above[net] & left.keys())), next(iter(left)))
        del left[free]
        yield free


def _meet(one: tuple[float, float], other: tuple[float, float], apart: float) -> bool:
    return one[0] < other[1] + apart and other[0] < one[1] + apart
