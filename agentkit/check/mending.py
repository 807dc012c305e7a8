"""`barrier`: makes branches of unequal length meet once. And which branches can be alternatives of each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from langgraph.graph import END, START, StateGraph

from agentkit.check.shape import Choice, Join, NodeShape, Shape
from agentkit.check.supersteps import walk
from agentkit.errors import CannotJoin

__all__ = ["Branches", "barrier", "branches_into"]

Branches: TypeAlias = Sequence[str | Sequence[str]]
_MOST: Final = 5  # branches whose groupings are tried; there are 52 of five


def barrier(
    builder: StateGraph[Any, Any, Any, Any], sources: Branches, target: str, *, name: str | None = None
) -> StateGraph[Any, Any, Any, Any]:
    """Make a node wait until every branch that leads to it has arrived, so that it runs once.

    The edges from the sources to the target, plain and conditional, are led to a node that does nothing, which a list
    edge starts when all have arrived:

    ```python
    barrier(builder, ["describe", ("fetch_score", "fetch_statement")], "normalise")
    ```

    Args:
        builder: The graph, with its edges drawn, not yet compiled.
        sources: The nodes that lead to the target, one per branch. Nodes in a tuple are alternatives: exactly one of
            them leads on in a run, as when a condition goes to the target at once or by another node.
        target: The node that waits.
        name: The name of the new node. Default: `TARGET_barrier`.

    Returns:
        The builder.

    Raises:
        CannotJoin: If a source does not lead to the target, or leads there by a `Command`, which cannot be redirected.
    """
    name = name or f"{target}_barrier"
    groups = [(group,) if isinstance(group, str) else tuple(group) for group in sources]
    for source in (each for group in groups for each in group):
        _refuse(builder, source, target)
    arrivals = [_arrival(builder, group, target, name) for group in groups]
    builder.add_node(name, _nothing)
    builder.add_edge(arrivals, name)
    builder.add_edge(name, target)
    return builder


def _nothing(state: Any) -> None:
    """Only be there."""


def _refuse(builder: StateGraph[Any, Any, Any, Any], source: str, target: str) -> None:
    branches = builder.branches.get(source, {}).values()
    if (source, target) in builder.edges or any(_leads(branch, target) for branch in branches):
        return
    spec = builder.nodes.get(source)
    if source == START or spec is None:
        raise CannotJoin(source, target, "it is not a node that leads there")
    if target in (spec.ends or ()):
        raise CannotJoin(source, target, "its `Command` goes there, and only its own code can change that")
    raise CannotJoin(source, target, "no edge leads there; draw the edges first")


def _leads(branch: Any, target: str) -> bool:
    return branch.ends is None or target in branch.ends.values()


def _arrival(builder: StateGraph[Any, Any, Any, Any], group: Sequence[str], target: str, name: str) -> str:
    """The node whose end means that a branch has arrived."""
    routed = any(_leads(branch, target) for source in group for branch in builder.branches.get(source, {}).values())
    if len(group) == 1 and not routed:
        builder.edges.remove((group[0], target))
        return group[0]
    arrival = f"{name}_{group[0]}"
    builder.add_node(arrival, _nothing)
    for source in group:
        if (source, target) in builder.edges:
            builder.edges.remove((source, target))
            builder.add_edge(source, arrival)
        for condition, branch in builder.branches.get(source, {}).items():
            ends = branch.ends or {node: node for node in (*builder.nodes, END)}
            led = {value: arrival if end == target else end for value, end in ends.items()}
            builder.branches[source][condition] = branch._replace(ends=led)
    return arrival


# ---- which branches are alternatives of each other


def branches_into(shape: Shape, target: str) -> list[str | tuple[str, ...]] | None:
    """The sources to give to `barrier`, so that the target runs once and is never waited for in vain.

    Every grouping is tried on the walk over the graph; None if none does, or if there are too many branches.
    """
    sources = sorted(node for node in shape.nodes if target in shape.successors(node))
    joined = any(join.target == target for join in shape.joins)
    if joined or not 2 <= len(sources) <= _MOST or any(_commands(shape, source, target) for source in sources):
        return None
    for groups in sorted(_groupings(sources), key=len, reverse=True):
        mended = _mended(shape, groups, target)
        seen = walk(mended)
        number = mended.joins.index(Join(tuple(map(_arrived, groups)), target))
        once = seen.doubled.keys().isdisjoint({target, *map(_arrived, groups)})
        if once and number in seen.fired and number not in seen.left_over:
            return [group[0] if len(group) == 1 else group for group in groups]
    return None


def _commands(shape: Shape, source: str, target: str) -> bool:
    return any(choice.name == "Command" and target in choice.targets for choice in shape.choices.get(source, ()))


def _groupings(names: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """All ways to put names into groups."""
    if not names:
        yield []
        return
    first, rest = names[0], names[1:]
    for groups in _groupings(rest):
        yield [(first,), *groups]
        for index, group in enumerate(groups):
            yield [*groups[:index], (first, *group), *groups[index + 1 :]]


def _arrived(group: Sequence[str]) -> str:
    return f"arrived: {'+'.join(group)}"


def _mended(shape: Shape, groups: Sequence[Sequence[str]], target: str) -> Shape:
    """The graph as `barrier` would draw it."""
    edges, choices, nodes = set(shape.edges), dict(shape.choices), dict(shape.nodes)
    for group in groups:
        arrived = _arrived(group)
        nodes[arrived] = NodeShape(arrived, None)
        for source in group:
            if (source, target) in edges:
                edges.remove((source, target))
                edges.add((source, arrived))
            choices[source] = tuple(_led(choice, target, arrived) for choice in choices.get(source, ()))
    joins = (*shape.joins, Join(tuple(map(_arrived, groups)), target))
    return replace(shape, nodes=nodes, edges=frozenset(edges), joins=joins, choices=choices, _reachable={})


def _led(choice: Choice, target: str, arrived: str) -> Choice:
    ways = tuple(frozenset(arrived if end == target else end for end in way) for way in choice.ways)
    return replace(choice, ways=ways)
