"""Content in the conventions' shapes: messages, system prompt, tool definitions, arguments and results.

The order is always: redact, cut inside the structure, write. Nothing here runs unless content is captured.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage, convert_to_messages

from agentkit.telemetry.reading import finish_reasons
from agentkit.telemetry.settings import DROP, Kind, Telemetry

__all__ = [
    "definitions",
    "given_messages",
    "input_messages",
    "last_reply",
    "on_span",
    "output_messages",
    "redacted",
    "shortened",
    "system",
    "written",
]

_ROLES: Final = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "developer": "system"}
_FINISH: Final = {"tool_calls": "tool_call", "tool_use": "tool_call", "end_turn": "stop", "max_tokens": "length"}
_CUT: Final = "… ({} more characters)"


def written(settings: Telemetry, kind: Kind, value: Any, info: Mapping[str, Any]) -> Any:
    """A value as it is put on a span, or `DROP`."""
    value = redacted(settings, kind, value, info)
    return DROP if value is DROP else on_span(settings, value)


def redacted(settings: Telemetry, kind: Kind, value: Any, info: Mapping[str, Any]) -> Any:
    """A value as the redactor leaves it, or `DROP`."""
    if settings.redact is None:
        return value
    try:
        return settings.redact(kind, value, info)
    except Exception:  # who cannot say what is harmless gets nothing recorded
        return DROP


def on_span(settings: Telemetry, value: Any) -> Any:
    """A value cut to size, in the form that spans have it in."""
    value = shortened(value, settings.max_content_chars)
    return value if settings.content_format == "structured" else json.dumps(value, ensure_ascii=False, default=str)


def shortened(value: Any, most: int) -> Any:
    """The same structure with every long text in it cut off, and marked as such."""
    if isinstance(value, str):
        return value if len(value) <= most else value[:most] + _CUT.format(len(value) - most)
    if isinstance(value, Mapping):
        return {str(key): shortened(each, most) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [shortened(each, most) for each in value]
    return value


def system(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The system prompt as parts."""
    return [part for message in messages if isinstance(message, SystemMessage) for part in _blocks(message.content)]


def input_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The history, without the system prompt."""
    return [
        {"role": _ROLES.get(message.type, "user"), "parts": list(_parts(message))}
        for message in messages
        if not isinstance(message, SystemMessage)
    ]


def output_messages(reply: AIMessage) -> list[dict[str, Any]]:
    """The reply, with why it ended in the conventions' words."""
    told = finish_reasons(reply)
    ended = _FINISH.get(told[0], told[0]) if told else "tool_call" if reply.tool_calls else "stop"
    return [{"role": "assistant", "parts": list(_parts(reply)), "finish_reason": ended}]


def given_messages(given: Any) -> list[dict[str, Any]]:
    """What a caller gave a run, as far as it is messages."""
    messages = given.get("messages") if isinstance(given, Mapping) else None
    if not messages:
        return []
    return input_messages(convert_to_messages([messages] if isinstance(messages, str) else messages))


def last_reply(values: Any) -> list[dict[str, Any]]:
    """What a run answered: the last message of its final state, if it is the model's."""
    messages = values.get("messages") if isinstance(values, Mapping) else None
    last = messages[-1] if messages else None
    return output_messages(last) if isinstance(last, AIMessage) else []


def definitions(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools that were offered: type and name only, since the rest is long and does not change."""
    found = []
    for tool in parameters.get("tools") or ():
        told = tool.get("function", tool) if isinstance(tool, Mapping) else {}
        if name := told.get("name"):
            found.append({"type": "function", "name": name})
    return found


def _parts(message: BaseMessage) -> Iterator[dict[str, Any]]:
    if isinstance(message, ToolMessage):
        yield {"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}
        return
    yield from _blocks(message.content)
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            yield {"type": "tool_call", "id": call["id"], "name": call["name"], "arguments": call["args"]}


def _blocks(content: str | list[Any]) -> Iterator[dict[str, Any]]:
    for block in [content] if isinstance(content, str) else content:
        if isinstance(block, str):
            if block:
                yield {"type": "text", "content": block}
        elif block.get("type") in ("text", "output_text"):
            yield {"type": "text", "content": block.get("text", "")}
        elif block.get("type") in ("reasoning", "thinking"):
            yield {"type": "reasoning", "content": block.get("reasoning") or block.get("thinking") or ""}
        elif block.get("type") not in ("tool_use", "function_call", "tool_call"):
            yield _media(block)


def _media(block: Mapping[str, Any]) -> dict[str, Any]:
    """An image, a recording, a file: told of, and kept only where it is an address."""
    kind = str(block.get("type", "unknown")).removesuffix("_url")
    inner = block.get("image_url")
    url = inner.get("url") if isinstance(inner, Mapping) else inner or block.get("url")
    if isinstance(url, str) and not url.startswith("data:"):
        return {"type": "uri", "modality": kind, "uri": url}
    return {"type": "blob", "modality": kind, "content": ""}
