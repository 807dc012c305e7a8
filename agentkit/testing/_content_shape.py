"""Whether captured content has the conventions' shape, as text or as structure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentkit.telemetry.semconv import GenAI

__all__ = ["shape_findings"]

_ROLES: Final = ("user", "assistant", "system", "tool")
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"content"}),
    "reasoning": frozenset({"content"}),
    "tool_call": frozenset({"name"}),
    "tool_call_response": frozenset({"response"}),
    "blob": frozenset({"modality", "content"}),
    "uri": frozenset({"modality", "uri"}),
}


def shape_findings(name: str, value: Any, *, structured: bool = False) -> Iterator[str]:
    """What is wrong with the value of an attribute that holds content.

    Args:
        name: The attribute.
        value: Its value.
        structured: Whether it must be a structure, as on events; on spans it may be JSON.
    """
    if structured and isinstance(value, str):
        yield f"{name} is text; on an event it is a structure"
        return
    try:
        content = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        yield f"{name} is no JSON"
        return
    if name not in (GenAI.INPUT_MESSAGES, GenAI.OUTPUT_MESSAGES):
        return
    for message in content:
        if message.get("role") not in _ROLES:
            yield f"{name}: a message has the role {message.get('role')!r}"
        if name == GenAI.OUTPUT_MESSAGES and "finish_reason" not in message:
            yield f"{name}: a message lacks its finish_reason"
        for part in message.get("parts", ()):
            wanted = _PARTS.get(part.get("type"))
            if wanted is None or not wanted <= part.keys():
                yield f"{name}: a part of type {part.get('type')!r} lacks {sorted((wanted or set()) - part.keys())}"
