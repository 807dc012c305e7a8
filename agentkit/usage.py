"""What the replies of a model used, the ones that were asked again among them."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from typing_extensions import TypedDict

__all__ = ["Used", "used", "used_in_vain"]


class Used(TypedDict):
    """What one reply used. Plain data, so that any saver can store it."""

    model: str  # as the provider names it; empty if it does not
    usage: UsageMetadata | None


def used(reply: AIMessage) -> Used:
    """What a reply used, as the provider reported it; a report of no tokens at all is none."""
    usage, metadata = reply.usage_metadata, reply.response_metadata
    reported = usage if usage and (usage["input_tokens"] or usage["output_tokens"]) else None
    return Used(model=str(metadata.get("model_name") or metadata.get("model") or ""), usage=reported)


def used_in_vain(replies: Sequence[AIMessage], standing: AIMessage | None) -> list[Used]:
    """What was used by the replies of one model step that do not stand.

    Args:
        replies: All replies of the step, in order.
        standing: The answer of the step: one of them, or what a wrap has made of one.
    """
    others = [reply for reply in replies if standing is None or reply.id != standing.id]
    if len(others) == len(replies) and standing is not None and standing.usage_metadata:
        others = others[:-1]  # a new message that carries over what the last one used
    return [used(reply) for reply in others]
