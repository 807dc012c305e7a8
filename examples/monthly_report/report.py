"""The report as a graph: a node per source, one after the other, and one that writes.

Each finished node is a checkpoint, so a run that was stopped anywhere goes on at the first one that is missing. No
model decides anything here; that is why it is a plain graph and no agent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import or_
from typing import Annotated, Any, TypeAlias

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from examples.monthly_report.sources import SOURCES, Source

__all__ = ["Graph", "Report", "Watch", "build", "pulled"]


class Report(TypedDict, total=False):
    """What is known of the month so far."""

    month: str
    figures: Annotated[dict[str, str], or_]
    """By the source's name."""
    text: str


def _nothing(source: Source) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class Watch:
    """How long each source takes, in seconds, and who is told when one is asked and has answered."""

    pace: float = 0.0
    asked: Callable[[Source], None] = field(default=_nothing)
    answered: Callable[[Source], None] = field(default=_nothing)


Graph: TypeAlias = CompiledStateGraph[Report, Watch, Report, Report]


def build(saver: BaseCheckpointSaver[Any]) -> Graph:
    """The graph, kept in this saver."""
    builder = StateGraph(Report, Watch)
    last = START
    for source in SOURCES:
        _add(builder, source)
        builder.add_edge(last, source.name)
        last = source.name
    builder.add_node("write", _write)
    builder.add_edge(last, "write")
    builder.add_edge("write", END)
    return builder.compile(checkpointer=saver, name="monthly_report")


def pulled(graph: Graph, month: str) -> int:
    """How many sources have answered already."""
    return len(graph.get_state({"configurable": {"thread_id": month}}).values.get("figures", {}))


def _add(builder: StateGraph[Report, Watch, Report, Report], source: Source) -> None:
    def pull(state: Report, *, runtime: Runtime[Watch]) -> Report:
        watch = runtime.context
        watch.asked(source)
        figure = source.pull(state["month"], watch.pace)
        watch.answered(source)
        return {"figures": {source.name: figure}}

    builder.add_node(source.name, pull)


def _write(state: Report) -> Report:
    width = max(len(source.title) for source in SOURCES)
    lines = [f"{source.title:<{width}}  {state['figures'][source.name]:>14}" for source in SOURCES]
    return {"text": "\n".join([f"Report for {state['month']}", "", *lines])}
