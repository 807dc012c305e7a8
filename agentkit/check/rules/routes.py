"""Rules about where routers, `Command` and `Send` lead: targets that are missing, and edges that run beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentkit._compat import is_jump_edge
from agentkit.check.returns import Sent
from agentkit.check.rule import Given, Hit, rule
from agentkit.check.shape import END, Choice, Shape
from agentkit.check.sources import functions_of

__all__ = ["goto_beside_edge", "missing_target", "unknown_target"]


@rule("AK201", "target-missing-from-path-map", "error")
def missing_target(given: Given) -> Iterator[Hit]:
    """A router can return a value that its path map does not have.

    ## Why it bites

    The run dies with a bare `KeyError` in the router, on exactly the rare way that was not tried. The path map is a
    dict, a list of names, or the `Literal` of the router's return type. What the router can return is read from its
    source: constants, also from variables and functions it calls. LangChain agents are asked as well: a hook that
    declares `can_jump_to=["model"]` and is itself the first of the loop cannot take that jump.

    ## Mend it

    Add the value to the path map, or return one that is there.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import END, START, StateGraph
    from agentkit.check import check


    class State(TypedDict):
        score: int


    def nothing(state: State) -> None: ...


    def route(state: State) -> str:
        if state["score"] > 9:
            return "escalate"
        return "answer" if state["score"] else "done"


    builder = StateGraph(State)
    builder.add_node("answer", nothing)
    builder.add_conditional_edges(START, route, {"answer": "answer", "done": END})

    print(check(builder).codes)  # -> ['AK201']
    ```

    ## Passes

    ```python
    from typing import TypedDict
    from langgraph.graph import END, START, StateGraph
    from agentkit.check import check


    class State(TypedDict):
        score: int


    def nothing(state: State) -> None: ...


    def route(state: State) -> str:
        if state["score"] > 9:
            return "escalate"
        return "answer" if state["score"] else "done"


    builder = StateGraph(State)
    builder.add_node("answer", nothing)
    builder.add_node("human", nothing)
    builder.add_conditional_edges(START, route, {"answer": "answer", "escalate": "human", "done": END})

    print(check(builder).codes)  # -> []
    ```
    """
    for node, choices in given.shape.choices.items():
        for choice in choices:
            if choice.path_map is None:
                continue
            for value in _unmapped(choice):
                known = ", ".join(map(repr, choice.path_map))
                yield Hit(
                    node=None if node == "__start__" else node,
                    edge=(node, repr(value)) if node == "__start__" else None,
                    message=f"router {choice.name!r} can return {value!r}, which its path map ({known}) lacks",
                    remedy=f"add {value!r} to the path map",
                    place=choice.source.place(choice.source.tree) if choice.source else None,
                )
    yield from _missing_jumps(given.shape)


def _unmapped(choice: Choice) -> list[Any]:
    returned = {each for way in choice.returns.ways for each in way if not isinstance(each, Sent)}
    return sorted((each for each in returned if each not in (choice.path_map or ())), key=str)


def _missing_jumps(shape: Shape) -> Iterator[Hit]:
    """Jumps that a hook of LangChain's agent declares, and that its edge cannot take."""
    builder = shape.builder
    for node, branches in (builder.branches if builder is not None else {}).items():
        hooks = functions_of(shape.nodes[node].runnable) if node in shape.nodes else []
        jumps = {jump for hook in hooks for jump in getattr(hook, "__can_jump_to__", ())}
        for branch in branches.values():
            for edge in functions_of(branch.path):
                if not is_jump_edge(edge):
                    continue
                for jump in sorted(jumps):
                    target = edge({"jump_to": jump})  # LangChain's own function, which only reads this entry
                    if branch.ends is not None and target not in branch.ends.values():
                        yield Hit(
                            node=node,
                            message=f"declares a jump to {jump!r}, which leads to {target!r}, but its edge has no way "
                            "there: the run dies with a KeyError",
                            remedy="agentkit.create_agent draws this edge; or let another hook jump",
                        )


@rule("AK202", "unknown-target", "error")
def unknown_target(given: Given) -> Iterator[Hit]:
    """A `Command`, a `Send` or a router without a path map names a node that does not exist.

    ## Why it bites

    Compiling cannot see it. At run time LangGraph ignores a `goto` or a router's answer to an unknown node, so the run
    ends there as if it had succeeded, and refuses a `Send` to one.

    ## Mend it

    Correct the name. For a node of the graph around this one, say so: `Command(graph=Command.PARENT, goto=...)`.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from langgraph.types import Command
    from agentkit.check import check


    class State(TypedDict):
        text: str


    def triage(state: State) -> Command:
        return Command(goto="anwser")


    def answer(state: State) -> None: ...


    builder = StateGraph(State)
    builder.add_node("triage", triage)
    builder.add_node("answer", answer)
    builder.add_edge(START, "triage")

    print(check(builder, ignore=["AK103"]).codes)  # -> ['AK202']
    ```

    ## Passes

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from langgraph.types import Command
    from agentkit.check import check


    class State(TypedDict):
        text: str


    def triage(state: State) -> Command:
        return Command(goto="answer")


    def answer(state: State) -> None: ...


    builder = StateGraph(State)
    builder.add_node("triage", triage)
    builder.add_node("answer", answer)
    builder.add_edge(START, "triage")

    print(check(builder).codes)  # -> []
    ```
    """
    known = {*given.shape.nodes, END}
    for node, choices in given.shape.choices.items():
        for choice in choices:
            for name, how in _named(choice):
                if name not in known:
                    yield Hit(
                        node=None if node == "__start__" else node,
                        edge=(node, name) if node == "__start__" else None,
                        message=f"{how} {name!r}, and there is no such node",
                        remedy=f"one of {', '.join(map(repr, sorted(given.shape.nodes)))}",
                        place=choice.source.place(choice.source.tree) if choice.source else None,
                    )
    yield from _nowhere(given.shape, known)


def _nowhere(shape: Shape, known: set[str]) -> Iterator[Hit]:
    """Commands of which no target exists; they make no choice."""
    for node in shape.nodes.values():
        if any(choice.name == "Command" for choice in shape.choices.get(node.name, ())):
            continue
        for body in node.bodies:
            for name in sorted({_target(each) for way in body.gotos.ways for each in way} - known):
                yield Hit(
                    node=node.name,
                    message=f"its `Command` goes to {name!r}, and there is no such node",
                    remedy=f"one of {', '.join(map(repr, sorted(shape.nodes)))}",
                    place=body.source.place(body.source.tree) if body.source else None,
                )


def _target(each: Any) -> str:
    return each.node if isinstance(each, Sent) else str(each)


def _named(choice: Choice) -> list[tuple[str, str]]:
    """The nodes that a choice names itself, each with how."""
    found = {
        (each.node, "sends to") if isinstance(each, Sent) else (str(each), f"{choice.name!r} goes to")
        for way in choice.returns.ways
        for each in way
        if isinstance(each, Sent) or choice.path_map is None
    }
    return sorted(found)


@rule("AK203", "goto-beside-edge", "warning")
def goto_beside_edge(given: Given) -> Iterator[Hit]:
    """A node returns `Command(goto=...)` and has a plain edge as well: both are followed.

    ## Why it bites

    A `goto` does not replace the edge, it adds to it. "Go to the human, else go on" does both, and the branch that
    should have been left runs beside the other.

    ## Mend it

    Leave only one of them: remove the edge and return a `Command` on every way out, or use a conditional edge.

    ## Fails

    ```python
    from typing import Literal, TypedDict
    from langgraph.graph import START, StateGraph
    from langgraph.types import Command
    from agentkit.check import check


    class State(TypedDict):
        risky: bool


    def triage(state: State) -> Command[Literal["human"]]:
        return Command(goto="human") if state["risky"] else Command()


    def nothing(state: State) -> None: ...


    builder = StateGraph(State)
    builder.add_node("triage", triage)
    builder.add_node("refund", nothing)
    builder.add_node("human", nothing)
    builder.add_edge(START, "triage")
    builder.add_edge("triage", "refund")

    print(check(builder).codes)  # -> ['AK203']
    ```

    ## Passes

    ```python
    from typing import Literal, TypedDict
    from langgraph.graph import START, StateGraph
    from langgraph.types import Command
    from agentkit.check import check


    class State(TypedDict):
        risky: bool


    def triage(state: State) -> Command[Literal["human", "refund"]]:
        return Command(goto="human" if state["risky"] else "refund")


    def nothing(state: State) -> None: ...


    builder = StateGraph(State)
    builder.add_node("triage", triage)
    builder.add_node("refund", nothing)
    builder.add_node("human", nothing)
    builder.add_edge(START, "triage")

    print(check(builder).codes)  # -> []
    ```
    """
    for node, choices in given.shape.choices.items():
        plain = set(given.shape.following.get(node, ()))
        gotos = frozenset().union(*(choice.targets for choice in choices if choice.name == "Command")) - plain
        if plain and gotos:
            edge, goto = sorted(plain)[0], sorted(gotos)[0]
            yield Hit(
                node=node,
                message=f"may go to {goto!r} by a `Command`, and its edge to {edge!r} is followed all the same",
                remedy="remove the edge and return a `Command` on every way out",
            )
