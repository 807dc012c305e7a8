"""`check`: every rule over a graph and the graphs inside it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.runnables import RunnableBinding
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from agentkit.check import rules
from agentkit.check.findings import SEVERITIES, Finding, Report, Suppressed, ignored
from agentkit.check.rule import RULES, Given, Hit, Rule
from agentkit.check.shape import NodeShape, shape_of
from agentkit.errors import NoGraph, UnknownRule

__all__ = ["check"]

_ENTERED = rules.__all__  # importing them has entered them into RULES


def check(
    graph: Any,
    *,
    ignore: Collection[str] = (),
    durable: bool = False,
    nested: bool = True,
    name: str | None = None,
) -> Report:
    """Look for what is wrong in a graph, without running any of it.

    Args:
        graph: A LangGraph `StateGraph`, a compiled one, or an agent of agentkit or LangChain.
        ignore: Codes of rules to leave out.
        durable: Whether threads have to outlive the process.
        nested: Whether graphs that are nodes of this one are looked at as well.
        name: What to call the graph in the report. Default: its own name.

    Returns:
        What was found, worst first. Empty if all is well.

    Raises:
        NoGraph: If it is no such graph.
        UnknownRule: If `ignore` names a code that there is not.
    """
    for code in ignore:
        if code not in RULES:
            raise UnknownRule(code, RULES)
    builder, compiled = _graph(graph)
    found = _Found()
    used = [rule for code, rule in RULES.items() if code not in ignore]
    saver = compiled.checkpointer if compiled is not None else None
    _Look(used, durable, saver, nested, found).at(builder, compiled)
    order = {severity: rank for rank, severity in enumerate(SEVERITIES)}
    found.findings.sort(key=lambda each: order[each.severity])  # stable: otherwise by rule and node
    return Report(
        subject=name or (compiled.get_name() if compiled is not None else builder.state_schema.__name__),
        findings=tuple(found.findings),
        suppressed=tuple(found.suppressed),
        complete=found.complete,
    )


def _graph(graph: Any) -> tuple[StateGraph[Any, Any, Any, Any], CompiledStateGraph[Any, Any, Any, Any] | None]:
    while isinstance(graph, RunnableBinding):
        graph = graph.bound
    if isinstance(graph, CompiledStateGraph):
        return graph.builder, graph
    if isinstance(graph, StateGraph):
        return graph, None
    raise NoGraph(graph)


@dataclass(slots=True)
class _Found:
    findings: list[Finding] = field(default_factory=list)
    suppressed: list[Suppressed] = field(default_factory=list)
    complete: bool = True


@dataclass(frozen=True, slots=True)
class _Look:
    rules: Sequence[Rule]
    durable: bool
    saver: Checkpointer
    nested: bool
    found: _Found

    def at(
        self,
        builder: StateGraph[Any, Any, Any, Any],
        compiled: CompiledStateGraph[Any, Any, Any, Any] | None,
        inside: tuple[str, ...] = (),
        around: frozenset[int] = frozenset(),
    ) -> None:
        """Look at one graph, and then at those inside it."""
        shape = shape_of(builder, compiled)
        given = Given(shape, bool(inside), self.durable, self.saver)
        for rule in self.rules:
            for hit in rule.find(given):
                self._keep(_finding(rule, hit, inside), shape.nodes.get(hit.node or ""))
        self.found.complete &= given.walk.complete
        for node in shape.nodes.values() if self.nested else ():
            inner = node.graph
            if inner is not None and id(inner) not in around:
                self.at(inner.builder, inner, (*inside, node.name), around | {id(inner)})

    def _keep(self, finding: Finding, node: NodeShape | None) -> None:
        silenced = ignored(node.metadata) if node is not None else {}
        if finding.code in silenced:
            self.found.suppressed.append(Suppressed(finding, silenced[finding.code]))
        elif finding not in self.found.findings:
            self.found.findings.append(finding)


def _finding(rule: Rule, hit: Hit, inside: tuple[str, ...]) -> Finding:
    finding = Finding(
        code=rule.code,
        name=rule.name,
        severity=hit.severity or rule.severity,
        message=hit.message,
        remedy=hit.remedy,
        node="/".join((*inside, hit.node)) if hit.node else None,
        edge=hit.edge,
        place=hit.place,
    )
    return replace(finding, node="/".join(inside)) if inside and not hit.node and not hit.edge else finding
