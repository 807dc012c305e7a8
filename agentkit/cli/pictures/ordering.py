"""The three decisions of a layered layout: which layer, which order in it, how far to the right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from math import floor
from typing import TypeVar

from agentkit.cli.pictures.parts import FINISH

__all__ = ["arranged", "layered", "leading_back", "placed"]

ItemT = TypeVar("ItemT", bound=Hashable)
_SWEEPS = 12
_SETTLING = 13  # odd: the last is downward, so that what follows one box stands right below it
_GRID = 4  # what lies this near in a line is brought into one
_STRAIGHT = 6.0  # how much more a passing line wants to stay straight than a box wants to be in the middle


def layered(
    ids: Sequence[str],
    links: Sequence[tuple[str, str]],
    back: set[tuple[str, str]],
    widths: Mapping[str, float],
    gap: float,
    limit: float,
) -> dict[str, int]:
    """A layer for each node, below all that lead to it.

    Args:
        ids: The nodes, in the order in which they are preferred to stand.
        links: The ways.
        back: Those of them that lead back; they are turned round.
        widths: The nodes' widths.
        gap: Between two of a layer.
        limit: Layers wider than this are broken.

    Returns:
        The layers, counted from 0.
    """
    before: dict[str, set[str]] = {id: set() for id in ids}
    for source, target in links:
        upper, lower = (target, source) if (source, target) in back else (source, target)
        if upper != lower:
            before[lower].add(upper)
    layers: dict[str, int] = {}
    filled: dict[int, float] = defaultdict(float)
    waiting = list(ids)
    while waiting:
        id = next(one for one in waiting if before[one] <= layers.keys())
        waiting.remove(id)
        layer = 1 + max((layers[one] for one in before[id]), default=-1)
        while filled[layer] and filled[layer] + widths[id] > limit:
            layer += 1
        layers[id] = layer
        filled[layer] += widths[id] + gap
    lowest = max(layers.values(), default=0)
    if FINISH in layers and layers[FINISH] < lowest and not any(FINISH in found for found in before.values()):
        layers[FINISH] = lowest + 1
    return layers


def leading_back(ids: Sequence[str], links: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """The links that close a circle, found by walking from the first node on."""
    after: dict[str, list[str]] = {id: [] for id in ids}
    for source, target in links:
        after[source].append(target)
    back: set[tuple[str, str]] = set()
    done: set[str] = set()
    for root in ids:
        path: list[tuple[str, int]] = [(root, 0)]
        on_path = {root}
        while path and root not in done:
            node, place = path.pop()
            if place == len(after[node]):
                done.add(node)
                on_path.discard(node)
                continue
            path.append((node, place + 1))
            following = after[node][place]
            if following in on_path:
                back.add((node, following))
            elif following not in done:
                path.append((following, 0))
                on_path.add(following)
    return back


def arranged(layers: list[list[ItemT]], pieces: Sequence[tuple[ItemT, ItemT]]) -> list[list[ItemT]]:
    """The layers with their items in an order that lets few lines cross."""
    above, below = _neighbours(pieces)
    best, fewest = layers, _crossings(layers, pieces)
    current = [list(layer) for layer in layers]
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for layer in current[1:] if down else reversed(current[:-1]):
            place = {item: number for row in current for number, item in enumerate(row)}
            wanted = {
                item: _mean([place[one] for one in neighbours[item]]) if neighbours[item] else place[item]
                for item in layer
            }
            layer.sort(key=lambda item: wanted[item])
        if (crossings := _crossings(current, pieces)) < fewest:
            best, fewest = [list(layer) for layer in current], crossings
    return best


def _neighbours(
    pieces: Sequence[tuple[ItemT, ItemT]],
) -> tuple[Mapping[ItemT, list[ItemT]], Mapping[ItemT, list[ItemT]]]:
    above: dict[ItemT, list[ItemT]] = defaultdict(list)
    below: dict[ItemT, list[ItemT]] = defaultdict(list)
    for upper, lower in pieces:
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def _crossings(layers: list[list[ItemT]], pieces: Sequence[tuple[ItemT, ItemT]]) -> int:
    place = {item: (row, number) for row, layer in enumerate(layers) for number, item in enumerate(layer)}
    by_row: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for upper, lower in pieces:
        by_row[place[upper][0]].append((place[upper][1], place[lower][1]))
    return sum(
        (a[0] - b[0]) * (a[1] - b[1]) < 0
        for row in by_row.values()
        for number, a in enumerate(row)
        for b in row[number + 1 :]
    )


def placed(
    layers: list[list[ItemT]],
    pieces: Sequence[tuple[ItemT, ItemT]],
    widths: Mapping[ItemT, float],
    gap: float,
    *,
    whole: bool,
) -> dict[ItemT, float]:
    """The middle of each item: near those it is linked to, apart from its neighbours, none left of 0.

    Args:
        layers: The items in their order.
        pieces: The links from one layer to the next.
        widths: The items' widths.
        gap: Between two items.
        whole: Whether the left side of each item must be a whole number.
    """
    above, below = _neighbours(pieces)
    middle: dict[ItemT, float] = {}
    for layer in layers:
        x: float = 0
        for item in layer:
            middle[item] = x + widths[item] / 2
            x += widths[item] + gap
    smallest = min(widths.values(), default=0)
    widest = max((sum(widths[item] + gap for item in layer) for layer in layers), default=0.0)
    for sweep in range(_SETTLING):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            wanted, weights = [], []
            for item in layer:
                near = (above if down else below)[item]
                wanted.append(_mean([middle[one] for one in near]) if near else middle[item])
                weights.append(_STRAIGHT if widths[item] == smallest else 1.0)
            for item, x in zip(layer, _apart(layer, wanted, weights, widths, gap, widest), strict=True):
                middle[item] = x
    left = min((middle[item] - widths[item] / 2 for item in middle), default=0)
    if not whole:
        return {item: float(round((x - left) / _GRID) * _GRID) for item, x in middle.items()}
    rounded: dict[ItemT, float] = {}
    for layer in layers:
        end = -gap
        for item in layer:
            x = max(floor(middle[item] - left - widths[item] / 2 + 1e-6), end + gap)
            rounded[item] = x + widths[item] // 2
            end = x + widths[item]
    return rounded


def _apart(
    layer: Sequence[ItemT],
    wanted: Sequence[float],
    weights: Sequence[float],
    widths: Mapping[ItemT, float],
    gap: float,
    widest: float,
) -> list[float]:
    """The places nearest to the wanted ones at which no two items are too near: least squares, by pooling.

    None is left of 0, and none right of what the widest layer needs.
    """
    offset: list[float] = []
    for number, item in enumerate(layer):
        before = offset[-1] + widths[layer[number - 1]] / 2 + gap if number else 0.0
        offset.append(before + widths[item] / 2)
    pools: list[tuple[float, float, int]] = []  # the place that a pool wants, its weight, how many are in it
    for want, weight, shift in zip(wanted, weights, offset, strict=True):
        pools.append((want - shift, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (x1, w1, n1), (x2, w2, n2) = pools[-2:]
            pools[-2:] = [((x1 * w1 + x2 * w2) / (w1 + w2), w1 + w2, n1 + n2)]
    room = widest - gap - (offset[-1] + widths[layer[-1]] / 2)
    bases = [min(max(x, 0.0), room) for x, _, count in pools for _ in range(count)]
    return [base + shift for base, shift in zip(bases, offset, strict=True)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
