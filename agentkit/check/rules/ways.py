"""Rules about ways through the graph: nodes that no edge leads to, loops without a way out, ends that are not drawn."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.check.rule import Given, Hit, rule
from agentkit.check.shape import END, START, Shape

__all__ = ["dead_end", "loop_without_exit", "unreachable_node"]


@rule("AK103", "unreachable-node", "error")
def unreachable_node(given: Given) -> Iterator[Hit]:
    """No edge, condition, `Send` or `Command` leads to a node, so it never runs.

    ## Why it bites

    LangGraph compiles such a graph without a word; a step that was meant to check or to save something is simply not
    there. Where a node can
    lead to places that its source does not tell, this is only a note; where a router or a
    `Command` can, nothing is said.

    ## Mend it

    Draw the missing edge, or remove the node. Where a function sends a run there in a way that cannot be read, declare
    it: `add_conditional_edges(source, router, [...])`, `-> Command[Literal["node"]]`, or `add_node(...,
    destinations=(...))`.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check


    class State(TypedDict):
        text: str


    def nothing(state: State) -> None: ...


    builder = StateGraph(State)
    builder.add_node("write", nothing)
    builder.add_node("review", nothing)
    builder.add_edge(START, "write")

    print(check(builder).codes)  # -> ['AK103']
    ```

    ## Passes

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from langgraph.types import Send
    from agentkit.check import check


    class State(TypedDict):
        text: str


    def nothing(state: State) -> None: ...


    def dispatch(state: State) -> list[Send]:
        return [Send("review", {"text": part}) for part in state["text"].split()]


    builder = StateGraph(State)
    builder.add_node("write", nothing)
    builder.add_node("review", nothing)
    builder.add_edge(START, "write")
    builder.add_conditional_edges("write", dispatch)

    print(check(builder).codes)  # -> []
    ```
    """
    shape = given.shape
    reached = shape.reachable(START)
    for name, node in shape.nodes.items():
        if node.handles_errors:
            reached |= shape.reachable(name)
    if any(shape.routes_anywhere(node) for node in (START, *reached)):
        return
    is_open = any(shape.is_open(node) for node in (START, *reached))
    for name, node in shape.nodes.items():
        if name not in reached and not node.handles_errors:
            yield Hit(
                node=name,
                message="no edge that is told leads here" if is_open else "nothing leads here, so it never runs",
                remedy="draw the edge, remove the node, or declare what leads here "
                "(a path map, Command[Literal[...]], destinations=)",
                severity="note" if is_open else None,
            )


@rule("AK104", "loop-without-exit", "error")
def loop_without_exit(given: Given) -> Iterator[Hit]:
    """A loop has no way out: once in it, a run ends only at the recursion limit.

    ## Why it bites

    Plain edges are always followed. If they form a circle, it goes round until `GraphRecursionError`, and everything
    that the loop has done, and what it has cost, was for nothing. The same holds for a circle of conditions that can
    only choose each other. A node in the loop that pauses for a person (`interrupt`) is a way out: the run ends there
    until it is resumed.

    ## Mend it

    Make one edge of the loop conditional, with an end that leaves it; and give the loop an explicit count in the state
    that the condition reads, since the recursion limit is an error and not a way out.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check


    class State(TypedDict):
        rounds: int


    def draft(state: State) -> State:
        return {"rounds": state["rounds"] + 1}


    def critic(state: State) -> None: ...


    builder = StateGraph(State)
    builder.add_node("draft", draft)
    builder.add_node("critic", critic)
    builder.add_edge(START, "draft")
    builder.add_edge("draft", "critic")
    builder.add_edge("critic", "draft")

    print(check(builder).codes)  # -> ['AK104']
    ```

    ## Passes

    ```python
    from typing import Literal, TypedDict
    from langgraph.graph import END, START, StateGraph
    from agentkit.check import check


    class State(TypedDict):
        rounds: int


    def draft(state: State) -> State:
        return {"rounds": state["rounds"] + 1}


    def critic(state: State) -> None: ...


    def again(state: State) -> Literal["draft", "__end__"]:
        return "draft" if state["rounds"] < 3 else END


    builder = StateGraph(State)
    builder.add_node("draft", draft)
    builder.add_node("critic", critic)
    builder.add_edge(START, "draft")
    builder.add_edge("draft", "critic")
    builder.add_conditional_edges("critic", again)

    print(check(builder).codes)  # -> []
    ```
    """
    shape = given.shape
    told: set[str] = set()
    for node in sorted(shape.reachable(START)):
        if node in told:
            continue
        loop = {node} | {other for other in shape.reachable(node) if node in shape.reachable(other)}
        if node not in shape.reachable(node) or any(_pauses(given, each) for each in loop):
            continue
        always = _always_followed(shape, node)
        if always or not _has_exit(shape, loop):
            loop = set(always) or loop
            told |= loop
            circle = (
                "the plain edges of the loop are always followed" if always else "every way leads back into the loop"
            )
            yield Hit(
                node=node,
                message=f"{circle} {', '.join(sorted(loop))}: it ends only at the recursion limit",
                remedy="make an edge of it conditional, with an end outside, and count the rounds in the state",
            )


def _pauses(given: Given, node: str) -> bool:
    compiled = given.shape.compiled
    stops = [*compiled.interrupt_before_nodes, *compiled.interrupt_after_nodes] if compiled is not None else []
    shape = given.shape.nodes.get(node)
    # A graph or a runnable inside may pause as well, and its code is not read here.
    inner = shape is not None and not shape.bodies and shape.runnable is not None
    return node in stops or "*" in stops or inner or (shape is not None and (shape.pauses or not shape.is_told))


def _always_followed(shape: Shape, node: str) -> list[str]:
    """The circle of plain edges that a node is on, if it is on one."""
    way, at = [node], [iter(shape.following.get(node, ()))]
    seen = {node}
    while at:
        target = next(at[-1], None)
        if target is None:
            at.pop()
            way.pop()
        elif target == node:
            return way
        elif target not in seen:
            seen.add(target)
            way.append(target)
            at.append(iter(shape.following.get(target, ())))
    return []


def _has_exit(shape: Shape, loop: set[str]) -> bool:
    for node in loop:
        ends = {target for source, target in shape.edges if source == node}
        ends |= {target for choice in shape.choices.get(node, ()) for target in choice.targets}
        ends |= shape.successors(node)
        if not ends <= loop or shape.is_open(node) or _may_stop(shape, node):
            return True
    return False


def _may_stop(shape: Shape, node: str) -> bool:
    """Whether a node may lead nowhere: it has only `Command` targets, and need not return one."""
    commands = [choice for choice in shape.choices.get(node, ()) if choice.name == "Command"]
    return bool(commands) and not shape.following.get(node) and len(commands) == len(shape.choices.get(node, ()))


@rule("AK105", "dead-end", "note")
def dead_end(given: Given) -> Iterator[Hit]:
    """A condition leads to a node that leads nowhere, in a graph that otherwise draws its ends.

    ## Why it bites

    LangGraph takes a node without an edge for an end. If the other ends of the graph are drawn to `END`, this one was
    probably forgotten, and what should follow it never runs. Only nodes that a condition chooses are looked at: a side
    branch that ends by itself is an everyday thing.

    ## Mend it

    Draw the edge that is missing, or `add_edge("node", END)`.

    ## Fails

    ```python
    from typing import Literal, TypedDict
    from langgraph.graph import END, START, StateGraph
    from agentkit.check import check


    class State(TypedDict):
        text: str


    def nothing(state: State) -> None: ...


    def choose(state: State) -> Literal["refund", "answer"]:
        return "answer"


    builder = StateGraph(State)
    builder.add_node("refund", nothing)
    builder.add_node("answer", nothing)
    builder.add_conditional_edges(START, choose)
    builder.add_edge("answer", END)

    print(check(builder).codes)  # -> ['AK105']
    ```

    ## Passes

    ```python
    from typing import Literal, TypedDict
    from langgraph.graph import END, START, StateGraph
    from agentkit.check import check


    class State(TypedDict):
        text: str


    def nothing(state: State) -> None: ...


    def choose(state: State) -> Literal["refund", "answer"]:
        return "answer"


    builder = StateGraph(State)
    builder.add_node("refund", nothing)
    builder.add_node("answer", nothing)
    builder.add_conditional_edges(START, choose)
    builder.add_edge("refund", END)
    builder.add_edge("answer", END)

    print(check(builder).codes)  # -> []
    ```
    """
    shape = given.shape
    drawn = {source for source, target in shape.edges if target == END}
    if not drawn:
        return
    choices = [each for every in shape.choices.values() for each in every if len(each.targets) > 1 or not each.told]
    chosen = frozenset().union(*(choice.targets for choice in choices))
    for node in sorted(chosen & shape.reachable(START) & shape.nodes.keys()):
        leads = node in drawn or shape.successors(node) or shape.choices.get(node) or shape.is_open(node)
        if not leads and shape.nodes[node].bodies and not any(body.leaves for body in shape.nodes[node].bodies):
            yield Hit(
                node=node,
                message="leads nowhere, while other nodes are drawn to the end",
                remedy=f"add_edge({node!r}, END), or the edge that is missing",
            )
