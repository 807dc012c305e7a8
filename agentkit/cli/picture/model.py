"""What a picture shows, as plain data: boxes in their order, and lines between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agentkit.check.shape import Shape, shape_of
from agentkit.check.stack import tools_of
from agentkit.errors import NoGraph
from agentkit.run import AgentGraph

__all__ = ["Box", "Line", "Picture", "picture_of"]

Kind: TypeAlias = Literal["end", "hook", "gate", "model", "tools", "pause", "node", "graph"]
_GATES: Final = frozenset({"Gates", "ModelCallLimitMiddleware", "ToolCallLimitMiddleware"})
_APPROVALS: Final = frozenset({"Approval", "HumanInTheLoopMiddleware"})
_GROUPS: Final = {"before_agent": "before agent", "before_model": "before model", "model": "model"} | {
    "after_model": "after model",
    "tools": "tools",
    "after_agent": "after agent",
}


@dataclass(frozen=True, slots=True)
class Box:
    """A node."""

    name: str
    label: str
    kind: Kind = "node"
    group: str = ""
    """The phase it belongs to."""
    note: str = ""
    """What is said beside it."""


@dataclass(frozen=True, slots=True)
class Line:
    """A way from one node to another."""

    source: str
    target: str
    chosen: bool = False
    """Whether it is taken only sometimes."""
    joined: bool = False
    """Whether the target waits for other sources as well."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes from top to bottom, and the lines between them."""

    title: str
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def picture_of(graph: Any) -> Picture:
    """Describe a graph.

    Raises:
        NoGraph: If it is none.
    """
    graph = getattr(graph, "bound", graph)
    if isinstance(graph, AgentGraph):
        return _of_agent(graph)
    if isinstance(graph, CompiledStateGraph):
        return _of_graph(shape_of(graph.builder, graph), graph.get_name())
    if isinstance(graph, StateGraph):
        return _of_graph(shape_of(graph), graph.state_schema.__name__)
    raise NoGraph(graph)


# ---- agents


def _of_agent(agent: AgentGraph) -> Picture:
    stops = agent.plan.stops
    wraps = {kind: _wraps(agent, f"wrap_{kind}_call") for kind in ("model", "tool")}
    owners = {hook.node: _kinds(hook.middleware) for hook in (agent.agent.hooks.hooks if agent.agent.hooks else ())}
    boxes = [Box(START, "start", "end")]
    for stop in stops:
        kind: Kind = "hook"
        note = ""
        if stop.kind == "model":
            kind, note = "model", _inside(wraps["model"])
        elif stop.kind == "tools":
            asked = [name for name, kinds in wraps["tool"] if kinds & _APPROVALS]
            kind = "pause" if asked else "tools"
            note = "; ".join(filter(None, [_inside(wraps["tool"]), *(f"{name} asks a person" for name in asked)]))
        elif owners.get(stop.name, frozenset()) & _GATES:
            kind, note = "gate", "gate"
        elif owners.get(stop.name, frozenset()) & _APPROVALS:
            kind, note = "pause", "asks a person"
        boxes.append(Box(stop.name, stop.name, kind, _GROUPS[stop.kind], note))
    boxes.append(Box(END, "end", "end"))
    lines = [Line(START, agent.plan.entry)]
    for stop in stops:
        shown = [target for target in stop.targets if target not in stop.hidden]
        lines += [Line(stop.name, target, chosen=not stop.is_straight) for target in shown]
    return Picture(agent.get_name(), tuple(boxes), tuple(lines))


def _wraps(agent: AgentGraph, phase: str) -> list[tuple[str, frozenset[str]]]:
    hooks = agent.agent.hooks.hooks if agent.agent.hooks else ()
    return [(hook.name, _kinds(hook.middleware)) for hook in hooks if hook.phase == phase]


def _kinds(middleware: object) -> frozenset[str]:
    return frozenset(kind.__name__ for kind in type(middleware).__mro__)


def _inside(wraps: Iterable[tuple[str, frozenset[str]]]) -> str:
    names = [name for name, _ in wraps]
    return f"inside {', '.join(names)}" if names else ""


# ---- any graph


def _of_graph(shape: Shape, title: str) -> Picture:
    lines: dict[tuple[str, str], Line] = {}
    for source, target in sorted(shape.edges):
        lines[source, target] = Line(source, target)
    for join in shape.joins:
        for source in join.sources:
            lines[source, join.target] = Line(source, join.target, joined=True)
    for source, choices in sorted(shape.choices.items()):
        for choice in choices:
            for target in sorted(choice.targets):
                lines.setdefault((source, target), Line(source, target, chosen=True))
    for node in shape.nodes:
        if not any(line.source == node for line in lines.values()):
            lines[node, END] = Line(node, END)
    names = _ordered(shape, lines)
    boxes = [Box(START, "start", "end"), *(_box(shape, name) for name in names), Box(END, "end", "end")]
    return Picture(title, tuple(boxes), tuple(lines.values()))


def _box(shape: Shape, name: str) -> Box:
    node = shape.nodes[name]
    compiled = shape.compiled
    stops = [*compiled.interrupt_before_nodes, *compiled.interrupt_after_nodes] if compiled is not None else []
    notes = ["deferred"] if node.deferred else []
    if node.pauses or name in stops:
        return Box(name, name, "pause", "", "; ".join([*notes, "asks a person"]))
    if tools := tools_of(node):
        return Box(name, name, "tools", "", "; ".join([*notes, f"runs {', '.join(tools)}"]))
    if node.graph is not None:
        return Box(name, name, "graph", "", "; ".join([*notes, "a graph of its own"]))
    return Box(name, name, "node", "", "; ".join(notes))


def _ordered(shape: Shape, lines: Mapping[tuple[str, str], Line]) -> list[str]:
    """The nodes, each after those that lead to it, as far as loops allow."""
    following: dict[str, list[str]] = {}
    for source, target in lines:
        following.setdefault(source, []).append(target)
    done: list[str] = []
    on_way: set[str] = set()

    def visit(node: str) -> None:
        if node in on_way:
            return
        on_way.add(node)
        for target in reversed(following.get(node, [])):
            visit(target)
        done.append(node)

    visit(START)
    for name in shape.nodes:
        visit(name)
    return [name for name in reversed(done) if name in shape.nodes]
