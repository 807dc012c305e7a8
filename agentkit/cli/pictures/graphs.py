"""From a LangGraph graph to a picture; an agent of ours is drawn from its plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.pregel import Pregel

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
    drawn = graph.get_graph()
    inside = dict(graph.get_subgraphs()) if inner else {}
    boxes = [_box(id, graph, inside) for id in drawn.nodes]
    links: dict[tuple[str, str], Link] = {}
    repeating = set()
    for edge in drawn.edges:
        if edge.source == edge.target:
            repeating.add(edge.source)
            continue
        label = str(edge.data) if edge.data and str(edge.data) != edge.target else ""
        links.setdefault((edge.source, edge.target), Link(edge.source, edge.target, edge.conditional, label))
    linked = {end for pair in links for end in pair}
    return Picture(
        tuple(
            Box(box.id, box.title, box.kind, box.lines, (*box.marks, "may repeat"), box.inner)
            if box.id in repeating
            else box
            for box in boxes
            if box.kind != "terminal" or box.id in linked
        ),
        tuple(links.values()),
    )


def _box(id: str, graph: Any, inside: Mapping[str, Any]) -> Box:
    if id in (START, FINISH):
        return Box(id, "start" if id == START else "end", "terminal")
    subgraph = inside.get(id)
    inner = picture_of(subgraph) if subgraph is not None else None
    return Box(id, id, "graph" if inner else "node", (), tuple(_marks(id, graph)), inner)


def _marks(id: str, graph: Any) -> list[str]:
    marks = [
        word
        for word, nodes in (
            ("pauses before", graph.interrupt_before_nodes),
            ("pauses after", graph.interrupt_after_nodes),
        )
        if nodes == "*" or id in (nodes or ())
    ]
    spec = getattr(getattr(graph, "builder", None), "nodes", {}).get(id)
    if getattr(spec, "defer", False):
        marks.append("deferred")
    if getattr(spec, "retry_policy", None):
        marks.append("retried")
    return marks
