"""Where in a value a part of it stands, for errors; slow, and only used once something is known to be wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = ["walk"]

_DEEPEST: Final = 500
_ROWS: Final = (list, set, frozenset, deque)


def walk(
    value: Any, place: str, parts_of: Callable[[Any], list[Any]], above: tuple[int, ...] = ()
) -> Iterator[tuple[str, Any]]:
    """A value and all parts of it, each with its place, outer ones first.

    Args:
        value: The value.
        place: What the value itself is called.
        parts_of: Takes objects apart: their dicts of fields, and other parts.
        above: The ids of the values that this one is part of.
    """
    yield place, value
    if id(value) in above or len(above) > _DEEPEST:
        return
    for step, part in _steps(value, parts_of):
        yield from walk(part, f"{place}{step}", parts_of, (*above, id(value)))


def _steps(value: Any, parts_of: Callable[[Any], list[Any]]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from _entries(value)
    elif isinstance(value, _ROWS) or type(value) is tuple:
        yield from ((f"[{index}]", part) for index, part in enumerate(value))
    else:
        for part in parts_of(value):
            if isinstance(part, dict):
                yield from ((f".{name}", field) for name, field in part.items())
            elif part is not value:
                yield "", part


def _entries(value: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, part in value.items():
        yield f"[{key!r}]" if isinstance(key, str | int) else "[a key]", part
        if not isinstance(key, str):
            yield "[a key]", key
