"""A graph as plain data: what the checks look at. Reading it runs none of the graph's code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from langgraph.channels import LastValue
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agentkit.check.bodies import Body, bodies_of, sends_many
from agentkit.check.leaving import led_to
from agentkit.check.returns import UNTOLD, Outcomes, Sent, outcomes
from agentkit.check.sources import Source, functions_of, is_library, read

__all__ = ["END", "START", "Choice", "Join", "NodeShape", "Shape", "shape_of"]


@dataclass(frozen=True, slots=True)
class Join:
    """A list edge: the target waits until all sources have run."""

    sources: tuple[str, ...]
    target: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Where a router, or a node's own `Command`, may send the run."""

    name: str
    ways: tuple[frozenset[str], ...]
    """The sets of nodes that are started together, one of which is chosen; `END` among them."""
    told: bool
    """Whether there is no other way; else the source does not tell."""
    path_map: Mapping[Any, str] | None = None
    returns: Outcomes = UNTOLD
    """What the router can return."""
    source: Source | None = None
    many: frozenset[str] = frozenset()
    """The nodes of which it may start several at once."""
    declared: frozenset[str] = frozenset()
    """The nodes that it says it may lead to."""

    @property
    def targets(self) -> frozenset[str]:
        """All nodes it may lead to, as far as it is told."""
        return self.declared.union(*self.ways)


@dataclass(frozen=True, slots=True)
class NodeShape:
    """One node."""

    name: str
    runnable: Any
    metadata: Mapping[str, Any] | None = None
    deferred: bool = False
    handles_errors: bool = False
    retries: bool = False
    input_schema: Any = None
    bodies: tuple[Body, ...] = ()

    @property
    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any] | None:
        """The compiled graph that the node is, if it is one."""
        found = getattr(self.runnable, "bound", self.runnable)
        return found if isinstance(found, CompiledStateGraph) else None

    @property
    def is_told(self) -> bool:
        """Whether it is known where the node's own commands may lead."""
        return bool(self.bodies) and all(body.is_told for body in self.bodies)

    @property
    def pauses(self) -> bool:
        """Whether it calls `interrupt`."""
        return any(body.pauses for body in self.bodies)


