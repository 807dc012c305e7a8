"""The functions behind a node or a router, their source as a syntax tree, and what names in it stand for."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from agentkit.check.findings import Place

__all__ = ["UNKNOWN", "Function", "Source", "functions_of", "read"]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_LIBRARIES: Final = ("langchain", "langchain_core", "langgraph", "agentkit")


class _Unknown:
    """Stands for a value that the source does not tell."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True, slots=True)
class Source:
    """A function and its syntax tree."""

    function: Callable[..., Any]
    tree: Function
    path: str
    first_line: int
    names: Mapping[str, Any] = field(repr=False)
    """What the names that the function does not bind itself stand for."""

    @property
    def is_async(self) -> bool:
        """Whether it is an `async def`."""
        return isinstance(self.tree, ast.AsyncFunctionDef)

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters, without `self`."""
        names = [each.arg for each in (*self.tree.args.posonlyargs, *self.tree.args.args)]
        return names[1:] if inspect.ismethod(self.function) else names

    def place(self, node: ast.AST) -> Place:
        """Where a part of the function stands."""
        return Place(self.path, self.first_line + getattr(node, "lineno", 1) - 1)

    def value(self, expression: ast.AST) -> Any:
        """What a name or dotted name stands for outside of the function; `UNKNOWN` if that cannot be told."""
        if isinstance(expression, ast.Constant):
            return expression.value
        if isinstance(expression, ast.Name):
            return self.names.get(expression.id, UNKNOWN)
        if isinstance(expression, ast.Attribute):
            owner = self.value(expression.value)
            if inspect.ismodule(owner) or inspect.isclass(owner):  # reading these runs nobody's code
                return getattr(owner, expression.attr, UNKNOWN)
        return UNKNOWN

    def own(self) -> Iterator[ast.AST]:
        """Every part of the function, without the functions and classes that are defined inside it."""
        body = [self.tree.body] if isinstance(self.tree, ast.Lambda) else self.tree.body
        left: list[ast.AST] = list(reversed(body))
        while left:
            part = left.pop()
            yield part
            if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
                left += reversed(list(ast.iter_child_nodes(part)))


def functions_of(runnable: Any) -> list[Callable[..., Any]]:
    """The functions that a node's or a router's runnable calls: its sync and its async form."""
    if inspect.isfunction(runnable) or inspect.ismethod(runnable):
        return [runnable]
    # LangGraph wraps functions in a Runnable that has them under these names, and so does LangChain's RunnableLambda.
    forms = [getattr(runnable, "__dict__", {}).get(name) for name in ("func", "afunc")]
    found: list[Callable[..., Any]] = []
    for form in forms:
        while isinstance(form, functools.partial) and not is_library(form.func):  # not a function run in a thread
            form = form.func
        if inspect.isfunction(form) or inspect.ismethod(form):
            found.append(form)
        elif form is not None and inspect.ismethod(called := getattr(form, "__call__", None)):  # noqa: B004  its source is wanted
            found.append(called)
    return found


def is_library(function: Callable[..., Any]) -> bool:
    """Whether a function belongs to LangChain, LangGraph or agentkit, and not to the graph's author."""
    return (getattr(function, "__module__", None) or "").partition(".")[0] in _LIBRARIES


def read(function: Callable[..., Any]) -> Source | None:
    """A function's syntax tree; None where its source is not to be had or cannot be told from its neighbour's."""
    plain: Any = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(plain, "__code__", None)
    if code is None:
        return None
    try:
        lines, first = inspect.getsourcelines(plain)
    except (OSError, TypeError, SyntaxError):
        return None
    tree = _lambda(lines, plain) if plain.__name__ == "<lambda>" else _definition(lines)
    return Source(function, tree, code.co_filename, first, _names(plain)) if tree is not None else None


def _definition(lines: list[str]) -> Function | None:
    try:
        parsed = ast.parse(textwrap.dedent("".join(lines)))
    except SyntaxError:
        return None
    first = parsed.body[0] if parsed.body else None
    return first if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _lambda(lines: list[str], function: Any) -> ast.Lambda | None:
    """The lambda in a piece of source that may begin and end anywhere around it."""
    text = textwrap.dedent("".join(lines))
    start = text.find("lambda")
    if start < 0 or text.count("lambda") > 1:
        return None  # which of them it is cannot be told
    for end in range(len(text), start, -1):
        try:
            parsed = ast.parse(text[start:end].strip(), mode="eval").body
        except SyntaxError:
            continue
        if isinstance(parsed, ast.Tuple):  # the arguments of a call, of which it is the first
            parsed = parsed.elts[0]
        return parsed if isinstance(parsed, ast.Lambda) else None
    return None


def _names(function: Any) -> dict[str, Any]:
    """Builtins, and the names of the module and of enclosing functions, which need not all be bound yet."""
    names = {**vars(builtins), **function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            names[name] = UNKNOWN
    return names
