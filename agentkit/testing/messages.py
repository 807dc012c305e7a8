"""Messages for a script: build them, cut them into chunks as a provider would, merge them again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, InvalidToolCall, message_chunk_to_message
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCall, ToolCallChunk, invalid_tool_call, tool_call_chunk
from langchain_core.messages.tool import tool_call as new_tool_call

from agentkit.errors import AgentkitError

__all__ = ["ScriptError", "ai", "invalid_call", "merged", "split", "tool_call"]


class ScriptError(AgentkitError, AssertionError):
    """A scripted model was called more often than its script foresees, or its script cannot be played."""


def tool_call(name: str, args: Mapping[str, Any] | None = None, id: str | None = "c1") -> ToolCall:
    """A tool call for `ai`.

    Args:
        name: Name of the tool.
        args: Its arguments; none by default.
        id: Id of the call. Calls of one message need different ones.
    """
    return new_tool_call(name=name, args=dict(args or {}), id=id)


def invalid_call(
    name: str | None, args: str = '{"a": nonsense}', id: str | None = "c1", error: str | None = None
) -> InvalidToolCall:
    """A call for `ai` whose arguments could not be parsed.

    Args:
        name: Name of the tool.
        args: The arguments as the model wrote them.
        id: Id of the call.
        error: What the parser said. LangChain's merging of a stream never says anything, hence None.
    """
    return invalid_tool_call(name=name, args=args, id=id, error=error)


def ai(
    content: str | list[str | dict[str, Any]] = "",
    /,
    *calls: ToolCall | InvalidToolCall,
    id: str | None = None,
    usage: tuple[int, int] | None = None,
    **metadata: Any,
) -> AIMessage:
    """An AI message.

    Args:
        content: Its text, or a list of content blocks.
        *calls: Its calls, made by `tool_call` and `invalid_call`.
        id: Id of the message.
        usage: Input and output tokens, for `usage_metadata`.
        **metadata: The `response_metadata`, for example `finish_reason="length"`.
    """
    return AIMessage(
        content=content,
        tool_calls=[c for c in calls if c.get("type") == "tool_call"],
        invalid_tool_calls=[c for c in calls if c.get("type") == "invalid_tool_call"],
        id=id,
        usage_metadata=usage and UsageMetadata(input_tokens=usage[0], output_tokens=usage[1], total_tokens=sum(usage)),
        response_metadata=metadata,
    )


def merged(chunks: Sequence[AIMessageChunk | BaseException]) -> AIMessage:
    """One message out of the chunks, as LangChain merges a stream."""
    if error := next((c for c in chunks if isinstance(c, BaseException)), None):
        raise error
    first, *others = cast("Sequence[AIMessageChunk]", chunks)
    return cast("AIMessage", message_chunk_to_message(first + others if others else first))


def split(message: AIMessage) -> list[AIMessageChunk]:
    """Cut a message into the chunks in which a provider would stream it.

    Raises:
        ScriptError: If merging the chunks would not give the same tool calls. LangChain completes partial JSON, so
            an unparsable call whose arguments are merely cut off arrives as a parsed one.
    """
    pieces: Sequence[Any] = (
        re.findall(r"\s*\S+\s*$|\s*\S+|\s+", message.content)
        if isinstance(message.content, str)
        else [[block] for block in message.content]
    )
    chunks = [AIMessageChunk(content=piece) for piece in pieces]
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    for index, call in enumerate(calls):
        chunks += [AIMessageChunk(content="", tool_call_chunks=[f]) for f in _fragments(call, index)]
    if not chunks:
        chunks = [AIMessageChunk(content="")]
    for chunk in chunks:
        chunk.id = message.id
    chunks[0].additional_kwargs = message.additional_kwargs
    chunks[-1].response_metadata = message.response_metadata
    chunks[-1].usage_metadata = message.usage_metadata
    seen = merged(chunks)
    for kind in ("tool_calls", "invalid_tool_calls"):
        if [(c["name"], c["args"], c["id"]) for c in getattr(message, kind)] != [
            (c["name"], c["args"], c["id"]) for c in getattr(seen, kind)
        ]:
            raise ScriptError(
                f"Streamed, this message would arrive with other {kind}: {getattr(seen, kind)!r:.200} instead of "
                f"{getattr(message, kind)!r:.200}. Use arguments that cannot be completed to a JSON object, a list of "
                "AIMessageChunk, or stream=False."
            )
    return chunks


def _fragments(call: Mapping[str, Any], index: int) -> list[ToolCallChunk]:
    """The fragments of one call: its name and id, then its arguments in two halves."""
    args = call["args"] if isinstance(call["args"], str) else json.dumps(call["args"] or {})
    middle = len(args) // 2
    return [
        tool_call_chunk(name=call["name"], args="", id=call["id"], index=index),
        *(tool_call_chunk(args=half, index=index) for half in (args[:middle], args[middle:]) if half),
    ]
