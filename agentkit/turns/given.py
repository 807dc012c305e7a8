"""What a turn is given: an input whose messages have ids, so that a second delivery adds nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langgraph.types import Command

from agentkit.errors import InvalidTurn

__all__ = ["with_ids"]


def with_ids(message_id: str, given: Any) -> Any:
    """The input of the graph, its messages under ids that each delivery gives them.

    The last human message gets `message_id`, the others ids made from it; messages that have an id keep it.

    Args:
        message_id: The delivery's id.
        given: A text, a message, a list of messages, or a state, with `messages` in any of these forms or without.

    Raises:
        InvalidTurn: If it is no input.
    """
    if given is None or isinstance(given, Command):
        raise InvalidTurn(
            f"{'None' if given is None else 'a Command'} is no input of a turn. Give the user's message; "
            "an unfinished turn continues when its message is delivered again, and `decide` answers a question."
        )
    if isinstance(given, str | BaseMessage) or (isinstance(given, Sequence) and not isinstance(given, bytes)):
        return {"messages": _identified(message_id, given)}
    if isinstance(given, Mapping) and given.get("messages") is not None:
        return {**given, "messages": _identified(message_id, given["messages"])}
    return given


def _identified(message_id: str, given: Any) -> list[BaseMessage]:
    listed = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    messages = convert_to_messages(listed)
    users = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage)]
    last = users[-1] if users else None
    return [
        message
        if message.id is not None
        else message.model_copy(update={"id": message_id if index == last else f"{message_id}/{index}"})
        for index, message in enumerate(messages)
    ]
