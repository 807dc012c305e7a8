"""What a function can return, as far as its source tells: the ways a router may send a run."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from langgraph.types import Send

from agentkit.check.sources import UNKNOWN, Source, read

__all__ = ["NOWHERE", "UNTOLD", "Outcomes", "Sent", "outcomes", "returned"]

_DEPTH: Final = 3  # how far calls to other functions are followed


@dataclass(frozen=True, slots=True)
class Sent:
    """A `Send` to a node."""

    node: str
    many: bool = False
    """Whether it may be sent several times at once."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The values that a router can return, each as the set of what it names."""

    ways: frozenset[frozenset[Hashable]] = frozenset()
    complete: bool = True
    """Whether there is nothing else that it can return."""
    several: bool = False
    """Whether some value that is not known holds several names."""

    def __or__(self, other: Outcomes) -> Outcomes:
        """Either of the two."""
        return Outcomes(self.ways | other.ways, self.complete and other.complete, self.several or other.several)

    def beside(self, other: Outcomes) -> Outcomes:
        """Both together, as parts of one list."""
        ways = frozenset(one | two for one in self.ways for two in other.ways)
        return Outcomes(ways, self.complete and other.complete, True)


NOWHERE: Final = Outcomes()
UNTOLD: Final = Outcomes(complete=False)


def outcomes(source: Source, bound: Mapping[str, Outcomes] | None = None, depth: int = 0) -> Outcomes:
    """What a function can return.

    Args:
        source: The function.
        bound: What its parameters may be, where that is known.
        depth: How many calls this one is away from the function that was asked about.
    """
    reader = _Reader(source, bound or {}, depth)
    found = Outcomes()
    for value in returned(source):
        found |= reader.read(value)
    return found


def returned(source: Source) -> Iterator[ast.expr]:
    """The expressions that a function returns."""
    if isinstance(source.tree, ast.Lambda):
        yield source.tree.body
        return
    for part in source.own():
        if isinstance(part, ast.Return) and part.value is not None:
            yield part.value


def is_send(source: Source, call: ast.Call) -> bool:
    """Whether a call makes a `Send`."""
    return source.value(call.func) is Send


@dataclass(frozen=True, slots=True)
class _Reader:
    source: Source
    bound: Mapping[str, Outcomes]
    depth: int

    def read(self, value: ast.expr) -> Outcomes:
        if isinstance(value, ast.IfExp):
            return self.read(value.body) | self.read(value.orelse)
        if isinstance(value, ast.BoolOp):
            return self._any_of(value.values)
        if isinstance(value, ast.List | ast.Tuple | ast.Set):
            return self._list(value.elts)
        if isinstance(value, ast.ListComp | ast.GeneratorExp):
            return self._repeated(self.read(value.elt))
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            return self.read(value.left).beside(self.read(value.right))
        if isinstance(value, ast.Call):
            return self._call(value)
        if isinstance(value, ast.Name):
            return self._name(value)
        return self._constant(self.source.value(value))

    def _any_of(self, values: Iterable[ast.expr]) -> Outcomes:
        found = Outcomes()
        for value in values:
            found |= self.read(value)
        return found

    def _list(self, parts: Iterable[ast.expr]) -> Outcomes:
        found = Outcomes(frozenset({frozenset()}))
        for part in parts:
            found = found.beside(self.read(part.value if isinstance(part, ast.Starred) else part))
        return found

    def _repeated(self, one: Outcomes) -> Outcomes:
        """A list of one thing again and again."""
        ways = frozenset(frozenset(_many(each) for each in way) for way in one.ways)
        return Outcomes(ways, one.complete, True)

    def _call(self, call: ast.Call) -> Outcomes:
        if is_send(self.source, call) and call.args:
            names = self.read(call.args[0])
            ways = frozenset(frozenset(Sent(str(name)) for name in way) for way in names.ways)
            return Outcomes(ways, names.complete, names.several)
        called = self.source.value(call.func)
        if self.depth >= _DEPTH or not inspect.isfunction(called) or inspect.iscoroutinefunction(called):
            return UNTOLD
        source = read(called)
        if source is None or any(each.arg is None for each in call.keywords):
            return UNTOLD
        given = dict(zip(source.parameters, map(self.read, call.args), strict=False))
        given |= {each.arg: self.read(each.value) for each in call.keywords if each.arg}
        return outcomes(source, given, self.depth + 1)

    def _name(self, name: ast.Name) -> Outcomes:
        if name.id in self.bound:
            return self.bound[name.id]
        assigned = _assigned(self.source, name.id)
        if assigned is not None:
            # A variable that is built from itself is not told by its parts.
            reader = _Reader(self.source, {**self.bound, name.id: UNTOLD}, self.depth)
            return reader._any_of(assigned) if assigned else UNTOLD
        return self._constant(self.source.value(name))

    def _constant(self, value: Any) -> Outcomes:
        if value is UNKNOWN or isinstance(value, Send):
            return UNTOLD
        if value is None:
            return Outcomes()  # a router that returns nothing names nothing
        if isinstance(value, str | int | Enum):
            return Outcomes(frozenset({frozenset({value})}))
        if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
            return Outcomes(frozenset({frozenset(value)}), several=True)
        return UNTOLD


def _many(each: Hashable) -> Hashable:
    return Sent(each.node, many=True) if isinstance(each, Sent) else each


def _assigned(source: Source, name: str) -> list[ast.expr] | None:
    """What a local variable is set to; None if the name is none, and empty if it is set in some other way."""
    if name in source.parameters:
        return []
    values: list[ast.expr] = []
    plain = 0
    for part in source.own():
        if isinstance(part, ast.Assign) and [t.id for t in part.targets if isinstance(t, ast.Name)] == [name]:
            values.append(part.value)
            plain += 1
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.target.id == name:
            values += [part.value] if part.value else []
            plain += 1
    stored = sum(
        isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store) for part in source.own()
    )
    if not stored:
        return None
    changed = any(
        isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == name
        for part in source.own()
    )
    return values if stored == plain and not changed else []