@dataclass(frozen=True)
class Shape:
    """A graph."""

    nodes: Mapping[str, NodeShape]
    edges: frozenset[tuple[str, str]]
    joins: tuple[Join, ...] = ()
    choices: Mapping[str, tuple[Choice, ...]] = field(default_factory=dict)
    builder: StateGraph[Any, Any, Any, Any] | None = None
    compiled: CompiledStateGraph[Any, Any, Any, Any] | None = None
    _reachable: dict[str, frozenset[str]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def following(self) -> Mapping[str, tuple[str, ...]]:
        """The targets of each node's plain edges, without the end, in a fixed order."""
        found: dict[str, list[str]] = {}
        for source, target in sorted(self.edges):
            if target != END:
                found.setdefault(source, []).append(target)
        return {source: tuple(targets) for source, targets in found.items()}

    @cached_property
    def plain_fields(self) -> frozenset[str]:
        """The state fields that take one write per super-step."""
        channels = self.builder.channels if self.builder is not None else {}
        return frozenset(name for name, channel in channels.items() if type(channel) is LastValue)

    @property
    def fields(self) -> frozenset[str]:
        """All state fields."""
        builder = self.builder
        return frozenset({*builder.channels, *builder.managed}) if builder is not None else frozenset()

    def successors(self, node: str) -> frozenset[str]:
        """Every node that may run right after this one, as far as it is told."""
        found = set(self.following.get(node, ()))
        found |= {join.target for join in self.joins if node in join.sources}
        for choice in self.choices.get(node, ()):
            found |= choice.targets
        return frozenset(found - {END})

    def is_open(self, node: str) -> bool:
        """Whether the node may also lead to nodes that the drawing does not tell."""
        return (node in self.nodes and not self.nodes[node].is_told) or self.routes_anywhere(node)

    def routes_anywhere(self, node: str) -> bool:
        """Whether a router or `Command` of the node may also lead to nodes that neither it nor its source names."""
        bodies = self.nodes[node].bodies if node in self.nodes else ()
        commands = any(body.source is not None and not body.gotos.complete for body in bodies)
        return commands or any(not choice.told for choice in self.choices.get(node, ()))

    def reachable(self, start: str) -> frozenset[str]:
        """Every node that is told to be reachable from one, itself left out unless it leads back to itself."""
        if start not in self._reachable:
            self._reachable[start] = self._follow(start)
        return self._reachable[start]

    def _follow(self, start: str) -> frozenset[str]:
        found: set[str] = set()
        left = list(self.successors(start))
        while left:
            node = left.pop()
            if node not in found:
                found.add(node)
                left += self.successors(node)
        return frozenset(found)


def shape_of(
    builder: StateGraph[Any, Any, Any, Any], compiled: CompiledStateGraph[Any, Any, Any, Any] | None = None
) -> Shape:
    """Read a graph."""
    nodes = {name: _node(name, spec) for name, spec in builder.nodes.items()}
    choices = {
        source: tuple(_choice(name, branch, builder) for name, branch in branches.items())
        for source, branches in builder.branches.items()
        if branches
    }
    for name, spec in builder.nodes.items():
        choices[name] = (*choices.get(name, ()), *_commands(nodes[name], spec.ends, builder))
    joins = tuple(Join(tuple(sources), target) for sources, target in sorted(builder.waiting_edges))
    return Shape(nodes, frozenset(builder.edges), joins, choices, builder, compiled)


def _node(name: str, spec: Any) -> NodeShape:
    return NodeShape(
        name=name,
        runnable=spec.runnable,
        metadata=spec.metadata,
        deferred=spec.defer,
        handles_errors=spec.is_error_handler,
        retries=spec.retry_policy is not None,
        input_schema=spec.input_schema,
        bodies=tuple(bodies_of(spec.runnable)),
    )


def _choice(name: str, branch: Any, builder: StateGraph[Any, Any, Any, Any]) -> Choice:
    forms = [form for form in functions_of(branch.path) if not is_library(form)]
    source = next((found for form in forms if (found := read(form)) is not None), None)
    returns = outcomes(source) if source is not None else UNTOLD
    known = {*builder.nodes, END}
    ways = {frozenset(_places(way, branch.ends)) & known for way in returns.ways}
    told = returns.complete or branch.ends is not None
    if not returns.complete and branch.ends is not None:
        ends = frozenset(branch.ends.values())
        ways = {ends} if returns.several else {*ways, *(frozenset({end}) for end in ends)}
    several = returns.several and not returns.complete
    return Choice(
        name=name,
        ways=tuple(sorted(filter(None, ways), key=sorted)),
        told=told and not several,
        path_map=branch.ends,
        returns=returns,
        source=source,
        many=sends_many(returns),
        declared=frozenset((branch.ends or {}).values()) & known,
    )


def _places(way: Iterable[Any], ends: Mapping[Any, str] | None) -> Iterator[str]:
    """The nodes that the values of a router stand for."""
    for each in way:
        if isinstance(each, Sent):
            yield each.node
        elif ends is not None:
            if each in ends:
                yield ends[each]
        elif isinstance(each, str):
            yield each


def _commands(node: NodeShape, ends: Any, builder: StateGraph[Any, Any, Any, Any]) -> Iterator[Choice]:
    """Where a node's own commands lead: as it declares, or as its source tells."""
    declared = frozenset(ends or ())
    found = Outcomes()
    for body in node.bodies:
        found |= body.gotos
    known = {*builder.nodes, END}
    ways = {frozenset(_places(way, None)) & known for way in found.ways}
    if declared and not (found.complete and found.ways):
        ways = {*ways, *(frozenset({end}) for end in declared)}
    ways = set(filter(None, ways))
    inside = led_to(node.runnable, node.bodies) & known  # not walked: what is inside may also do something else
    if ways or inside:
        source = next((body.source for body in node.bodies if body.source), None)
        told = found.complete or bool(declared)
        many = sends_many(found)
        declared = (declared & known) | inside
        yield Choice("Command", tuple(sorted(ways, key=sorted)), told, None, found, source, many, declared)
