"""The plan of an agent: its stops and where each may lead, as frozen data. Knows nothing of LangGraph.

The plan is checked, printed, drawn and walked; nothing else decides what comes after what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

__all__ = ["END", "MODEL", "TOOLS", "Plan", "Stop", "plan"]

END: Final = "__end__"
MODEL: Final = "model"
TOOLS: Final = "tools"

Kind = Literal["before_agent", "before_model", "model", "after_model", "tools", "after_agent"]
Rule = Literal["line", "answer", "results"]
_JUMPS: Final = ("model", "tools", "end")


class HookRow(Protocol):
    """What the plan needs to know of a hook."""

    @property
    def node(self) -> str:
        """The name of its stop."""
        ...

    @property
    def jumps(self) -> tuple[str, ...]:
        """The jumps it declared."""
        ...


@dataclass(frozen=True, slots=True)
class Stop:
    """One step of the loop, and where it may lead."""

    name: str
    kind: Kind
    following: str
    """Where it leads when nothing else is decided."""
    rule: Rule = "line"
    """How the next stop is chosen: in line, by the model's answer, or by the tools' results."""
    jumps: tuple[tuple[str, str], ...] = ()
    """The `jump_to` values that are obeyed here, each with the stop it leads to."""
    declared: tuple[str, ...] = ()
    """Those that the hook itself declared."""
    targets: tuple[str, ...] = ()
    """Every stop the router can choose; the path map."""
    hidden: tuple[str, ...] = ()
    """Those of them that no healthy run takes (repair, undeclared jumps): routed, but not drawn."""

    @property
    def is_straight(self) -> bool:
        """Whether a healthy run can only go on to one stop from here, with nothing to decide."""
        return self.rule != "results" and not self.declared and len(self.targets) - len(self.hidden) == 1

    @property
    def allowed(self) -> tuple[str, ...]:
        """The `jump_to` values that are obeyed here."""
        return tuple(value for value, _ in self.jumps)

    def jump(self, to: object) -> str | None:
        """The stop that a `jump_to` value leads to from here, if it is obeyed."""
        return next((target for value, target in self.jumps if value == to), None)


@dataclass(frozen=True, slots=True)
class Plan:
    """The stops of an agent, in the order a turn meets them."""

    stops: tuple[Stop, ...]
    entry: str
    """Where a run starts."""
    loop_entry: str
    """Where each turn of the loop starts: the first before_model, or the model."""
    exit: str
    """Where every ending goes: the first after_agent to run, or the end."""
    by_name: dict[str, Stop] = field(repr=False, hash=False, compare=False, default_factory=dict)

    def __getitem__(self, name: str) -> Stop:
        """The stop of that name."""
        return self.by_name[name]

    @property
    def has_tools(self) -> bool:
        """Whether there is a tools step."""
        return TOOLS in self.by_name

    def __str__(self) -> str:
        """The plan as text: one line per stop, with where it may lead."""
        width = max(len(stop.name) for stop in self.stops)
        lines = [f"start -> {self.entry}"]
        for stop in self.stops:
            shown = [target for target in stop.targets if target not in stop.hidden]
            arrow = " | ".join("end" if target == END else target for target in shown)
            jumps = f"   (may jump: {', '.join(stop.declared)})" if stop.declared else ""
            lines.append(f"{stop.name:<{width}} -> {arrow}{jumps}")
        return "\n".join(lines)


def plan(
    before_agent: Sequence[HookRow],
    before_model: Sequence[HookRow],
    after_model: Sequence[HookRow],
    after_agent: Sequence[HookRow],
    *,
    tools: bool,
    structured: bool = False,
    return_direct: bool = False,
    wraps_model: bool = False,
) -> Plan:
    """Lay the hooks on one line, all sequences in list order; before_* keep it, after_* run reversed.

    Args:
        before_agent: Hooks that run once, first.
        before_model: Hooks that run before each model call.
        after_model: Hooks that run after each model call.
        after_agent: Hooks that run once, last.
        tools: Whether there is a tools step.
        structured: Whether a structured answer is asked for by a tool.
        return_direct: Whether a tool's result can be the answer.
        wraps_model: Whether a wrap can put results into the history.
    """
    ends = [row.node for row in reversed(after_agent)]
    loop_entry = before_model[0].node if before_model else MODEL
    path = _Path(loop_entry, ends[0] if ends else END, tools, structured)
    stops = [
        *_line(before_agent, "before_agent", loop_entry, path),
        *_line(before_model, "before_model", MODEL, path),
        *_answering(list(reversed(after_model)), path, drawn_again=structured or wraps_model or bool(after_model)),
        *([_results(path, return_direct)] if tools else []),
        *_line(list(reversed(after_agent)), "after_agent", END, path),
    ]
    entry = before_agent[0].node if before_agent else loop_entry
    return Plan(tuple(stops), entry, loop_entry, path.exit, {stop.name: stop for stop in stops})


@dataclass(frozen=True, slots=True)
class _Path:
    loop_entry: str
    exit: str
    tools: bool
    structured: bool

    def jumps(self, values: Sequence[str], end: str) -> tuple[tuple[str, str], ...]:
        """Jump values with the stops they lead to; a jump to the tools also needs where to go if no call is open."""
        places = {"model": self.loop_entry, "end": end, **({"tools": TOOLS} if self.tools else {})}
        return tuple((value, places[value]) for value in _JUMPS if value in values and value in places)


def _line(rows: Sequence[HookRow], kind: Kind, last: str, path: _Path) -> list[Stop]:
    """Hooks one after the other; the last leads to `last`."""
    nodes = [row.node for row in rows]
    stops = []
    for row, following in zip(rows, [*nodes[1:], last], strict=False):
        # From after_agent, "end" goes on with the rest of the chain, so that each hook runs once.
        jumps = path.jumps(row.jumps, following if kind == "after_agent" else path.exit)
        stops.append(_stop(row.node, kind, following, path, jumps=jumps, declared=row.jumps))
    return stops


def _answering(rows: Sequence[HookRow], path: _Path, *, drawn_again: bool) -> list[Stop]:
    """The model and the after_model hooks; the last of them decides what follows the answer."""
    names = [MODEL, *(row.node for row in rows)]
    # In an agent with tools or a structured answer LangChain obeys a jump that the last after_model hook did not
    # declare; here it is obeyed at every after_model hook, so that order does not change its meaning.
    everywhere = path.tools or path.structured
    stops = []
    for index, name in enumerate(names):
        row = rows[index - 1] if index else None
        declared = row.jumps if row else ()
        allowed = _JUMPS if row and everywhere else declared
        last = index == len(names) - 1
        stops.append(
            _stop(
                name,
                "after_model" if row else "model",
                path.exit if last else names[index + 1],
                path,
                rule="answer" if last else "line",
                jumps=path.jumps(allowed, path.exit),
                declared=declared,
                drawn_again=drawn_again and (path.tools or path.structured),
            )
        )
    return stops


def _results(path: _Path, return_direct: bool) -> Stop:
    hidden = (path.exit,) if not (return_direct or path.structured) else ()
    targets = _once(path.loop_entry, path.exit)
    return Stop(TOOLS, "tools", path.loop_entry, "results", targets=targets, hidden=hidden)


def _stop(
    name: str,
    kind: Kind,
    following: str,
    path: _Path,
    *,
    rule: Rule = "line",
    jumps: tuple[tuple[str, str], ...],
    declared: tuple[str, ...],
    drawn_again: bool = False,
) -> Stop:
    drawn = [following, *(target for value, target in jumps if value in declared)]
    routed = [following, *(target for _, target in jumps)]
    if any(value == "tools" for value, _ in jumps):
        routed.append(path.loop_entry)  # where a jump to the tools goes when no call is open
    if rule == "answer":
        drawn += [*([TOOLS] if path.tools else []), *([path.loop_entry] if drawn_again else [])]
        routed += [*([TOOLS] if path.tools else []), path.loop_entry]
    targets = _once(*routed)
    hidden = tuple(target for target in targets if target not in drawn)
    return Stop(name, kind, following, rule, jumps, declared, targets, hidden)


def _once(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
