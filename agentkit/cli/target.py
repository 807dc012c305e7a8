"""From `MODULE:NAME` or `path/to/file.py:NAME` on the command line to the object that is meant."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final

import typer

from agentkit.cli.screen import Mistake

__all__ = ["Target", "graph", "graphs_in", "load"]

Target = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:AGENT",
        help="The agent: `shop.agents:support` or `shop/agents.py:support`. A function is called to make it.",
        show_default=False,
    ),
]

_FORM: Final = "write MODULE:NAME, such as shop.agents:support, or path/to/file.py:NAME"
_SHOWN: Final = 8  # names that an error lists


def load(target: str, runner: asyncio.Runner | None = None, **offers: Any) -> Any:
    """The object that a target names; a factory function is called.

    Args:
        target: `MODULE:NAME` or `path/to/file.py:NAME`; the current folder is searched for modules.
        runner: What runs an async factory, if the event loop must live on.
        offers: Arguments for a factory, of which it is given those that it has parameters for.

    Raises:
        Mistake: If it cannot be found, imported or made; the message says what there is instead.
    """
    where, colon, name = target.rpartition(":")
    if not colon:
        where, name = target, ""
    if not where:
        raise Mistake(f"{target!r} names no module; {_FORM}")
    module = _from_file(where) if where.endswith(".py") else _from_module(where)
    if not name:
        raise Mistake(f"{target!r} names nothing in the module; {_FORM}. {_there_is(module)}")
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Mistake(f"{where} has no {name!r}. {_there_is(module)}") from None
    return _made(found, target, runner, offers)


def graph(target: str, runner: asyncio.Runner | None = None, **offers: Any) -> Any:
    """The compiled graph that a target names; a builder is compiled.

    Raises:
        Mistake: As `load`, and if it is no graph.
    """
    from langgraph.graph import StateGraph
    from langgraph.pregel import Pregel

    found = load(target, runner, **offers)
    if isinstance(found, StateGraph):
        try:
            return found.compile(checkpointer=offers.get("checkpointer"))
        except ValueError as error:
            raise Mistake(f"{target} cannot be compiled: {error}") from error
    if not isinstance(found, Pregel):
        where = target.rpartition(":")[0]
        module = sys.modules.get(where) if not where.endswith(".py") else _from_file(where)
        there = f" {_there_is(module)}" if module else ""
        raise Mistake(f"{target} is of type {type(found).__name__}, not an agent or a graph.{there}")
    return found


def graphs_in(target: str, **offers: Any) -> dict[str, Any]:
    """What a target names, as it is; of a module or file alone, every graph and builder in it, by their targets.

    Args:
        target: `MODULE:NAME`, or a module or file alone.
        offers: As `load` takes them.

    Raises:
        Mistake: As `load`, and if a module holds no graph.
    """
    from langgraph.graph import StateGraph
    from langgraph.pregel import Pregel

    if ":" in target:
        return {target: load(target, **offers)}
    module = _from_file(target) if target.endswith(".py") else _from_module(target)
    found = {f"{target}:{name}": each for name, each in vars(module).items() if isinstance(each, Pregel | StateGraph)}
    if not found:
        raise Mistake(f"{target} holds no graph; {_FORM}. {_there_is(module)}")
    return found


def _from_module(name: str) -> ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise Mistake(_broken(name, error)) from error
        file = Path(*name.split("/"))
        hint = f"; for a file write {file}.py:NAME" if file.with_suffix(".py").exists() else ""
        raise Mistake(f"there is no module {error.name!r} in {os.getcwd()} or the installed packages{hint}") from None
    except (Exception, SystemExit) as error:
        raise Mistake(_broken(name, error)) from error


def _from_file(path: str) -> ModuleType:
    file = Path(path).resolve()
    if not file.is_file():
        beside = sorted(one.name for one in file.parent.glob("*.py"))[:_SHOWN]
        there = f"; {Path(path).parent} has {', '.join(beside)}" if beside else ""
        raise Mistake(f"there is no file {path}{there}")
    for folder in (str(file.parent), os.getcwd()):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    known = next((m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == str(file)), None)
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None  # it ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(file.stem, module)  # annotations of its classes are looked up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if sys.modules.get(file.stem) is module:
            del sys.modules[file.stem]
        raise Mistake(_broken(path, error)) from error
    return module


def _made(found: Any, target: str, runner: asyncio.Runner | None, offers: Mapping[str, Any]) -> Any:
    """The object itself, or what it makes if it is a function."""
    if not inspect.isroutine(found):
        return found
    parameters = inspect.signature(found).parameters
    needed = [
        name
        for name, one in parameters.items()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) and name not in offers
    ]
    if needed:
        raise Mistake(f"{target} cannot be called: it needs {', '.join(needed)}. Name a function without parameters.")
    try:
        made = found(**{name: value for name, value in offers.items() if name in parameters})
        if inspect.iscoroutine(made):
            return runner.run(made) if runner is not None else asyncio.run(made)
        return made
    except (Exception, SystemExit) as error:
        raise Mistake(_broken(f"{target}()", error)) from error


def _broken(what: str, error: BaseException) -> str:
    """An error that the user's own code raised, with the last place of theirs that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if "importlib" not in one.filename and not _is_installed(one.filename)]
    if isinstance(error, SyntaxError):
        place = f" ({_shown(error.filename or '')}, line {error.lineno})"
    else:
        place = f" ({_shown(own[-1].filename)}, line {own[-1].lineno})" if own else ""
    text = " ".join(str(getattr(error, "msg", None) or error).split())
    return f"{what} failed: {type(error).__name__}: {text}{place}"


def _is_installed(filename: str) -> bool:
    return "site-packages" in filename or Path(filename).is_relative_to(Path(__file__).parents[1])


def _shown(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _there_is(module: ModuleType) -> str:
    """What of a module a target could name."""
    from langgraph.graph import StateGraph
    from langgraph.pregel import Pregel

    own = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    graphs = [name for name, value in own.items() if isinstance(value, Pregel | StateGraph)]
    makers = [
        f"{name}()"
        for name, value in own.items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not _needs(value)
    ]
    found = [*graphs, *makers]
    if not found:
        return f"{module.__name__} has no agent, graph or function without parameters."
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{module.__name__} has {', '.join(found[:_SHOWN])}{more}."


def _needs(function: Any) -> bool:
    return any(
        one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) and name != "checkpointer"
        for name, one in inspect.signature(function).parameters.items()
    )
