"""State fields that a tool's contract fills from its result."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Final

from langchain_core.messages import ToolMessage
from pydantic import BaseModel

from agentkit.events import emit
from agentkit.transcript import REWRITTEN, SYNTHETIC

__all__ = ["fields_of"]

_ABSENT: Final = object()
_WHOLE: Final = "."


def fields_of(message: ToolMessage, writes: Mapping[str, str]) -> dict[str, Any]:
    """The state fields that a result fills; none if it is an error, or if no tool gave it.

    A key is looked for in the result's artifact, in the structured content of an MCP result, and in its text, if that
    is JSON. A key that is not there is left out, with a warning in the log.

    Args:
        message: The result.
        writes: State fields, each with its key of the result.
    """
    if message.status == "error" or message.additional_kwargs.get(SYNTHETIC):
        return {}
    results = list(_results(message))
    found = {field: _first(results, key) for field, key in writes.items()}
    for field in [field for field, value in found.items() if value is _ABSENT]:
        text = (
            f"the result of tool {message.name!r} has no {writes[field]!r}, so the state field {field!r} is not written"
        )
        emit("tool.field_missing", text, level=logging.WARNING, tool=message.name, field=field, key=writes[field])
        del found[field]
    return found


def _results(message: ToolMessage) -> Iterator[Any]:
    if message.artifact is not None:
        yield message.artifact
        if isinstance(message.artifact, Mapping) and "structured_content" in message.artifact:
            yield message.artifact["structured_content"]
    text = str(message.text)
    if note := message.additional_kwargs.get(REWRITTEN):
        text = text.removeprefix(str(note)).removeprefix("\n")
    try:
        read = json.loads(text)
    except ValueError:
        read = None
    yield read if isinstance(read, dict | list) else text


def _first(results: Sequence[Any], key: str) -> Any:
    if key == _WHOLE:
        return results[-1]
    values = (_at(result, key.split(".")) for result in results)
    return next((value for value in values if value is not _ABSENT), _ABSENT)


def _at(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part, _ABSENT)
        elif isinstance(value, list | tuple) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, BaseModel) or is_dataclass(value):
            value = getattr(value, part, _ABSENT)
        else:
            return _ABSENT
    return value
