"""Draws a plan as a LangGraph graph: the only code that adds nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import TracePolicy

from agentkit.interpreter import Node, Route, Step
from agentkit.routing import Router
from agentkit.state import Schemas
from agentkit.topology import Plan

__all__ = ["draw"]


def draw(
    plan: Plan,
    steps: Mapping[str, Step],
    router: Router,
    schemas: Schemas,
    policies: Mapping[str, TracePolicy],
    context_schema: type | None,
) -> StateGraph[Any, Any, Any, Any]:
    """The graph of a plan.

    Args:
        plan: The stops.
        steps: What is done at each of them.
        router: Chooses what follows.
        schemas: State, input and output.
        policies: How the hooks' nodes are traced.
        context_schema: The type of the run's context.
    """
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        schemas.state, context_schema, input_schema=schemas.input, output_schema=schemas.output
    )
    for stop in plan.stops:
        node = Node(stop, steps[stop.name])
        builder.add_node(stop.name, node, input_schema=schemas.state, trace_policy=policies.get(stop.name))
    builder.add_edge(START, plan.entry)
    for stop in plan.stops:
        if len(stop.targets) == 1:
            builder.add_edge(stop.name, stop.following)
        else:
            builder.add_conditional_edges(stop.name, Route(stop, router), list(stop.targets))
    return builder


assert END == "__end__"  # topology names it without importing LangGraph
