"""How threads and their steps are told: tables, changes, sizes, times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from agentkit.cli.screen import Mistake, printable

if TYPE_CHECKING:
    from agentkit.checkpoint.threads import Step

__all__ = ["age", "changes", "counted", "question", "size", "table", "when"]

_SPANS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_FOLDED: Final = ("thread", "changed")
_BRIEF: Final = 24  # characters of a value that are shown beside its name


def table(*columns: str) -> Table:
    """An empty table of these columns; those of free text are broken into lines where it is narrow."""
    empty = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        right = column in ("step", "steps", "size")
        empty.add_column(column, justify="right" if right else "left", no_wrap=column not in _FOLDED, overflow="fold")
    return empty


def changes(step: Step) -> Text:
    """What a step wrote: its messages one by one, other fields by name, with the value if it is short."""
    lines, others = [], []
    for name, values in step.changed.items():
        written = [one for value in values for one in (value if isinstance(value, list) else [value])]
        if name == "messages":
            lines += [_cut(_told(one)) for one in written]
        else:
            shown = _told(written[-1]) if written else ""
            others.append(f"{name} = {shown}" if 0 < len(shown) <= _BRIEF else name)
    text = Text("\n".join(lines))
    if others:
        text.append(printable(("\n" if lines else "") + ", ".join(others)), style="dim")
    return text


def _told(value: Any) -> str:
    """One written value in a few words."""
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

    if isinstance(value, AIMessage) and value.tool_calls:
        calls = ", ".join(f"{call['name']}({_arguments(call['args'])})" for call in value.tool_calls)
        return f"ai calls {calls}"
    if isinstance(value, ToolMessage):
        return f"tool {value.name or ''} {value.status}: {value.text}"
    if isinstance(value, BaseMessage):
        return f"{value.type} {str(value.text)!r}"
    if isinstance(value, Mapping) and "role" in value:
        return f"{value['role']} {str(value.get('content'))!r}"
    return str(value)


def _arguments(args: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in args.items())


def _cut(line: str) -> str:
    line = printable(" ".join(line.split()))
    return line if len(line) <= 100 else f"{line[:99]}…"


def question(value: Any) -> str:
    """What a thread waits for."""
    if isinstance(value, Mapping) and "name" in value and "args" in value:
        return f"a decision on {value['name']}({_arguments(value['args'])}), call {value.get('tool_call_id')}"
    return f"an answer to {value!r}"


def when(at: datetime) -> str:
    """A time, as the clock here shows it."""
    local = at.astimezone() if at.tzinfo else at.replace(tzinfo=UTC).astimezone()
    return f"{local:%Y-%m-%d %H:%M}"


def size(count: float) -> str:
    """A number of bytes in a unit that suits it."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def counted(number: int, what: str) -> str:
    """A number of things."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def age(text: str) -> timedelta:
    """A length of time as an option says it, such as `30d`.

    Raises:
        Mistake: If it says none.
    """
    match = re.fullmatch(r"(\d+)([smhdw])", text.strip())
    if match is None:
        raise Mistake(f"{text!r} is no length of time; write a number and one of s, m, h, d, w, such as 30d")
    return timedelta(**{_SPANS[match[2]]: int(match[1])})
