"""Rules about pauses and what they need: a saver, one that lasts, and nobody who swallows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentkit.check.bodies import bodies_of
from agentkit.check.rule import Given, Hit, rule
from agentkit.check.shape import NodeShape
from agentkit.check.stack import middleware_of, tools_of

__all__ = ["pause_swallowed", "pause_without_checkpointer", "saver_not_durable"]

_MEMORY: Final = frozenset({"InMemorySaver", "MemorySaver", "PersistentDict"})
_PAUSING: Final = frozenset({"HumanInTheLoopMiddleware"})


@rule("AK401", "pause-without-checkpointer", "error")
def pause_without_checkpointer(given: Given) -> Iterator[Hit]:
    """Something pauses (`interrupt`, an approval, `interrupt_before`), and the compiled graph has no checkpointer.

    ## Why it bites

    A pause is a checkpoint that somebody continues from. Without a saver the run ends at the pause, looks like a
    result, and can never be resumed. A builder that is not compiled yet, and a sub-graph, are not blamed: the saver
    comes with the outermost graph.

    ## Mend it

    `builder.compile(checkpointer=...)`, or `create_agent(..., checkpointer=...)`. Where a platform supplies the saver
    when the graph is deployed, ignore the rule.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt
    from agentkit.check import check

    class State(TypedDict):
        amount: int

    def confirm(state: State) -> State:
        return {"amount": interrupt("How much?")}

    builder = StateGraph(State)
    builder.add_node("confirm", confirm)
    builder.add_edge(START, "confirm")

    print(check(builder.compile()).codes)  # -> ['AK401']
    ```

    ## Passes

    ```python
    from typing import TypedDict
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt
    from agentkit.check import check

    class State(TypedDict):
        amount: int

    def confirm(state: State) -> State:
        return {"amount": interrupt("How much?")}

    builder = StateGraph(State)
    builder.add_node("confirm", confirm)
    builder.add_edge(START, "confirm")

    print(check(builder.compile(checkpointer=InMemorySaver())).codes)  # -> []
    ```
    """
    compiled = given.shape.compiled
    if compiled is None or given.nested or given.checkpointer:
        return
    remedy = "compile it with a checkpointer"
    for node in given.shape.nodes.values():
        for pause in (pause for body in node.bodies for pause in body.pauses):
            yield Hit(
                node=node.name,
                message="calls interrupt(), and there is no checkpointer",
                remedy=remedy,
                place=pause.place,
            )
        for name in _pausing_tools(node):
            yield Hit(
                node=node.name, message=f"tool {name!r} calls interrupt(), and there is no checkpointer", remedy=remedy
            )
    for name, one in middleware_of(given.shape):
        kinds = {kind.__name__ for kind in type(one).__mro__}
        if getattr(one, "pauses_tools", False) or kinds & _PAUSING:
            yield Hit(message=f"middleware {name} pauses for a person, and there is no checkpointer", remedy=remedy)
    for stop in ("interrupt_before", "interrupt_after"):
        if names := getattr(compiled, f"{stop}_nodes"):
            shown = names if isinstance(names, str) else ", ".join(names)
            yield Hit(message=f"{stop} pauses at {shown}, and there is no checkpointer", remedy=remedy)


def _pausing_tools(node: NodeShape) -> list[str]:
    return [name for name, tool in tools_of(node).items() if any(body.pauses for body in bodies_of(tool))]


@rule("AK402", "pause-swallowed", "error")
def pause_swallowed(given: Given) -> Iterator[Hit]:
    """`interrupt()` is called inside a `try` whose `except` takes the pause for a failure.

    ## Why it bites

    A pause is raised as an exception (`GraphInterrupt`, an `Exception`), so that it leaves the node. `except Exception`
    catches it: the run never pauses, and the code that handles failures runs instead, for instance a refund that nobody
    approved.

    ## Mend it

    Call `interrupt()` outside of the `try`, catch the exceptions that are meant by name, or let `GraphBubbleUp` pass
    first: `except GraphBubbleUp: raise`.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt
    from agentkit.check import check

    class State(TypedDict):
        amount: int

    def confirm(state: State) -> State:
        try:
            return {"amount": int(interrupt("How much?"))}
        except Exception:
            return {"amount": 0}

    builder = StateGraph(State)
    builder.add_node("confirm", confirm)
    builder.add_edge(START, "confirm")

    print(check(builder).codes)  # -> ['AK402']
    ```

    ## Passes

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt
    from agentkit.check import check

    class State(TypedDict):
        amount: int

    def confirm(state: State) -> State:
        answer = interrupt("How much?")
        try:
            return {"amount": int(answer)}
        except Exception:
            return {"amount": 0}

    builder = StateGraph(State)
    builder.add_node("confirm", confirm)
    builder.add_edge(START, "confirm")

    print(check(builder).codes)  # -> []
    ```
    """
    for node in given.shape.nodes.values():
        for pause in (pause for body in node.bodies for pause in body.pauses if pause.swallowed):
            yield Hit(
                node=node.name,
                message="an `except` around interrupt() catches the pause, so the run never stops",
                remedy="call interrupt() outside of the `try`, or `except GraphBubbleUp: raise` first",
                place=pause.place,
            )


@rule("AK403", "saver-not-durable", "error")
def saver_not_durable(given: Given) -> Iterator[Hit]:
    """Threads have to outlive the process, and the saver keeps them in its memory, or there is none.

    ## Why it bites

    A deploy or a crash forgets every conversation, and every approval that is waiting. In-memory savers are for tests
    and examples, so this is checked only when durability is asked for: `check(graph, durable=True)`, `agentkit check
    --durable`.

    ## Mend it

    A saver on a database: `SqliteSaver` on one machine, `PostgresSaver` beyond (the extras `sqlite` and `postgres`).

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        amount: int

    def book(state: State) -> None: ...

    builder = StateGraph(State)
    builder.add_node("book", book)
    builder.add_edge(START, "book")

    print(check(builder.compile(checkpointer=InMemorySaver()), durable=True).codes)  # -> ['AK403']
    ```

    ## Passes

    ```python
    from typing import TypedDict
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        amount: int

    def book(state: State) -> None: ...

    builder = StateGraph(State)
    builder.add_node("book", book)
    builder.add_edge(START, "book")

    with SqliteSaver.from_conn_string("threads.db") as saver:
        print(check(builder.compile(checkpointer=saver), durable=True).codes)  # -> []
    ```
    """
    if not given.durable or given.nested or given.shape.compiled is None:
        return
    remedy = "a saver on a database: SqliteSaver, PostgresSaver"
    if not given.checkpointer:
        yield Hit(message="threads have to outlive the process, and there is no checkpointer", remedy=remedy)
    elif kinds := _MEMORY & {kind.__name__ for kind in type(given.checkpointer).__mro__}:
        yield Hit(
            message=f"threads have to outlive the process, and {min(kinds)} keeps them in its memory", remedy=remedy
        )
