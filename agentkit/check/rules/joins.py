"""Rules about branches that meet: unequal lengths, joins that wait in vain, deferred nodes."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.check.findings import Severity
from agentkit.check.mending import branches_into
from agentkit.check.rule import Given, Hit, rule
from agentkit.check.supersteps import Doubled, Starved

__all__ = ["deferred_waits_for_all", "join_over_choice", "unequal_fan_in"]


@rule("AK101", "unequal-fan-in", "error")
def unequal_fan_in(given: Given) -> Iterator[Hit]:
    """Branches of unequal length meet in a node, so it runs once for each of them, and so does everything after it.

    ## Why it bites

    A plain edge starts its target in the next super-step, whoever else is still on the way. If one branch needs one
    node and the other two, the target runs for the short one and again for the long one. Its effects happen twice, its
    model calls are paid twice, and the first time it sees a state that is half done. The finding says in which
    super-steps it would run, found by walking the engine's clock over the drawn edges; a condition is followed into
    each of its ends.

    ## Mend it

    - `agentkit.barrier(builder, sources, target)` makes the target wait for every branch; alternatives, of which only
      one is taken, go into a tuple. The finding names the call, tried on the graph before it is proposed.
    - A list edge, `add_edge(["a", "b"], "target")`, if every source runs in every run.
    - `add_node("target", f, defer=True)` waits for everything in the graph that still runs, not only for its own
      branches.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        text: str

    def nothing(state: State) -> None: ...

    builder = StateGraph(State)
    for name in ("split", "short", "long", "longer", "join"):
        builder.add_node(name, nothing)
    builder.add_edge(START, "split")
    builder.add_edge("split", "short")
    builder.add_edge("split", "long")
    builder.add_edge("long", "longer")
    builder.add_edge("longer", "join")
    builder.add_edge("short", "join")

    finding = check(builder).findings[0]
    print(finding.code, finding.node)  # -> AK101 join
    print(finding.message)  # -> runs in super-steps 3 and 4, once for each branch that arrives
    print(finding.remedy)  # -> agentkit.barrier(builder, ['longer', 'short'], 'join')
    ```

    ## Passes

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit import barrier
    from agentkit.check import check

    class State(TypedDict):
        text: str

    def nothing(state: State) -> None: ...

    builder = StateGraph(State)
    for name in ("split", "short", "long", "longer", "join"):
        builder.add_node(name, nothing)
    builder.add_edge(START, "split")
    builder.add_edge("split", "short")
    builder.add_edge("split", "long")
    builder.add_edge("long", "longer")
    builder.add_edge("longer", "join")
    builder.add_edge("short", "join")
    barrier(builder, ["longer", "short"], "join")

    print(check(builder).codes)  # -> []
    ```
    """
    for doubled in given.walk.doubled.values():
        sources = branches_into(given.shape, doubled.node)
        if sources is not None:
            remedy = f"agentkit.barrier(builder, {sources!r}, {doubled.node!r})"
        else:
            remedy = f"add_node({doubled.node!r}, ..., defer=True), or a list edge from branches that always run"
        message = _runs_twice(doubled, given.walk.after.get(doubled.node, []))
        yield Hit(node=doubled.node, message=message, remedy=remedy, severity=_sureness(doubled.sure))


def _sureness(sure: bool) -> Severity | None:
    return None if sure else "warning"


def _runs_twice(doubled: Doubled, after: list[str]) -> str:
    chosen = doubled.witness.chosen()
    when = f" when {chosen}" if chosen else ""
    steps = _counted(doubled.witness.steps_of(doubled.node))
    downstream = f"; after it {_listed(after)} run again, too" if after else ""
    may = "" if doubled.sure else "may "
    runs = "run" if may else "runs"
    return f"{may}{runs} in super-steps {steps}{when}, once for each branch that arrives{downstream}"


@rule("AK102", "join-over-choice", "error")
def join_over_choice(given: Given) -> Iterator[Hit]:
    """A list edge waits for a node that a condition may skip, so its target never runs then.

    ## Why it bites

    `add_edge(["a", "b"], "c")` starts `c` when both have run. If a condition chose one of them, the other never
    arrives: `c` and everything after it is left out, and the run ends as if it had succeeded. An error if `c` runs in
    no case at all; a warning if it runs in some, which can be meant ("only when both").

    ## Mend it

    - Branches that exclude each other need no join: plain edges, `add_edge("a", "c")` and `add_edge("b", "c")`.
    - If one of several branches is a choice of two nodes: `agentkit.barrier(builder, ["x", ("a", "b")], "c")`.

    ## Fails

    ```python
    from typing import Literal, TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        text: str

    def nothing(state: State) -> None: ...

    def choose(state: State) -> Literal["a", "b"]:
        return "a" if state["text"] else "b"

    builder = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, nothing)
    builder.add_conditional_edges(START, choose)
    builder.add_edge(["a", "b"], "c")

    print(check(builder).codes)  # -> ['AK102']
    print([*builder.compile().stream({"text": "x"})])  # -> [{'a': None}]
    ```

    ## Passes

    ```python
    from typing import Literal, TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        text: str

    def nothing(state: State) -> None: ...

    def choose(state: State) -> Literal["a", "b"]:
        return "a" if state["text"] else "b"

    builder = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, nothing)
    builder.add_conditional_edges(START, choose)
    builder.add_edge("a", "c")
    builder.add_edge("b", "c")

    print(check(builder).codes)  # -> []
    ```
    """
    for starved in given.walk.starved.values():
        join = given.shape.joins[starved.join]
        never = starved.join not in given.walk.fired
        sources = ", ".join(map(repr, join.sources))
        yield Hit(
            node=join.target,
            message=_waits(starved, never),
            remedy=f"plain edges instead of add_edge([{sources}], {join.target!r}) if only one of them runs; or "
            f"agentkit.barrier with the nodes that exclude each other in a tuple",
            severity=None if never else "warning",
        )


def _waits(starved: Starved, never: bool) -> str:
    chosen = starved.witness.chosen()
    when = f" when {chosen}" if chosen else ""
    end = "it runs in no case" if never else "it is then left out"
    return f"waits for {_listed(sorted(starved.missing))}, which does not run{when}; {end}, and the run still ends well"


@rule("AK106", "deferred-waits-for-all", "note")
def deferred_waits_for_all(given: Given) -> Iterator[Hit]:
    """A deferred node waits for branches that have nothing to do with it.

    ## Why it bites

    `defer=True` means: when nothing else is left to run. It is often used as a join, but it also waits for every
    unrelated branch of the graph, however long that takes, and several deferred nodes start together at the very end.

    ## Mend it

    Where only its own branches matter, use a list edge or `agentkit.barrier`. If waiting for all is meant, silence the
    note.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        text: str

    def nothing(state: State) -> None: ...

    builder = StateGraph(State)
    for name in ("work", "audit", "audit_more"):
        builder.add_node(name, nothing)
    builder.add_node("answer", nothing, defer=True)
    builder.add_edge(START, "work")
    builder.add_edge("work", "answer")
    builder.add_edge(START, "audit")
    builder.add_edge("audit", "audit_more")

    print(check(builder).codes)  # -> ['AK106']
    ```

    ## Passes

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        text: str

    def nothing(state: State) -> None: ...

    builder = StateGraph(State)
    for name in ("work", "audit", "audit_more", "answer"):
        builder.add_node(name, nothing)
    builder.add_edge(START, "work")
    builder.add_edge("work", "answer")
    builder.add_edge(START, "audit")
    builder.add_edge("audit", "audit_more")

    print(check(builder).codes)  # -> []
    ```
    """
    for late in given.walk.late.values():
        yield Hit(
            node=late.node,
            message=f"is deferred, so it also waits for {_listed(sorted(late.waited_for))}, which does not lead to it",
            remedy="a list edge or agentkit.barrier waits only for the branches that lead to it",
        )


def _counted(numbers: list[int]) -> str:
    return " and ".join(", ".join(map(str, numbers)).rsplit(", ", 1))


def _listed(names: list[str]) -> str:
    return " and ".join(", ".join(map(repr, names)).rsplit(", ", 1))
