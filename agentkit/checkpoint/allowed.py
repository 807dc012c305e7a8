"""Which classes stored values may be of: a list that only code can lengthen, never what stands in a database."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from threading import Lock
from typing import Any, Literal, get_args, get_origin, get_type_hints
from weakref import WeakSet

from langchain_core import messages
from langchain_core.documents import Document
from langgraph.store.base import Item
from langgraph.types import Command, Interrupt, Overwrite, PregelTask, Send, StateSnapshot, TimeoutPolicy
from pydantic import BaseModel
from typing_extensions import is_typeddict

__all__ = ["Allowed", "classes_in", "declare", "name_of"]

_MESSAGES = [
    value for name in messages.__all__ if isinstance(value := getattr(messages, name), type) and "Message" in name
]
_ALWAYS = [*_MESSAGES, Document, Command, Interrupt, Item, Overwrite, PregelTask, Send, StateSnapshot, TimeoutPolicy]

_DECLARED: WeakSet[type] = WeakSet()
"""Schemas of agents that know no store yet: a sub-agent's values are stored where the outermost agent's are."""
_DECLARING = Lock()


def declare(*schemas: Any) -> None:
    """Allow, in every store of this process, the classes that schemas name, for as long as those are there."""
    for schema in schemas:
        with _DECLARING:
            _DECLARED.update(part for part in (get_args(schema) or [schema]) if isinstance(part, type))


def name_of(cls: type) -> str:
    """A class's full name, with the classes it is nested in."""
    return f"{cls.__module__}.{cls.__qualname__}"


class Allowed:
    """The classes that may be stored and read, by full name. Grows as agents are built on the store."""

    def __init__(self, types: Iterable[Any] = (), aliases: Mapping[str, type] | None = None) -> None:
        """Allow classes, and what their fields hold.

        Args:
            types: Classes, or annotations that name some.
            aliases: Classes by the full names they were stored under before they were renamed or moved.
        """
        self._classes: dict[str, type] = {name_of(cls): cls for cls in _ALWAYS}
        self._by_short_name: dict[str, set[type]] = {}
        self._walked: WeakSet[type] = WeakSet()
        self.add(types)
        self.add((aliases or {}).values())
        self._classes.update(aliases or {})

    def add(self, types: Iterable[Any]) -> None:
        """Allow the classes that annotations name, with those that their fields name."""
        for annotation in types:
            for cls in classes_in(annotation, known=self._classes.values()):
                self._classes[name_of(cls)] = cls
                self._by_short_name.setdefault(f"{cls.__module__}.{cls.__name__}", set()).add(cls)

    def add_names(self, names: Collection[tuple[str, ...]]) -> None:
        """Allow classes that LangGraph names by module and name; what is not loaded cannot be meant."""
        found = (getattr(sys.modules.get(module), name, None) for module, name in names)
        self.add(cls for cls in found if isinstance(cls, type))

    def __contains__(self, cls: type) -> bool:
        if self._classes.get(name_of(cls)) is not cls:
            self._add_declared()
        return self._classes.get(name_of(cls)) is cls

    def get(self, name: str) -> type | None:
        """The class of that full name, if it is allowed; LangGraph leaves out the classes that one is nested in."""
        if name not in self._classes:
            self._add_declared()
        if name in self._classes:
            return self._classes[name]
        called = self._by_short_name.get(name, set())
        return next(iter(called)) if len(called) == 1 else None

    def _add_declared(self) -> None:
        """Look at schemas only once a class is met that nobody has named otherwise."""
        with _DECLARING:
            declared = [*_DECLARED]
        for schema in declared:
            if schema not in self._walked:
                self._walked.add(schema)
                self.add([schema])


def classes_in(annotation: Any, known: Iterable[type] = ()) -> set[type]:
    """The storable classes that an annotation names, directly or through the fields of one it names.

    Args:
        annotation: A class, a schema, or whatever stands behind a field.
        known: Classes to leave out, with what their fields name.
    """
    found: set[type] = set()
    _collect(annotation, found, {id(cls): cls for cls in known})
    return found


def _collect(annotation: Any, found: set[type], seen: dict[int, Any]) -> None:
    if id(annotation) in seen:
        return
    seen[id(annotation)] = annotation  # kept, so that its id stays its own
    if get_origin(annotation) is Literal:
        found.update(type(value) for value in get_args(annotation) if isinstance(value, Enum))
        return
    for part in _parts(annotation):
        _collect(part, found, seen)
    if isinstance(annotation, type) and _is_storable(annotation):
        found.add(annotation)


def _parts(annotation: Any) -> Iterator[Any]:
    yield from get_args(annotation)
    if origin := get_origin(annotation):
        yield origin
    for attribute in ("__supertype__", "__bound__", "__value__"):  # NewType, TypeVar, `type X = ...`
        if (inner := getattr(annotation, attribute, None)) is not None:
            yield inner
    if is_typeddict(annotation) or (isinstance(annotation, type) and _is_storable(annotation)):
        yield from _fields(annotation)


def _is_storable(cls: type) -> bool:
    is_named_tuple = issubclass(cls, tuple) and hasattr(cls, "_fields")
    return issubclass(cls, (BaseModel, Enum)) or dataclasses.is_dataclass(cls) or is_named_tuple


def _fields(cls: Any) -> Iterable[Any]:
    """The annotations of a class's fields; of those that name something out of reach, the ones that do not."""
    if isinstance(cls, type) and issubclass(cls, BaseModel):
        return [field.annotation for field in cls.model_fields.values()]
    try:
        return get_type_hints(cls, include_extras=True).values()
    except Exception:  # hints are code: a name out of reach, or one that means something else here, may raise anything
        return [hint for hint in getattr(cls, "__annotations__", {}).values() if not isinstance(hint, str)]
