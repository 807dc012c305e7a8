"""Rules about what is written into state fields: two writes at once, fields that do not exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from agentkit.check.bodies import Writes
from agentkit.check.rule import Given, Hit, rule
from agentkit.check.shape import NodeShape, Shape, shape_of
from agentkit.check.supersteps import Parallel
from agentkit.run import AgentGraph

__all__ = ["concurrent_write", "unknown_field"]


@rule("AK301", "concurrent-write", "error")
def concurrent_write(given: Given) -> Iterator[Hit]:
    """Nodes that run in one super-step write the same state field, and the field has no reducer.

    ## Why it bites

    A plain field takes one value per super-step; with two the run dies with `InvalidUpdateError`, often only under the
    condition that brings both branches together. Tasks that `Send` starts several times are such nodes by themselves. A
    compiled sub-graph writes all the fields it shares, also those that it has not changed. (An agent of agentkit as a
    node writes only what it changed.)

    ## Mend it

    Give the field a reducer (`Annotated[list[str], operator.add]`), or let each branch write a field of its own.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check


    class State(TypedDict):
        review: str


    def reviews_of_a(state: State) -> State:
        return {"review": "A is good"}


    def reviews_of_b(state: State) -> State:
        return {"review": "B is better"}


    builder = StateGraph(State)
    builder.add_node("a", reviews_of_a)
    builder.add_node("b", reviews_of_b)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")

    print(check(builder).codes)  # -> ['AK301']
    ```

    ## Passes

    ```python
    from operator import add
    from typing import Annotated, TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check


    class State(TypedDict):
        reviews: Annotated[list[str], add]


    def reviews_of_a(state: State) -> State:
        return {"reviews": ["A is good"]}


    def reviews_of_b(state: State) -> State:
        return {"reviews": ["B is better"]}


    builder = StateGraph(State)
    builder.add_node("a", reviews_of_a)
    builder.add_node("b", reviews_of_b)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")

    print(check(builder).codes)  # -> []
    ```
    """
    written = {name: _written(given.shape, node) for name, node in given.shape.nodes.items()}
    told: set[tuple[str, ...]] = set()
    for parallel in sorted(given.walk.parallel.values(), key=lambda each: each.nodes):
        one, two = parallel.nodes
        for name in sorted(written[one].keys() & written[two].keys() & given.shape.plain_fields):
            told.add((one, two))
            always = written[one][name] and written[two][name] and parallel.sure
            yield Hit(
                node=one,
                message=f"{_in_parallel(parallel)}, and both {'' if always else 'may '}write the field {name!r}, "
                "which has no reducer",
                remedy=f"a reducer for {name!r} (Annotated[..., operator.add]), or a field per branch",
                severity=None if always else "warning",
            )
    yield from _sent_to_itself(given, written)


def _sent_to_itself(given: Given, written: dict[str, dict[str, bool]]) -> Iterator[Hit]:
    many = {node for choices in given.shape.choices.values() for choice in choices for node in choice.many}
    for node in sorted(many & written.keys() & given.shape.reachable("__start__")):
        for name in sorted(written[node].keys() & given.shape.plain_fields):
            yield Hit(
                node=node,
                message=f"is sent to several times in one super-step, and writes the field {name!r}, which has no "
                "reducer",
                remedy=f"a reducer for {name!r} (Annotated[..., operator.add])",
                severity=None if written[node][name] else "warning",
            )


def _in_parallel(parallel: Parallel) -> str:
    _, two = parallel.nodes
    chosen = parallel.witness.chosen()
    when = f" when {chosen}" if chosen else ""
    return f"runs beside {two!r} in super-step {len(parallel.witness.steps)}{when}"


def _written(shape: Shape, node: NodeShape) -> dict[str, bool]:
    """The fields that a node writes, each with whether it always does."""
    if node.graph is not None:
        return {} if isinstance(node.graph, AgentGraph) else _of_graph(shape, node.graph)
    ways = [_fields(shape, node, way) for body in node.bodies for way in body.writes]
    certain = all(way.known for body in node.bodies for way in body.writes)
    every = frozenset().union(*ways)
    return {name: certain and all(name in way for way in ways) for name in every}


def _of_graph(shape: Shape, graph: CompiledStateGraph[Any, Any, Any, Any]) -> dict[str, bool]:
    """The fields that a sub-graph hands back: those its nodes write, and those it was given unchanged."""
    outputs = graph.output_channels
    shared = shape.fields & ({outputs} if isinstance(outputs, str) else set(outputs))
    inner = shape_of(graph.builder)
    written = {name for node in inner.nodes.values() for name in _written(inner, node)}
    given = set(graph.builder.schemas.get(graph.builder.input_schema, ()))
    return {name: name in given for name in shared & (written | given)}


def _fields(shape: Shape, node: NodeShape, way: Writes) -> frozenset[str]:
    if not way.whole or shape.builder is None:
        return way.fields
    return way.fields | frozenset(shape.builder.schemas.get(node.input_schema, ()))


@rule("AK302", "unknown-field", "warning")
def unknown_field(given: Given) -> Iterator[Hit]:
    """A node returns a field that no schema of the graph declares.

    ## Why it bites

    LangGraph drops it without a word: the value is computed, perhaps paid for, and lost. Mostly the name is misspelt,
    or the field was renamed in the schema only.

    ## Mend it

    Declare the field in the state schema, or correct the name.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check


    class State(TypedDict):
        order_id: str


    def look_up(state: State) -> dict:
        return {"orderid": "o-1"}


    builder = StateGraph(State)
    builder.add_node("look_up", look_up)
    builder.add_edge(START, "look_up")

    print(check(builder).codes)  # -> ['AK302']
    print(builder.compile().invoke({"order_id": ""}))  # -> {'order_id': ''}
    ```

    ## Passes

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check


    class State(TypedDict):
        order_id: str


    def look_up(state: State) -> dict:
        return {"order_id": "o-1"}


    builder = StateGraph(State)
    builder.add_node("look_up", look_up)
    builder.add_edge(START, "look_up")

    print(check(builder).codes)  # -> []
    ```
    """
    fields = given.shape.fields
    if "__root__" in fields:
        return
    for node in given.shape.nodes.values():
        named = {name: way for body in node.bodies for way in body.writes for name in way.fields}
        for name in sorted(named.keys() - fields):
            yield Hit(
                node=node.name,
                message=f"returns the field {name!r}, which no schema of the graph declares: the value is lost",
                remedy=f"declare {name!r} in the state schema, or correct the name ({', '.join(sorted(fields))})",
                place=named[name].place,
            )
