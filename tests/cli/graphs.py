"""Graphs for the tests of pictures."""

import operator
from typing import Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send

from tests.cli.shop import support


class State(TypedDict, total=False):
    found: Annotated[list[str], operator.add]


def work(state: State) -> State:
    return {"found": []}


def route(state: State) -> str:
    return "ok"


def each(state: State) -> list[Send]:
    return [Send("score", {"found": [one]}) for one in state["found"]]


def goes(state: State) -> Command[Literal["score"]]:
    return Command(goto="score")


def _builder(*names: str) -> StateGraph[Any, Any, Any, Any]:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in names:
        builder.add_node(name, work)
    return builder


def thirty() -> StateGraph[Any, Any, Any, Any]:
    """Thirty nodes: a fan-out of twelve, a long line, a decision that leads back, a way past everything."""
    searches = [f"search_{number:02}" for number in range(12)]
    line = [f"step_{number}" for number in range(9)]
    builder = _builder("plan", *searches, *line, "review", "publish", "revise", "escalate", "archive", "audit", "log")
    builder.add_node("merge", work, defer=True)
    builder.add_edge(START, "plan")
    for name in searches:
        builder.add_edge("plan", name)
        builder.add_edge(name, "merge")
    for first, then in zip(["merge", *line], [*line, "review"], strict=True):
        builder.add_edge(first, then)
    builder.add_conditional_edges("review", route, {"ok": "publish", "again": "revise", "stuck": "escalate"})
    builder.add_edge("revise", "step_2")
    builder.add_edge("plan", "audit")
    for name in ("publish", "escalate", "audit"):
        builder.add_edge(name, "archive")
    builder.add_edge("archive", "log")
    builder.add_edge("log", END)
    return builder


def joined() -> Any:
    """A list edge, a `Send`, a `Command` and a pause."""
    builder = _builder("fetch_cve", "fetch_cvss", "score", "tell")
    builder.add_node("choose", goes)
    builder.add_edge(START, "fetch_cve")
    builder.add_edge(START, "fetch_cvss")
    builder.add_edge(["fetch_cve", "fetch_cvss"], "choose")
    builder.add_conditional_edges("fetch_cvss", each, ["score"])
    builder.add_edge("score", "tell")
    return builder.compile(interrupt_before=["tell"])


def nested() -> Any:
    """A sub-graph and an agent beside each other."""
    inner = _builder("normalise", "describe")
    inner.add_edge(START, "normalise")
    inner.add_edge("normalise", "describe")
    builder = _builder("before", "after")
    builder.add_node("inner", inner.compile())
    builder.add_node("agent", support)
    builder.add_edge(START, "before")
    for name in ("inner", "agent"):
        builder.add_edge("before", name)
        builder.add_edge(name, "after")
    return builder.compile()
