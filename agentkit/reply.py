"""One reply of the model: whether it is whole, and which of its calls must not run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall

from agentkit.transcript import unique_ids, with_calls

__all__ = ["is_cut_off", "is_empty", "refuse", "refuse_unsafe_calls"]

_LENGTH_STOPS: Final = frozenset({"length", "max_tokens", "max_output_tokens"})
_STOP_KEYS: Final = ("finish_reason", "stop_reason", "finishReason", "done_reason", "incomplete_details")
# Providers whose every complete reply names a finish reason, and under which keys.
_ALWAYS_SENT: Final = {
    "openai": ("finish_reason", "status"),  # chat completions, responses
    "anthropic": ("stop_reason", "finish_reason"),
    "google_genai": ("finish_reason",),
}
_CUT: Final = "the reply was cut off by the token limit"
_SILENT_BLOCKS: Final = frozenset({"text", "reasoning", "thinking", "redacted_thinking"})


def is_empty(reply: AIMessage) -> bool:
    """Whether a reply says nothing: no text, no calls, nothing else to show."""
    if reply.tool_calls or reply.invalid_tool_calls or reply.additional_kwargs.get("refusal"):
        return False
    if isinstance(reply.content, str):
        return not reply.content.strip()
    return not any(
        (isinstance(block, str) and block.strip())
        or (isinstance(block, dict) and ((block.get("text") or "").strip() or block.get("type") not in _SILENT_BLOCKS))
        for block in reply.content
    )


def is_cut_off(reply: AIMessage) -> bool:
    """Whether a provider that names a finish reason in every complete reply did not name one in this.

    Never guessed for models that send none, and a refusal is complete. The key counts, not its value: lax servers send
    an empty one.
    """
    if reply.additional_kwargs.get("refusal"):
        return False
    keys = _ALWAYS_SENT.get(reply.response_metadata.get("model_provider", ""))
    return keys is not None and not any(key in reply.response_metadata for key in keys)


def refuse_unsafe_calls(reply: AIMessage) -> AIMessage:
    """The reply with each call that must not run moved to the unreadable ones, and with ids unique.

    A call is refused if it is the last one of a reply cut off by the token limit, or stands without arguments beside a
    fragment that has neither name nor id (the arguments went astray). Later ids that repeat an earlier one of the same
    message get a suffix.
    """
    if not reply.invalid_tool_calls and not (reply.tool_calls and _hit_length(reply)):
        ids = {call["id"] for call in reply.tool_calls}
        if len(ids) == len(reply.tool_calls):
            return reply  # nearly always
    cut = _hit_length(reply) and not any(call.get("error") == _CUT for call in reply.invalid_tool_calls)
    stray = any(not call["name"] and not call["id"] for call in reply.invalid_tool_calls)
    kept: list[ToolCall] = []
    refused: list[InvalidToolCall] = []
    for position, call in enumerate(reply.tool_calls):
        if cut and position == len(reply.tool_calls) - 1:
            refused.append(_refused(call, _CUT))
        elif stray and not call["args"]:
            refused.append(_refused(call, "the arguments arrived in fragments that belong to no call"))
        else:
            kept.append(call)
    broken = [*refused, *(call for call in reply.invalid_tool_calls if not stray or call["name"] or call["id"])]
    unique = unique_ids([*kept, *broken])
    if unique == [*reply.tool_calls, *reply.invalid_tool_calls]:
        return reply
    return with_calls(reply, unique[: len(kept)], unique[len(kept) :])


def refuse(reply: AIMessage, broken: Mapping[int, str]) -> AIMessage:
    """The reply with some of its calls moved to the unreadable ones.

    Args:
        reply: The reply.
        broken: The raw arguments of those calls, by the call's position.
    """
    kept = [call for position, call in enumerate(reply.tool_calls) if position not in broken]
    refused = [
        InvalidToolCall(
            name=reply.tool_calls[position]["name"],
            args=raw,
            id=reply.tool_calls[position]["id"],
            error="the arguments are not one JSON object",
            type="invalid_tool_call",
        )
        for position, raw in broken.items()
    ]
    return with_calls(reply, kept, [*refused, *reply.invalid_tool_calls])


def _refused(call: ToolCall, why: str) -> InvalidToolCall:
    args = json.dumps(call["args"], ensure_ascii=False, default=str)
    return InvalidToolCall(name=call["name"], args=args, id=call["id"], error=why, type="invalid_tool_call")


def _hit_length(reply: AIMessage) -> bool:
    if not reply.response_metadata:
        return False
    reasons = (reply.response_metadata.get(key) for key in _STOP_KEYS)
    flat = (reason.get("reason") if isinstance(reason, dict) else reason for reason in reasons)
    return any(str(reason).lower() in _LENGTH_STOPS for reason in flat if reason)
