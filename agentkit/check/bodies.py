"""What a node's function does, as far as its source tells: what it writes, where it goes, whether it pauses."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from langgraph.errors import GraphInterrupt
from langgraph.pregel import Pregel
from langgraph.types import Command, Send, interrupt

from agentkit.check.findings import Place
from agentkit.check.returns import NOWHERE, Outcomes, Sent, outcomes, returned
from agentkit.check.sources import UNKNOWN, Source, functions_of, is_library, read

__all__ = ["Body", "Change", "Pause", "Writes", "bodies_of"]

_CHANGING: Final = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault"}
    | {"sort", "update"}
)


@dataclass(frozen=True, slots=True)
class Pause:
    """A call of `interrupt`."""

    place: Place
    swallowed: bool
    """Whether an `except` around it takes the pause for a failure."""


@dataclass(frozen=True, slots=True)
class Change:
    """The state, changed in place."""

    place: Place
    field: str | None
    """The field; None where it is not told."""
    inner: bool
    """Whether an object in the state is changed, and not the state itself."""
    text: str
    """The statement's beginning."""


@dataclass(frozen=True, slots=True)
class Writes:
    """The state fields that one way out of a function writes."""

    fields: frozenset[str]
    place: Place
    whole: bool = False
    """Whether the state is returned that came in."""
    known: bool = True
    """Whether nothing else is written."""


@dataclass(frozen=True, slots=True)
class Body:
    """What one function of a node does."""

    source: Source | None
    """None where the source is not to be had."""
    writes: tuple[Writes, ...] = ()
    gotos: Outcomes = NOWHERE
    """Where a `Command` of it leads, in this graph."""
    leaves: bool = False
    """Whether a `Command` of it is for the graph around."""
    parent_gotos: Outcomes = NOWHERE
    """Where such a `Command` leads there."""
    pauses: tuple[Pause, ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def is_told(self) -> bool:
        """Whether it is known where it may lead."""
        return self.source is not None and self.gotos.complete


def bodies_of(runnable: Any) -> list[Body]:
    """The functions behind a node, without those of libraries."""
    return [body_of(function) for function in functions_of(runnable) if not is_library(function)]


def body_of(function: Callable[..., Any]) -> Body:
    """What a function does."""
    source = read(function)
    if source is None:
        return Body(None)
    commands = [part for part in source.own() if isinstance(part, ast.Call) and source.value(part.func) is Command]
    here = [each for each in commands if not _to_parent(source, each)]
    gotos, parent_gotos = Outcomes(), Outcomes()
    for command in commands:
        if command in here:
            gotos |= _goto(source, command)
        else:
            parent_gotos |= _goto(source, command)
    return Body(
        source=source,
        writes=tuple(_writes(source)),
        gotos=_with_helpers(source, gotos),
        leaves=len(here) < len(commands),
        parent_gotos=parent_gotos,
        pauses=tuple(_pauses(source)),
        changes=tuple(_changes(source)),
    )


# ---- where it goes


def _to_parent(source: Source, command: ast.Call) -> bool:
    graph = _argument(command, "graph")
    return graph is not None and source.value(graph) != ()


def _goto(source: Source, command: ast.Call) -> Outcomes:
    goto = _argument(command, "goto")
    if goto is None:
        return Outcomes()
    # Read as what a function of the same names would return.
    returning = ast.Lambda(args=source.tree.args, body=goto)
    read_as = Source(source.function, returning, source.path, source.first_line, source.names)
    local = _Locals(source)
    return outcomes(read_as, {name: local.read(name) for name in _named(goto) if name in local.stored})


@dataclass(frozen=True, slots=True)
class _Locals:
    """The local variables of a function, as what they can be."""

    source: Source

    @property
    def stored(self) -> frozenset[str]:
        stored = {p.id for p in self.source.own() if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)}
        return frozenset({*stored, *self.source.parameters})

    def read(self, name: str) -> Outcomes:
        tree: Any = self.source.tree
        body = [*tree.body, ast.Return(ast.Name(name, ast.Load()))] if not isinstance(tree, ast.Lambda) else []
        ending = ast.FunctionDef("read", tree.args, _without_returns(body), [], None)
        return outcomes(
            Source(self.source.function, ending, self.source.path, self.source.first_line, self.source.names)
        )


def _without_returns(body: list[ast.stmt]) -> list[ast.stmt]:
    kept = [*(_ReturnsLeftOut().visit(_copied(statement)) for statement in body[:-1]), body[-1]] if body else []
    return kept or [ast.Pass()]


def _copied(statement: ast.stmt) -> ast.stmt:
    return ast.parse(ast.unparse(statement)).body[0]


class _ReturnsLeftOut(ast.NodeTransformer):
    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)


def _named(expression: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(expression) if isinstance(part, ast.Name)}


def _with_helpers(source: Source, gotos: Outcomes) -> Outcomes:
    """What is known of the gotos, with those of functions that are called to make what is returned."""
    for value in returned(source):
        if isinstance(value, ast.Call) and source.value(value.func) not in (Command, Send, UNKNOWN):
            called = source.value(value.func)
            inner = read(called) if functions_of(called) else None
            if inner is not None and any(_is_command(inner, part) for part in inner.own()):
                gotos |= Outcomes(complete=False)
        elif isinstance(value, ast.Call) and source.value(value.func) is Send:
            gotos |= outcomes(source)
    if any(isinstance(source.value(part), Pregel) for part in source.own() if isinstance(part, ast.Name)):
        gotos |= Outcomes(complete=False)  # a graph that is called may leave for a node of this one
    return gotos


