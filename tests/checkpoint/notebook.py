"""A plain LangGraph graph with histories that are stored step by step, sub-graphs, and a question to a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from agentkit import thread
from agentkit.checkpoint import Saver


def added(notes: list[str], writes: Sequence[list[str]]) -> list[str]:
    """All notes, in order; writing an old one again moves it to the end, so that order and repetition matter."""
    for write in writes:
        notes = [note for note in notes if note not in write] + write
    return notes


class Notes(TypedDict, total=False):
    notes: Annotated[list[str], DeltaChannel(added, snapshot_frequency=50)]
    rare: Annotated[list[str], DeltaChannel(added, snapshot_frequency=50)]
    turn: int


class Inner(TypedDict, total=False):
    notes: Annotated[list[str], DeltaChannel(added, snapshot_frequency=50)]
    mine: Annotated[list[str], DeltaChannel(added, snapshot_frequency=50)]


def notebook(saver: Saver, *, asks: bool = False, remembers: bool | None = None) -> Any:
    """The graph: two nodes, the second of them a sub-graph, which may ask and may have a memory of its own."""

    def first(state: Notes) -> dict[str, Any]:
        turn = state.get("turn", 0) + 1
        return {"notes": [f"first {turn}"], "turn": turn, **({"rare": [f"rare {turn}"]} if turn == 1 else {})}

    def ask(state: Inner) -> dict[str, Any]:
        answer = interrupt("go on?") if asks else "nobody asked"
        return {
            "notes": [f"inner {answer}", f"mine is {len(state.get('mine') or [])}"],
            "mine": [f"call {len(state['notes'])}"],
        }

    inner = StateGraph(Inner)
    inner.add_node("ready", lambda state: {"mine": ["ready"]})
    inner.add_node("ask", ask)
    inner.add_edge(START, "ready")
    inner.add_edge("ready", "ask")
    builder = StateGraph(Notes)
    builder.add_node("first", first)
    builder.add_node("second", inner.compile(checkpointer=remembers))
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    return builder.compile(checkpointer=saver)


def turns(graph: Any, number: int, name: str = "t") -> None:
    """Run a thread for a number of turns."""
    for turn in range(number):
        graph.invoke({"notes": [f"hi {turn}"]}, thread(name))


def states(graph: Any, name: str = "t") -> dict[str, Any]:
    """The values of every checkpoint of a thread, by id."""
    history = graph.get_state_history(thread(name))
    return {state.config["configurable"]["checkpoint_id"]: state.values for state in history}
