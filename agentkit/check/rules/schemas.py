"""Rules about how the state is declared and handed back: contradicting schemas, whole states that add up."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Final, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from langgraph.channels import BinaryOperatorAggregate

from agentkit.check.rule import Given, Hit, rule
from agentkit.check.shape import Shape
from agentkit.run import AgentGraph

__all__ = ["conflicting_field", "whole_state_returned"]

_ADDING: Final = (operator.add, operator.iadd, operator.concat, operator.iconcat)


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
