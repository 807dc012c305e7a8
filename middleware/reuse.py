"""`Reuse`: do not execute a read again whose result is there already."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Literal

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.types import Command

from agentkit.beside import also_for
from agentkit.errors import ConfigurationError
from agentkit.middleware_base import Middleware, Placement
from agentkit.tools import contract_of
from agentkit.transcript import REWRITTEN, SYNTHETIC, last_turn

__all__ = ["Reuse"]


class Reuse(Middleware):
    """Answers the exact repeat of a successful read from the history, and runs identical parallel reads once.

    Only tools whose contract says `effect="read"` are reused, only with the same arguments, and never across a call of
    any other tool. It saves executions rather than tokens: recorded conversations repeat 1.6 % of their calls.
    """

    tool_placement = Placement(outside=("Approval", "ToolRetry", "ToolRetryMiddleware", "EffectLedger"))

    def __init__(self, *, per: Literal["turn", "thread"] = "turn") -> None:
        """Choose how far back results are taken from.

        Args:
            per: `"turn"`: since the user's last message. `"thread"`: from the whole history, for data that nobody but
                this agent changes.

        Raises:
            ConfigurationError: If `per` is neither.
        """
        super().__init__()
        if per not in ("turn", "thread"):
            raise ConfigurationError(f"Reuse: per is 'turn' or 'thread', not {per!r}.")
        self._per = per

    def wrap_tool_call(self, request: ToolCallRequest) -> Generator[ToolCallRequest, Any, Any]:
        """Answer the call from what is there, leave it to its twin, or run it for its twins as well."""
        tools = [*request.runtime.tools, *([] if request.tool is None else [request.tool])]
        reads = {tool.name for tool in tools if contract_of(tool).effect == "read"}
        if request.tool_call["name"] not in reads:
            return (yield request)
        messages: Sequence[AnyMessage] = request.state["messages"]
        if (known := self._known(request.tool_call, messages, reads)) is not None:
            return known.model_copy(update={"id": None, "tool_call_id": str(request.tool_call["id"])})
        twins = _open_twins(request.tool_call, messages)
        if twins and twins[0] != request.tool_call["id"]:
            return Command(update={})  # the first of them answers them all
        result = yield request
        return also_for(result, twins[0], twins[1:]) if twins[1:] else result

    def _known(self, call: ToolCall, messages: Sequence[AnyMessage], reads: set[str]) -> ToolMessage | None:
        """The result of the same call, if it succeeded and nothing can have changed since."""
        wanted = _key(call)
        for ai, results in self._turns_back(messages):
            if any(one["name"] not in reads for one in ai.tool_calls):
                return None
            same = {one["id"] for one in ai.tool_calls if _key(one) == wanted}
            answer = next((result for result in results if result.tool_call_id in same), None)
            if answer is not None:
                return answer if _is_good(answer) else None
        return None

    def _turns_back(self, messages: Sequence[AnyMessage]) -> Iterator[tuple[AIMessage, list[ToolMessage]]]:
        """The AI messages, last first, each with its results."""
        results: list[ToolMessage] = []
        for message in reversed(messages):
            if isinstance(message, ToolMessage):
                results.insert(0, message)
            elif isinstance(message, AIMessage):
                yield message, results
                results = []
            elif isinstance(message, HumanMessage) and self._per == "turn":
                return


def _key(call: ToolCall) -> str:
    """One text for calls that are the same: tool and arguments, whatever the order of keys."""
    return json.dumps([call["name"], call["args"]], sort_keys=True, default=str, ensure_ascii=False)


def _is_good(result: ToolMessage) -> bool:
    """Whether a result is what the tool gave for the call that stands in the history."""
    extra = result.additional_kwargs
    return result.status == "success" and not extra.get(SYNTHETIC) and not extra.get(REWRITTEN)


def _open_twins(call: ToolCall, messages: Sequence[AnyMessage]) -> list[str]:
    """The ids of the last answer's open calls that are the same as this one, itself included."""
    ai, results = last_turn(messages)
    if ai is None:
        return []
    answered = {result.tool_call_id for result in results}
    return [str(one["id"]) for one in ai.tool_calls if one["id"] not in answered and _key(one) == _key(call)]
