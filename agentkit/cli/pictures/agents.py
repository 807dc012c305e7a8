"""From an agent to a picture: the hooks of a phase in one box, gates and approvals marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import BaseTool

from agentkit.cli.pictures.parts import FINISH, START, Box, Kind, Link, Picture
from agentkit.hooks import Table
from agentkit.middleware import Approval, Gates
from agentkit.run import AgentGraph
from agentkit.topology import END, MODEL, TOOLS, Plan, Stop

__all__ = ["agent_picture"]

# In the order in which a turn meets them; `model` and `tools` are boxes of their own.
_PHASES: Final = ("before_agent", "before_model", "model", "after_model", "tools", "after_agent")
_LIMITS: Final = frozenset(("ModelCallLimitMiddleware", "ToolCallLimitMiddleware"))
_WIDTH: Final = 44  # of a line that lists names


def agent_picture(agent: AgentGraph) -> Picture:
    """A picture of an agent, in the order in which a turn meets its parts."""
    plan, hooks = agent.plan, agent.agent.hooks
    present = [phase for phase in _PHASES if any(stop.kind == phase for stop in plan.stops)]
    boxes = [
        Box(START, "start", "terminal"),
        *(_box(phase, agent, plan, hooks) for phase in present),
        Box(FINISH, "end", "terminal"),
    ]
    return Picture(tuple(boxes), tuple(_links(plan)))


def _box(phase: str, agent: AgentGraph, plan: Plan, hooks: Table | None) -> Box:
    middlewares = dict(zip(hooks.names, hooks.middleware, strict=True)) if hooks else {}
    if phase == MODEL:
        return Box(phase, phase, "model", tuple(_wraps(hooks, "wrap_model_call")), _pauses(agent, (MODEL,)))
    if phase == TOOLS:
        tools = _tools(agent)
        asked = {name for name, tool in tools.items() if any(_asks(m, name, tool) for m in middlewares.values())}
        lines = [f"{name}  (approval)" if name in asked else name for name in tools]
        marks = (("approval",) if asked else ()) + _pauses(agent, (TOOLS,))
        return Box(phase, phase, "tools", (*lines, *_wraps(hooks, "wrap_tool_call")), marks)
    stops = [stop for stop in plan.stops if stop.kind == phase]
    gated = [stop for stop in stops if stop.declared and _is_gate(middlewares.get(_name(stop)))]
    kind: Kind = "hooks"
    lines = [_line(stop, stop in gated) for stop in stops]
    marks = (("gate",) if gated else ()) + _pauses(agent, tuple(stop.name for stop in stops))
    return Box(phase, phase, kind, tuple(lines), marks)


def _line(stop: Stop, gate: bool) -> str:
    jumps = f"may jump to {', '.join(stop.declared)}" if stop.declared else ""
    told = ", ".join(filter(None, ("gate" if gate else "", jumps)))
    return f"{_name(stop)}  ({told})" if told else _name(stop)


def _name(stop: Stop) -> str:
    return stop.name.removesuffix(f".{stop.kind}")


def _wraps(hooks: Table | None, phase: Any) -> Iterator[str]:
    """The wraps around a call, outermost first, in lines of a readable length."""
    names = [row.name for row in hooks.of(phase)] if hooks else []
    line = "wrapped by" if names else ""
    for name in names:
        if len(line) + len(name) > _WIDTH:
            yield f"{line},"
            line = "  "
        line += f"{' ' if line in ('wrapped by', '  ') else ', '}{name}"
    if line:
        yield line


def _links(plan: Plan) -> Iterator[Link]:
    places = {stop.name: stop.kind for stop in plan.stops}
    found: dict[tuple[str, str], bool] = {(START, str(places[plan.entry])): False}
    for stop in plan.stops:
        for target in stop.targets:
            to = FINISH if target == END else str(places[target])
            if target in stop.hidden or (to == stop.kind and to not in (MODEL, TOOLS)) or to == str(stop.kind):
                continue
            key = (str(stop.kind), to)
            found[key] = found.get(key, True) and not stop.is_straight
    for (source, to), decided in found.items():
        yield Link(source, to, decided)


def _tools(agent: AgentGraph) -> Mapping[str, BaseTool]:
    spec = agent.builder.nodes.get(TOOLS)
    tools: Mapping[str, BaseTool] = getattr(spec.runnable, "tools_by_name", {}) if spec is not None else {}
    return tools


def _is_gate(middleware: AgentMiddleware[Any, Any, Any] | None) -> bool:
    return isinstance(middleware, Gates) or type(middleware).__name__ in _LIMITS


def _asks(middleware: AgentMiddleware[Any, Any, Any], name: str, tool: BaseTool) -> bool:
    """Whether a call of the tool may have to wait for a person."""
    if isinstance(middleware, Approval):
        return any(rule.may_cover(name, tool) for rule in middleware.policy)
    return name in (getattr(middleware, "interrupt_on", None) or {})  # LangChain's HumanInTheLoopMiddleware


def _pauses(agent: AgentGraph, nodes: tuple[str, ...]) -> tuple[str, ...]:
    told = (("pauses before", agent.interrupt_before_nodes), ("pauses after", agent.interrupt_after_nodes))
    return tuple(word for word, at in told if at == "*" or any(node in at for node in nodes))
