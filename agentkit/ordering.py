"""The order of wraps: list order, first outermost, except where a middleware's `Placement` asks for more."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.errors import PlacementConflict
from agentkit.hooks import Hook
from agentkit.middleware_base import Placement

__all__ = ["arrange"]

_DEFAULT = Placement()


def arrange(hooks: Sequence[Hook], kind: str) -> tuple[Hook, ...]:
    """Order the wraps of one kind, outermost first.

    Args:
        hooks: The hooks, in list order.
        kind: `model` or `tool`.

    Raises:
        PlacementConflict: If two ask for the same end, or the wishes contradict each other.
    """
    places = [getattr(hook.middleware, f"{kind}_placement", _DEFAULT) for hook in hooks]
    if all(place == _DEFAULT for place in places):
        return tuple(hooks)
    outside = _outside_of(hooks, places, kind)
    ordered: list[Hook] = []
    left = list(range(len(hooks)))
    while left:
        ready = next((i for i in left if not any(j in outside[i] for j in left)), None)
        if ready is None:
            names = tuple(hooks[i].name for i in _circle(left, outside))
            raise PlacementConflict(kind, names, "each asks to sit inside another of them")
        ordered.append(hooks[ready])
        left.remove(ready)
    return tuple(ordered)


def _circle(left: Sequence[int], outside: Sequence[set[int]]) -> list[int]:
    """Those of the hooks that wait for each other, without the ones that only wait behind them."""
    circle = list(left)
    while idle := [i for i in circle if not any(i in outside[j] for j in circle)]:
        circle = [i for i in circle if i not in idle]
    return circle


def _outside_of(hooks: Sequence[Hook], places: Sequence[Placement], kind: str) -> list[set[int]]:
    """For each hook, the ones that must sit outside of it."""
    outside: list[set[int]] = [set() for _ in hooks]
    for end in ("outermost", "innermost"):
        at_end = [i for i, place in enumerate(places) if place.at == end]
        if len(at_end) > 1:
            raise PlacementConflict(kind, tuple(hooks[i].name for i in at_end), f"all ask to be {end}")
        for i in at_end:
            for j in range(len(hooks)):
                if i != j:
                    outside[j if end == "outermost" else i].add(i if end == "outermost" else j)
    for i, place in enumerate(places):
        for j, other in enumerate(hooks):
            known_as = {other.middleware.name, type(other.middleware).__name__}  # its class, where it was given a name
            if known_as & {*place.inside} and i != j:
                outside[i].add(j)
            if known_as & {*place.outside} and i != j:
                outside[j].add(i)
    return outside
