"""Pure functions that read LangChain's and LangGraph's objects for telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Command, Interrupt

from agentkit.telemetry.facts import Usage
from agentkit.telemetry.semconv import PROVIDERS
from agentkit.transcript import SYNTHETIC
from agentkit.transient import status_of

__all__ = [
    "decisions",
    "error_type",
    "finish_reasons",
    "interrupt_kind",
    "is_rejected",
    "model_of",
    "provider_of",
    "result_of",
    "signal_outcome",
    "usage_of",
]

_CONSENTS: Final = ("approve", "edit")
_REFUSALS: Final = ("reject", "respond")
_UNDECIDED: Final[dict[str, int | None]] = {"approved": None, "rejected": None}
_APPROVALS: Final = ("tool_approval", "approval")


def error_type(error: BaseException) -> str:
    """What kind of error: an HTTP status if it stands for one, else the class; never its text."""
    status = status_of(error) if isinstance(error, Exception) else None
    if status is not None:
        return str(status)
    cls = type(error)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def signal_outcome(error: BaseException) -> str | None:
    """The outcome that a signal of the engine stands for; None for an error."""
    if isinstance(error, GraphInterrupt):
        return "interrupted"
    return "handoff" if isinstance(error, GraphBubbleUp) else None


def provider_of(metadata: Mapping[str, Any]) -> str:
    """The provider, in the conventions' words."""
    name = str(metadata.get("ls_provider") or "_OTHER").lower()
    return PROVIDERS.get(name, name) if name != "_other" else "_OTHER"


def model_of(metadata: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """The model that was asked for."""
    name = metadata.get("ls_model_name") or parameters.get("model") or parameters.get("model_name")
    return name if isinstance(name, str) and name else None


def usage_of(reply: AIMessage) -> Usage:
    """The tokens that a reply tells of."""
    told: Mapping[str, Any] = reply.usage_metadata or {}
    if not told:
        return Usage()
    given, made = told.get("input_token_details") or {}, told.get("output_token_details") or {}
    return Usage(
        told.get("input_tokens"),
        told.get("output_tokens"),
        given.get("cache_read"),
        given.get("cache_creation"),
        made.get("reasoning"),
    )


def finish_reasons(reply: AIMessage) -> tuple[str, ...]:
    """Why the provider stopped, in its own words."""
    told = reply.response_metadata
    reason = told.get("finish_reason") or told.get("stop_reason")
    return (reason,) if isinstance(reason, str) else ()


def result_of(returned: Any, call_id: str | None) -> ToolMessage | None:
    """The answer to a call among what its wraps returned."""
    if isinstance(returned, ToolMessage) and returned.tool_call_id == call_id:
        return returned
    for part in returned if isinstance(returned, list) else [returned]:
        update = part.update if isinstance(part, Command) else None
        messages = update.get("messages") if isinstance(update, dict) else part
        for message in messages if isinstance(messages, list) else [messages]:
            if isinstance(message, ToolMessage) and message.tool_call_id == call_id:
                return message
    return None


def is_rejected(result: ToolMessage) -> bool:
    """Whether a result stands in for a call that was not executed."""
    return bool(result.additional_kwargs.get(SYNTHETIC)) and result.status == "error"


def decisions(given: Any) -> dict[str, int | None]:
    """How many decisions on calls a run is resumed with; None where there are none, as with other answers."""
    answer = given.resume if isinstance(given, Command) else None
    answers = answer.values() if isinstance(answer, Mapping) and "type" not in answer else [answer]
    types = [one.get("type") for one in answers if isinstance(one, Mapping)]
    decided = [each in _CONSENTS for each in types if each in _CONSENTS or each in _REFUSALS]
    return {"approved": sum(decided), "rejected": len(decided) - sum(decided)} if decided else _UNDECIDED


def interrupt_kind(interrupts: tuple[Interrupt, ...]) -> str:
    """What a pause waits for: somebody's `approval`, or other `input`."""
    values = [one.value for one in interrupts if isinstance(one.value, Mapping)]
    asked = any(value.get("type") in _APPROVALS or "action_requests" in value for value in values)
    return "approval" if asked else "input"
