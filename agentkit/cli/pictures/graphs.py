"""From a LangGraph graph to a picture; an agent of ours is drawn from its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel

from agentkit.check.shape import Choice, NodeShape, Shape, shape_of
from agentkit.cli.pictures.agents import agent_picture
from agentkit.cli.pictures.parts import FINISH, START, Box, Link, Picture
from agentkit.run import AgentGraph

__all__ = ["picture_of"]


def picture_of(graph: Pregel[Any, Any, Any, Any], *, inner: bool = True) -> Picture:
    """A picture of any compiled graph.

    Args:
        graph: The graph.
        inner: Whether sub-graphs are drawn inside of their nodes.
    """
    if isinstance(graph, AgentGraph):
        return agent_picture(graph)
    inside = graph.get_subgraphs() if inner else ()
    pictures = {name: picture_of(one) for name, one in inside if isinstance(one, Pregel)}
    if isinstance(graph, CompiledStateGraph):
        shape = shape_of(graph.builder, graph)
        names, found = list(shape.nodes), _told(shape)
        marks = {name: tuple(_marks(node, shape, graph)) for name, node in shape.nodes.items()}
    else:  # made with `entrypoint`, or by hand: as LangGraph draws it
        drawn = graph.get_graph()
        names = [id for id in drawn.nodes if id not in (START, FINISH)]
        found = iter(
            [
                Link(edge.source, edge.target, edge.conditional, "" if edge.data is None else str(edge.data))
                for edge in drawn.edges
            ]
        )
        marks = {}
    links = {(link.source, link.target): link for link in reversed(list(found))}
    return _picture(names, list(reversed(links.values())), marks, pictures)


def _picture(
    names: list[str],
    links: list[Link],
    marks: Mapping[str, tuple[str, ...]],
    pictures: Mapping[str, Picture],
) -> Picture:
    repeating = {link.source for link in links if link.source == link.target}
    links = [link for link in links if link.source != link.target]
    linked = {end for link in links for end in (link.source, link.target)}
    boxes = [
        Box(
            name,
            name,
            "graph" if name in pictures else "node",
            marks=(*marks.get(name, ()), *(("may repeat",) if name in repeating else ())),
            inner=pictures.get(name),
        )
        for name in names
    ]
    start = [Box(START, "start", "terminal")] if START in linked else []
    finish = [Box(FINISH, "end", "terminal")] if FINISH in linked else []
    return Picture((*start, *boxes, *finish), tuple(links))


def _told(shape: Shape) -> Iterator[Link]:
    """The ways of a graph, as it was written down."""
    joins = [(source, join.target) for join in shape.joins for source in join.sources]
    for source, target in sorted({*shape.edges, *joins}, key=_in_order(shape)):
        yield Link(source, target)
    for source, choices in shape.choices.items():
        for choice in choices:
            yield from _decided(source, choice)
    leading = {source for source, _ in (*shape.edges, *joins)} | {
        name for name, found in shape.choices.items() if found
    }
    for name in shape.nodes:
        if name not in leading:
            yield Link(name, FINISH)


def _in_order(shape: Shape) -> Any:
    place = {name: number for number, name in enumerate(shape.nodes)}
    return lambda edge: (place.get(edge[0], -1), place.get(edge[1], len(place)))


def _decided(source: str, choice: Choice) -> Iterator[Link]:
    labels: dict[str, list[str]] = {}
    for value, target in (choice.path_map or {}).items():
        if str(value) != target:
            labels.setdefault(target, []).append(str(value))
    for target in sorted(choice.targets):
        label = " or ".join(labels.get(target, ()))
        yield Link(source, target, True, label or ("for each" if target in choice.many else ""))


def _marks(node: NodeShape, shape: Shape, graph: CompiledStateGraph[Any, Any, Any, Any]) -> Iterator[str]:
    if node.pauses:
        yield "asks"
    stops = (("pauses before", graph.interrupt_before_nodes), ("pauses after", graph.interrupt_after_nodes))
    yield from (word for word, nodes in stops if nodes == "*" or node.name in (nodes or ()))
    if node.deferred:
        yield "deferred"
    if any(join.target == node.name for join in shape.joins):
        yield "waits for all"
    if node.retries:
        yield "retried"
