"""Results of tool calls as JSON text, and back as what they were; what cannot come back is refused by name.

Plain data stands there as it is, everything else as `{"~": name, "value": ...}`. Reading builds nothing but the types
of this table, whatever the text says.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Command, Overwrite, Send

from agentkit.errors import UnreadableValue, UnrecordableResult

__all__ = ["as_result", "dumps", "loads"]

_TAG: Final = "~"
_PLAIN: Final = (str, int, bool, type(None))
_MESSAGES: Final = {
    kind.__name__: kind for kind in (AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage)
}

# By type: its name, its parts as plain data or as values to be encoded in turn, and how it is made of them.
_TYPES: Final[dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    float: ("float", str, float),  # the ones that JSON has no word for
    tuple: ("tuple", list, tuple),
    set: ("set", list, set),
    frozenset: ("frozenset", list, frozenset),
    bytes: ("bytes", lambda value: b64encode(value).decode(), b64decode),
    datetime: ("datetime", datetime.isoformat, datetime.fromisoformat),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    timedelta: (
        "timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda value: timedelta(*value),
    ),
    Decimal: ("Decimal", str, Decimal),
    UUID: ("UUID", str, UUID),
    type(Path()): ("Path", str, Path),
    dict: ("dict", lambda value: [list(pair) for pair in value.items()], dict),  # with keys that are no plain text
    Command: (
        "Command",
        lambda value: {name: getattr(value, name) for name in ("graph", "update", "resume", "goto")},
        lambda value: Command(**value),
    ),
    Send: ("Send", lambda value: [value.node, value.arg], lambda value: Send(*value)),
    Overwrite: ("Overwrite", lambda value: value.value, Overwrite),
}
_MAKE: Final = {name: make for name, _, make in _TYPES.values()}


def dumps(result: Any, tool: str) -> str:
    """A result as JSON text.

    Args:
        result: What the tools step gives for a call: messages, commands, lists of them.
        tool: The name of the tool, for the error.

    Raises:
        UnrecordableResult: If a part of it could not come back as what it was.
    """
    return json.dumps(_encoded(result, tool, "it"))


def loads(text: str) -> Any:
    """The result that `dumps` made a text of.

    Raises:
        UnreadableValue: If the text holds a type that `dumps` does not write.
    """
    return _decoded(json.loads(text))


def as_result(value: Any, name: str, call_id: str) -> Any:
    """What a tool returns, as the tools step would give it: messages and commands as they are, data in a message."""
    if isinstance(value, ToolMessage | Command) or (
        isinstance(value, list) and value and all(isinstance(one, ToolMessage | Command) for one in value)
    ):
        return value
    blocks = isinstance(value, list) and all(isinstance(one, str) or _is_block(one) for one in value)
    content: Any = value if blocks or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return ToolMessage(content, name=name, tool_call_id=call_id)


def _is_block(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str)


def _encoded(value: Any, tool: str, where: str) -> Any:
    kind = type(value)
    if kind in _PLAIN or (kind is float and isfinite(value)):
        return value
    if kind is list:
        return [_encoded(one, tool, f"{where}[{n}]") for n, one in enumerate(value)]
    if kind is dict and all(type(key) is str for key in value) and _TAG not in value:
        return {key: _encoded(one, tool, f"{where}[{key!r}]") for key, one in value.items()}
    if isinstance(value, BaseMessage) and _MESSAGES.get(kind.__name__) is kind:
        return {_TAG: kind.__name__, "value": _encoded_fields(_parts_of(value), tool, where)}
    if kind not in _TYPES:
        _refuse(value, tool, where)
    name, parts, _ = _TYPES[kind]
    if kind is Command:
        return {_TAG: name, "value": _encoded_fields(parts(value), tool, where)}
    return {_TAG: name, "value": _encoded(parts(value), tool, where)}


def _encoded_fields(fields: Mapping[str, Any], tool: str, where: str) -> dict[str, Any]:
    return {name: _encoded(value, tool, f"{where}.{name}") for name, value in fields.items()}


def _parts_of(message: BaseMessage) -> dict[str, Any]:
    declared = message.model_fields_set & type(message).model_fields.keys()
    return {**{name: getattr(message, name) for name in sorted(declared)}, **(message.model_extra or {})}


def _refuse(value: Any, tool: str, where: str) -> Any:
    raise UnrecordableResult(tool, where, f"{type(value).__module__}.{type(value).__qualname__}")


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if not isinstance(value, dict):
        return value
    if _TAG not in value:
        return {key: _decoded(one) for key, one in value.items()}
    name, parts = value[_TAG], _decoded(value["value"])
    if name in _MESSAGES:
        return _MESSAGES[name](**parts)
    if name not in _MAKE:
        raise UnreadableValue("a recorded result", str(name), "this version of agentkit has no such type")
    return _MAKE[name](parts)
