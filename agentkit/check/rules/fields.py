"""Rules about state fields: concurrent writes, fields that do not exist, contradicting declarations, whole states."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Final, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from langgraph.channels import BinaryOperatorAggregate

from agentkit.check.bodies import Writes
from agentkit.check.rule import Given, Hit, rule
from agentkit.check.shape import NodeShape, Shape
from agentkit.check.supersteps import Parallel
from agentkit.run import AgentGraph

__all__ = ["concurrent_write", "conflicting_field", "unknown_field", "whole_state_returned"]

_ADDING: Final = (operator.add, operator.iadd, operator.concat, operator.iconcat)


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
        outputs = node.graph.output_channels
        shared = {outputs} if isinstance(outputs, str) else set(outputs)
        return {} if isinstance(node.graph, AgentGraph) else dict.fromkeys(shared & shape.fields, True)
    ways = [_fields(shape, node, way) for body in node.bodies for way in body.writes]
    certain = all(way.known for body in node.bodies for way in body.writes)
    every = frozenset().union(*ways)
    return {name: certain and all(name in way for way in ways) for name in every}


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


@rule("AK303", "conflicting-field", "warning")
def conflicting_field(given: Given) -> Iterator[Hit]:
    """Two schemas of one graph declare a field with different types.

    ## Why it bites

    One declaration silently wins: for middlewares the later one, in a graph of your own the first. The code written for
    the other one then gets a list where it expects a string, or loses its reducer.

    ## Mend it

    Let them agree, rename one of the fields, or declare it in the agent's `state_schema`, which wins over all.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        order: str

    class Lookup(TypedDict):
        order: dict

    def look_up(state: Lookup) -> None: ...

    builder = StateGraph(State)
    builder.add_node("look_up", look_up)
    builder.add_edge(START, "look_up")

    print(check(builder).codes)  # -> ['AK303']
    ```

    ## Passes

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        order: str

    class Lookup(TypedDict):
        order: str

    def look_up(state: Lookup) -> None: ...

    builder = StateGraph(State)
    builder.add_node("look_up", look_up)
    builder.add_edge(START, "look_up")

    print(check(builder).codes)  # -> []
    ```
    """
    declared: dict[str, list[tuple[str, Any]]] = {}
    for label, schema in _schemas(given.shape):
        for name, annotation in _hints(schema).items():
            declared.setdefault(name, []).append((label, _kind(annotation)))
    for name, every in sorted(declared.items()):
        for (first, one), (second, two) in pairwise(every):
            if one is not None and two is not None and not (issubclass(one, two) or issubclass(two, one)):
                yield Hit(
                    message=f"{first} declares the state field {name!r} as {one.__name__}, {second} as {two.__name__}",
                    remedy=f"let them agree on {name!r}, or rename one of the fields",
                )
                break


def _schemas(shape: Shape) -> Iterator[tuple[str, Any]]:
    if isinstance(shape.compiled, AgentGraph):  # what it was merged from; the merged schema has no conflict left
        table = shape.compiled.agent.hooks
        if table is not None:
            yield from ((name, one.state_schema) for name, one in zip(table.names, table.middleware, strict=True))
    elif shape.builder is not None:
        yield from ((getattr(schema, "__name__", str(schema)), schema) for schema in shape.builder.schemas)


def _hints(schema: Any) -> dict[str, Any]:
    try:
        return get_type_hints(schema, include_extras=True)
    except (NameError, TypeError):
        return {}  # a schema that is no class with annotations, or names what is not there


def _kind(annotation: Any) -> type | None:
    """The plain class that a field's type is; None where it is not as simple as that."""
    while get_origin(annotation) in (Annotated, Required, NotRequired):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Union:
        return None
    kind = get_origin(annotation) or annotation
    return kind if isinstance(kind, type) and kind is not object and kind.__module__ == "builtins" else None


@rule("AK304", "whole-state-returned", "error")
def whole_state_returned(given: Given) -> Iterator[Hit]:
    """A node returns the state it was given, in a graph with a field that adds up.

    ## Why it bites

    What a node returns is an update. A field with `operator.add` gets its own content added once more each time, so a
    list doubles with every such node; and beside a parallel branch every plain field is written twice.

    ## Mend it

    Return only the fields that the node has changed.

    ## Fails

    ```python
    from operator import add
    from typing import Annotated, TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        log: Annotated[list[str], add]

    def report(state: State) -> State:
        print(state["log"])  # -> ['one']
        return state

    builder = StateGraph(State)
    builder.add_node("report", report)
    builder.add_edge(START, "report")

    print(builder.compile().invoke({"log": ["one"]}))  # -> {'log': ['one', 'one']}
    print(check(builder).codes)  # -> ['AK304']
    ```

    ## Passes

    ```python
    from operator import add
    from typing import Annotated, TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        log: Annotated[list[str], add]

    def report(state: State) -> None:
        print(state["log"])  # -> ['one']

    builder = StateGraph(State)
    builder.add_node("report", report)
    builder.add_edge(START, "report")

    print(builder.compile().invoke({"log": ["one"]}))  # -> {'log': ['one']}
    print(check(builder).codes)  # -> []
    ```
    """
    builder = given.shape.builder
    for node in given.shape.nodes.values() if builder is not None else ():
        assert builder is not None
        adding = [
            name
            for name in builder.schemas.get(node.input_schema, ())
            if isinstance(channel := builder.channels.get(name), BinaryOperatorAggregate)
            and channel.operator in _ADDING
        ]
        for way in (way for body in node.bodies for way in body.writes if way.whole):
            left = sorted(set(adding) - way.fields)
            if left:
                yield Hit(
                    node=node.name,
                    message=f"returns the state it was given, so {', '.join(left)} is added to itself",
                    remedy="return only the fields that it has changed",
                    place=way.place,
                )