def _is_command(source: Source, part: ast.AST) -> bool:
    return isinstance(part, ast.Call) and source.value(part.func) is Command


# ---- what it writes


def _writes(source: Source) -> Iterator[Writes]:
    for value in returned(source):
        yield from _written(source, value)


def _written(source: Source, value: ast.expr) -> Iterator[Writes]:
    place = source.place(value)
    if isinstance(value, ast.IfExp):
        yield from _written(source, value.body)
        yield from _written(source, value.orelse)
    elif isinstance(value, ast.Constant) and value.value is None:
        yield Writes(frozenset(), place)
    elif isinstance(value, ast.Name) and source.parameters[:1] == [value.id]:
        yield Writes(frozenset(), place, whole=True)
    elif isinstance(value, ast.Dict):
        yield _of_dict(source, value, place)
    elif isinstance(value, ast.Call) and source.value(value.func) is dict and not value.args:
        names = {each.arg for each in value.keywords if each.arg}
        yield Writes(frozenset(names), place, known=all(each.arg for each in value.keywords))
    elif isinstance(value, ast.Call) and source.value(value.func) is Command:
        update = _argument(value, "update")
        if update is None or _to_parent(source, value):
            yield Writes(frozenset(), place)
        else:
            yield from _written(source, update)
    else:
        yield Writes(frozenset(), place, known=False)


def _of_dict(source: Source, value: ast.Dict, place: Place) -> Writes:
    keys = [source.value(key) if key is not None else UNKNOWN for key in value.keys]
    spread = [part for key, part in zip(value.keys, value.values, strict=True) if key is None]
    whole = any(isinstance(part, ast.Name) and source.parameters[:1] == [part.id] for part in spread)
    return Writes(
        frozenset(key for key in keys if isinstance(key, str)),
        place,
        whole=whole,
        known=all(isinstance(key, str) for key in keys) or (whole and len(spread) == 1),
    )


def _argument(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


# ---- whether it pauses


def _pauses(source: Source) -> Iterator[Pause]:
    body: Iterable[ast.AST] = [source.tree.body] if isinstance(source.tree, ast.Lambda) else source.tree.body
    for part, swallowed in _guarded(source, body, False):
        if isinstance(part, ast.Call) and source.value(part.func) is interrupt:
            yield Pause(source.place(part), swallowed)


def _guarded(source: Source, parts: Iterable[ast.AST], swallowed: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Every part, with whether an exception raised there would be swallowed."""
    for part in parts:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        yield part, swallowed
        if isinstance(part, ast.Try):
            caught = swallowed or _swallows(source, part)
            yield from _guarded(source, part.body, caught)
            rest = [*part.handlers, *part.orelse, *part.finalbody]
            yield from _guarded(source, rest, swallowed)
        else:
            yield from _guarded(source, ast.iter_child_nodes(part), swallowed)


def _swallows(source: Source, guard: ast.Try) -> bool:
    """Whether a pause ends in an `except` that does not raise it again; the first that takes it decides."""
    for handler in guard.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        caught = [BaseException if kind is None else source.value(kind) for kind in kinds]
        if any(isinstance(kind, type) and issubclass(GraphInterrupt, kind) for kind in caught):
            return not any(isinstance(part, ast.Raise) for part in ast.walk(handler))
    return False


# ---- what it changes


def _changes(source: Source) -> Iterator[Change]:
    if isinstance(source.tree, ast.Lambda) or not source.parameters:
        return
    state = source.parameters[0]
    if any(isinstance(p, ast.Name) and p.id == state and isinstance(p.ctx, ast.Store) for p in source.own()):
        return  # the name is used for something else
    for part in source.own():
        for target in _changed(part):
            steps = _steps(target, state)
            if steps is not None:
                field = steps[-1] if steps else None
                yield Change(source.place(part), field, len(steps) > 1, ast.unparse(part).splitlines()[0])


def _changed(part: ast.AST) -> Iterator[ast.expr]:
    """What a statement or call changes in place."""
    if isinstance(part, ast.Assign):
        yield from (target for target in part.targets if isinstance(target, ast.Subscript | ast.Attribute))
    elif isinstance(part, ast.AugAssign | ast.AnnAssign) and isinstance(part.target, ast.Subscript | ast.Attribute):
        if not isinstance(part, ast.AnnAssign) or part.value is not None:
            yield part.target
    elif isinstance(part, ast.Delete):
        yield from (target for target in part.targets if isinstance(target, ast.Subscript | ast.Attribute))
    elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CHANGING:
        yield ast.Subscript(part.func.value, ast.Constant(...), ast.Load())  # something in it


def _steps(target: ast.expr, state: str) -> list[str | None] | None:
    """The way from the state to what is changed, innermost first; None if it does not begin at the state."""
    steps: list[str | None] = []
    while isinstance(target, ast.Subscript | ast.Attribute):
        if isinstance(target, ast.Attribute):
            steps.append(target.attr)
        else:
            key = target.slice
            steps.append(key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None)
        target = target.value
    return steps if isinstance(target, ast.Name) and target.id == state else None


def sends_many(found: Outcomes) -> frozenset[str]:
    """The nodes that are sent to several times at once."""
    return frozenset(each.node for way in found.ways for each in way if isinstance(each, Sent) and each.many)
