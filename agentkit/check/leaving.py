"""Where the tools of a node and the graphs inside it lead: what their commands name, beside its own functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from agentkit.check.bodies import Body, bodies_of
from agentkit.check.returns import Outcomes, Sent

__all__ = ["led_to", "tools_in"]


def tools_in(runnable: Any) -> Mapping[str, Any]:
    """The tools that a runnable runs, by name: those of a `ToolNode`, or of an agent's tools step."""
    found = getattr(runnable, "tools_by_name", None)
    return found if isinstance(found, Mapping) else {}


def led_to(runnable: Any, bodies: Iterable[Body]) -> frozenset[str]:
    """The nodes that a node may lead to otherwise than by commands of its own functions, the `bodies`.

    That is by commands of its tools, and by `Command.PARENT` of the graph that it is, or that it or a tool calls.
    """
    bound = getattr(runnable, "bound", runnable)
    if isinstance(bound, CompiledStateGraph):
        return _left_from(bound)
    tools = [*_tool_bodies(runnable)]
    called = (graph for body in (*bodies, *tools) for graph in _graphs_named(body))
    return _names(body.gotos for body in tools).union(*map(_left_from, called))


def _left_from(graph: CompiledStateGraph[Any, Any, Any, Any]) -> frozenset[str]:
    """The nodes of the graph around that this one may lead to."""
    bodies = (body for node in graph.builder.nodes.values() for body in _bodies(node.runnable))
    return _names(body.parent_gotos for body in bodies)


def _bodies(runnable: Any) -> Iterator[Body]:
    yield from bodies_of(runnable)
    yield from _tool_bodies(runnable)


def _tool_bodies(runnable: Any) -> Iterator[Body]:
    for tool in tools_in(runnable).values():
        yield from bodies_of(tool)


def _graphs_named(body: Body) -> Iterator[CompiledStateGraph[Any, Any, Any, Any]]:
    source = body.source
    for part in source.own() if source is not None else ():
        if source is not None and isinstance(part, ast.Name):
            value = source.value(part)
            if isinstance(value, CompiledStateGraph):
                yield value


def _names(gotos: Iterator[Outcomes]) -> frozenset[str]:
    names = (each.node if isinstance(each, Sent) else each for found in gotos for way in found.ways for each in way)
    return frozenset(name for name in names if isinstance(name, str))
