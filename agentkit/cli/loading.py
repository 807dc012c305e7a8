"""From `MODULE:NAME` to the object that it names."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from agentkit.errors import AgentkitError, CannotLoad

__all__ = ["graph_at", "graphs_in"]


def graph_at(target: str) -> Any:
    """The graph that `MODULE:NAME` names. A function that can be called without arguments is called for it.

    Raises:
        CannotLoad: If there is none.
    """
    module, _, name = target.partition(":")
    if not module or not name:
        raise CannotLoad(target, "give MODULE:NAME, such as my_package.agents:support")
    loaded = _module(target, module)
    found: Any = loaded
    for part in name.split("."):
        if not hasattr(found, part):
            raise CannotLoad(target, f"{module} has no {name!r}{_there_are(loaded)}")
        found = getattr(found, part)
    return _made(target, found)


def graphs_in(target: str) -> dict[str, Any]:
    """The graphs that `MODULE:NAME` names, or all those of `MODULE`, by their names.

    Raises:
        CannotLoad: If there is none.
    """
    if ":" in target:
        return {target: graph_at(target)}
    found = _graphs(_module(target, target))
    if not found:
        raise CannotLoad(target, "the module holds no graph; name the function that makes one as MODULE:NAME")
    return {f"{target}:{name}": graph for name, graph in found.items()}


def _module(target: str, module: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # a command, unlike `python -m`, does not look in the current folder
    try:
        return importlib.import_module(module)
    except AgentkitError:
        raise
    except ModuleNotFoundError as error:
        missing = error.name or module
        if module == missing or module.startswith(f"{missing}."):
            raise CannotLoad(target, f"there is no module {missing!r} here or among what is installed") from None
        raise CannotLoad(target, f"{module} imports {missing!r}, which is not installed") from error
    except Exception as error:  # the user's module fails while it is imported
        raise CannotLoad(target, f"importing {module} fails with {type(error).__name__}: {error}") from error


def _made(target: str, found: Any) -> Any:
    if not inspect.isroutine(found):
        return found
    required = [
        name
        for name, parameter in inspect.signature(found).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if required:
        raise CannotLoad(target, f"it is a function that needs {', '.join(required)}; name a graph")
    return found()


def _graphs(module: ModuleType) -> dict[str, Any]:
    kinds = (StateGraph, CompiledStateGraph)
    return {name: value for name, value in vars(module).items() if isinstance(value, kinds)}


def _there_are(module: ModuleType) -> str:
    names = ", ".join(sorted(_graphs(module)))
    return f"; its graphs are {names}" if names else ""
