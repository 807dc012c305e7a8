"""Draws a plan as a LangGraph graph: the only code that adds nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import TracePolicy

from agentkit._compat import without_reader
from agentkit.interpreter import HookRoute, Node, Step
from agentkit.local_state import can_fold
from agentkit.routing import Router
from agentkit.state import Schemas
from agentkit.topology import MODEL, TOOLS, Plan, Stop
from agentkit.walk import ToolsNode, TurnNode, TurnRoute

__all__ = ["Drawing", "without_reads"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What is drawn.

    Attributes:
        plan: The stops.
        steps: What is done at each of them, in the order in which the nodes are added.
        router: Chooses what follows.
        schemas: State, input and output.
        policies: How the hooks' nodes are traced.
        context_schema: The type of the run's context.
    """

    plan: Plan
    steps: Mapping[str, Step]
    router: Router
    schemas: Schemas
    policies: Mapping[str, TracePolicy]
    context_schema: type | None

    def by_hook(self) -> StateGraph[Any, Any, Any, Any]:
        """One node per stop.

        A jump that an after_model hook did not declare is obeyed, but hardly ever comes: the hook has a plain edge, and
        the hooks after it pass the jump on to the last one, which chooses anyway.
        """
        builder = self._builder()
        passing = {stop.following for stop in self.plan.stops if _hands_on(stop)}
        whole = {*passing, self.plan.loop_entry, MODEL, TOOLS}  # the others need not read what hooks are not shown
        for name, step in self.steps.items():
            node = Node(self.plan[name], step, passes=name in passing)
            schema = self.schemas.state if name in whole else self.schemas.visible
            builder.add_node(name, node, input_schema=schema, trace_policy=self.policies.get(name))
        builder.add_edge(START, self.plan.entry)
        for stop in self.plan.stops:
            if len(stop.targets) == 1 or _hands_on(stop):
                builder.add_edge(stop.name, stop.following)
            else:
                route = HookRoute(stop, self.router, builder.channels)
                builder.add_conditional_edges(stop.name, route, list(stop.targets))
        return builder

    def by_turn(self) -> StateGraph[Any, Any, Any, Any]:
        """One node for the model and all hooks, one for the tools."""
        builder = self._builder()
        turn = TurnNode(self.steps, self.router, builder.channels)
        builder.add_node(MODEL, turn, input_schema=self.schemas.state)
        builder.add_edge(START, MODEL)
        tools = [TOOLS] if self.plan.has_tools else []
        fields = tuple(builder.channels)
        builder.add_conditional_edges(MODEL, TurnRoute(self.plan[MODEL], self.router, fields), [MODEL, *tools, END])
        for name in tools:
            builder.add_node(name, ToolsNode(self.plan[name], self.steps[name]), input_schema=self.schemas.state)
            if self.router.leads_back:
                builder.add_edge(name, MODEL)
            else:
                builder.add_conditional_edges(name, TurnRoute(self.plan[name], self.router, fields), [MODEL, END])
        return builder

    def can_fold(self) -> bool:
        """Whether the state's fields allow several stops in one node."""
        return can_fold(self._builder().channels)

    def can_go_through(self) -> bool:
        """Whether they allow a whole run in one: the engine counts its steps in managed fields."""
        return not self._builder().managed

    def _builder(self) -> StateGraph[Any, Any, Any, Any]:
        schemas = self.schemas
        return StateGraph(schemas.state, self.context_schema, input_schema=schemas.input, output_schema=schemas.output)


def _hands_on(stop: Stop) -> bool:
    """Whether it is a hook in the middle of the line that declared no jump."""
    return stop.kind == "after_model" and stop.is_straight and stop.rule == "line"


def without_reads(compiled: CompiledStateGraph[Any, Any, Any, Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph with its edges given what the nodes return, where LangGraph reads the state for every edge."""
    for name, branches in compiled.builder.branches.items():
        for label, branch in branches.items():
            if isinstance(branch.path, HookRoute | TurnRoute):
                without_reader(compiled, name, label)
    return compiled


assert END == "__end__"  # topology names it without importing LangGraph
