"""`Insist`: after a call that was refused for its arguments, a corrected call and not talk."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool

from agentkit.errors import ConfigurationError
from agentkit.middleware_base import Middleware
from agentkit.tools import argument_problems
from agentkit.transcript import last_turn

__all__ = ["Insist"]

_NUDGE: Final = "Nothing was executed yet. Call {names} again with corrected arguments; do not answer in words."


class Insist(Middleware):
    """Asks for a corrected call where the model answers in words after a call that was refused.

    A reply without tool calls ends a run. Some models answer a refused call with the corrected arguments as text, which
    then stands as the answer. Here the model is asked again, with a tool call forced. What it said in words enters
    neither the history nor the result, unless it insists as well.
    """

    def __init__(self, attempts: int = 1) -> None:
        """Set how often.

        Args:
            attempts: How often a model that answers in words is asked again, per answer. Then its words stand.

        Raises:
            ConfigurationError: If it is below 1.
        """
        super().__init__()
        if attempts < 1:
            raise ConfigurationError(f"Insist: attempts must be at least 1, not {attempts}; leave it out for none.")
        self._attempts = attempts

    def wrap_model_call(self, request: ModelRequest[Any]) -> Generator[ModelRequest[Any], ModelResponse[Any], Any]:
        """Ask, and ask again while a call is owed."""
        response = yield request
        owed = _refused(request)
        for _ in range(self._attempts if owed else 0):
            if _calls(response):
                break
            nudge = HumanMessage(_NUDGE.format(names=" or ".join(f"`{name}`" for name in owed)))
            said = [message for message in response.result if isinstance(message, AIMessage) and message.content]
            response = yield request.override(messages=[*request.messages, *said, nudge], tool_choice="any")
        return response


def _calls(response: ModelResponse[Any]) -> bool:
    replies = [message for message in response.result if isinstance(message, AIMessage)]
    return any(reply.tool_calls or reply.invalid_tool_calls for reply in replies)


def _refused(request: ModelRequest[Any]) -> list[str]:
    """The tools whose calls in the last turn were refused for their arguments, if that is what the model answers."""
    messages: Sequence[AnyMessage] = request.messages
    if not messages or not isinstance(messages[-1], ToolMessage):
        return []
    ai, results = last_turn(messages)
    if ai is None:
        return []
    tools = {tool.name: tool for tool in request.tools if isinstance(tool, BaseTool)}
    failed = {result.tool_call_id for result in results if result.status == "error"}
    refused = [
        call["name"]
        for call in ai.tool_calls
        if call["id"] in failed and call["name"] in tools and argument_problems(tools[call["name"]], call["args"])
    ]
    unreadable = [str(call["name"]) for call in ai.invalid_tool_calls if call["id"] in failed and call["name"] in tools]
    return list(dict.fromkeys(refused + unreadable))
