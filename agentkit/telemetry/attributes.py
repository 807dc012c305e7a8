"""The attributes of spans and metrics: pure functions of the facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from opentelemetry.util.types import AttributeValue

from agentkit.events import Event
from agentkit.telemetry.facts import ModelCall, RunFacts, ToolCall, Usage
from agentkit.telemetry.reading import error_type, interrupt_kind
from agentkit.telemetry.semconv import GenAI, Own
from agentkit.watch import Outcome

__all__ = [
    "event_attributes",
    "event_name",
    "model_end",
    "model_name",
    "model_start",
    "run_end",
    "run_events",
    "run_name",
    "run_outcome",
    "run_start",
    "tool_end",
    "tool_name",
    "tool_start",
    "usage_attributes",
]

Attributes: TypeAlias = dict[str, AttributeValue]

_PARAMETERS: Final[Mapping[str, tuple[str, tuple[type, ...]]]] = {
    "temperature": (GenAI.TEMPERATURE, (int, float)),
    "top_p": (GenAI.TOP_P, (int, float)),
    "max_tokens": (GenAI.MAX_TOKENS, (int,)),
    "max_completion_tokens": (GenAI.MAX_TOKENS, (int,)),
    "frequency_penalty": (GenAI.FREQUENCY_PENALTY, (int, float)),
    "presence_penalty": (GenAI.PRESENCE_PENALTY, (int, float)),
    "top_k": (GenAI.TOP_K, (int,)),
    "n": (GenAI.CHOICES, (int,)),
    "seed": (GenAI.SEED, (int,)),
    "reasoning_effort": (GenAI.EFFORT, (str,)),
    "previous_response_id": (GenAI.PREVIOUS, (str,)),
    "ls_temperature": (GenAI.TEMPERATURE, (int, float)),
    "ls_max_tokens": (GenAI.MAX_TOKENS, (int,)),
}
_DOUBLES: Final = frozenset({GenAI.TEMPERATURE, GenAI.TOP_P, GenAI.FREQUENCY_PENALTY, GenAI.PRESENCE_PENALTY})
_RENAMED: Final = {
    "agent.degraded": "degrade",
    "agent.handoff": "handoff",
    "model.fallback": "fallback",
    "model.retry": "retry",
    "tool.retry": "retry",
}
_CONVENTIONAL: Final = {
    "tool": GenAI.TOOL_NAME,
    "tool_call_id": GenAI.TOOL_CALL_ID,
    "error_type": GenAI.ERROR_TYPE,
}
_PRIVATE: Final = frozenset({"by", "at"})  # who decided when is kept in the state and in the log

# ---- runs


def run_name(facts: RunFacts) -> str:
    """The name of a run's span."""
    return f"invoke_agent {facts.agent}" if facts.agent else "invoke_agent"


def run_start(facts: RunFacts) -> Attributes:
    """What is known when a run starts."""
    given: dict[str, Any] = {
        GenAI.OPERATION: "invoke_agent",
        GenAI.AGENT_NAME: facts.agent,
        GenAI.REQUEST_MODEL: facts.run.model,
        GenAI.CONVERSATION: facts.thread,
        Own.RUN_ID: facts.id,
        Own.ENTRYPOINT: facts.run.entrypoint,
        Own.SEGMENT: facts.segment,
        Own.PARENT_RUN: facts.parent,
    }
    return {key: value for key, value in given.items() if value is not None}


def run_outcome(facts: RunFacts, outcome: Outcome) -> tuple[str, str | None]:
    """How a run ended, and why as a code, where it did not just succeed."""
    if outcome.status == "success" and facts.degraded:
        return "degraded", facts.degraded
    ended = outcome.exit
    if ended is None or ended.reason in ("answer", "structured", "return_direct"):
        return outcome.status, None
    return outcome.status, ended.reason


def run_end(facts: RunFacts, outcome: Outcome, usage: str) -> Attributes:
    """What is known when it is over.

    Args:
        facts: The run.
        outcome: How it ended.
        usage: How tokens are told; see `Telemetry.agent_usage`.
    """
    status, reason = run_outcome(facts, outcome)
    given: dict[str, Any] = {
        Own.OUTCOME: status,
        Own.REASON: reason,
        Own.MODEL_CALLS: facts.model_calls,
        Own.TOOL_CALLS: facts.tool_calls,
        GenAI.FINISH_REASONS: facts.finish_reasons or None,
        Own.CHECKPOINT: outcome.checkpoint_id,
    }
    if status == "error" and outcome.error is not None:
        given[GenAI.ERROR_TYPE] = error_type(outcome.error)
    if usage == "semconv":
        given |= {GenAI.INPUT_TOKENS: facts.usage.input, GenAI.OUTPUT_TOKENS: facts.usage.output}
    elif usage == "aggregated":
        for side in ("input", "output"):
            given[f"agentkit.aggregated_usage.{side}_tokens"] = getattr(facts.usage, side)
    return {key: value for key, value in given.items() if value is not None}


def run_events(outcome: Outcome) -> list[tuple[str, Attributes]]:
    """What happened at the end of a run: a pause, or a limit."""
    if outcome.status == "interrupted":
        return [("agentkit.interrupt", _interrupt(outcome))]
    if outcome.status == "limit" and outcome.exit is not None:
        limit: Attributes = {"agentkit.limit.name": outcome.exit.reason, "agentkit.limit.source": outcome.exit.source}
        return [("agentkit.limit", limit)]
    return []


def _interrupt(outcome: Outcome) -> Attributes:
    told: Attributes = {
        "agentkit.interrupt.kind": interrupt_kind(outcome.interrupts),
        "agentkit.interrupt.count": len(outcome.interrupts),
    }
    return {**told, Own.CHECKPOINT: outcome.checkpoint_id} if outcome.checkpoint_id else told


# ---- requests to models


def model_name(call: ModelCall) -> str:
    """The name of a request's span."""
    return f"chat {call.model}" if call.model else "chat"


def model_start(call: ModelCall, facts: RunFacts) -> Attributes:
    """What is known when a request is sent."""
    given: dict[str, Any] = {
        GenAI.OPERATION: "chat",
        GenAI.PROVIDER: call.provider,
        GenAI.REQUEST_MODEL: call.model,
        GenAI.CONVERSATION: facts.thread,
        GenAI.SERVER_ADDRESS: call.server[0] if call.server is not None else None,
        GenAI.SERVER_PORT: call.server[1] if call.server is not None else None,
        Own.STEP: call.step,
        Own.ATTEMPT: call.attempt if call.attempt > 1 else None,
    }
    for source in (call.defaults, call.parameters):
        for name in source.keys() & _PARAMETERS.keys():
            key, types = _PARAMETERS[name]
            value = source[name]
            if not isinstance(value, types) or isinstance(value, bool) or (key == GenAI.CHOICES and value == 1):
                continue
            given[key] = float(cast(float, value)) if key in _DOUBLES else value
    stop = call.parameters.get("stop") or call.defaults.get("ls_stop")
    if stop:
        given[GenAI.STOP] = [stop] if isinstance(stop, str) else [str(each) for each in stop]
    if call.parameters.get("response_format"):
        given[GenAI.OUTPUT_TYPE] = "json"
    return {key: value for key, value in given.items() if value is not None}


def model_end(call: ModelCall) -> Attributes:
    """What is known when the reply is there, or the request failed."""
    told = call.reply.response_metadata if call.reply is not None else {}
    given: dict[str, Any] = {
        GenAI.RESPONSE_ID: told.get("id"),
        GenAI.RESPONSE_MODEL: told.get("model_name") or told.get("model"),
        GenAI.FINISH_REASONS: call.finish_reasons or None,
        **usage_attributes(call.usage),
    }
    if call.first_chunk is not None:
        given |= {GenAI.REQUEST_STREAM: True, GenAI.FIRST_CHUNK: call.first_chunk - call.started}
    if call.cancelled:
        given |= {Own.OUTCOME: "cancelled", GenAI.FINISH_REASONS: ("error",)}
    elif call.error is not None:
        given |= {GenAI.ERROR_TYPE: error_type(call.error), Own.ATTEMPT: call.attempt if call.step else None}
    return {key: value for key, value in given.items() if value is not None}


def usage_attributes(usage: Usage) -> dict[str, int | None]:
    """Tokens under the conventions' names; None where nobody said."""
    return {
        GenAI.INPUT_TOKENS: usage.input,
        GenAI.OUTPUT_TOKENS: usage.output,
        GenAI.CACHE_READ: usage.cache_read,
        GenAI.CACHE_WRITE: usage.cache_write,
        GenAI.REASONING: usage.reasoning,
    }


# ---- calls of tools


def tool_name(call: ToolCall) -> str:
    """The name of a call's span."""
    return f"execute_tool {call.name}"


def tool_start(call: ToolCall, facts: RunFacts) -> Attributes:
    """What is known when a tool is called."""
    given: dict[str, Any] = {
        GenAI.OPERATION: "execute_tool",
        GenAI.TOOL_NAME: call.name,
        GenAI.TOOL_TYPE: "function",
        GenAI.TOOL_CALL_ID: call.id,
        GenAI.TOOL_DESCRIPTION: call.tool.description if call.tool is not None else None,
        GenAI.AGENT_NAME: facts.agent,
        GenAI.CONVERSATION: facts.thread,
        Own.REEXECUTED: True if call.reexecuted else None,
    }
    return {key: value for key, value in given.items() if value is not None}


def tool_end(call: ToolCall) -> Attributes:
    """What is known when the call is over."""
    if call.outcome == "success":
        return {}
    told: Attributes = {Own.OUTCOME: call.outcome}
    return {**told, GenAI.ERROR_TYPE: call.error_type} if call.error_type else told


# ---- events


def event_name(event: Event) -> str:
    """What an event is called on a span."""
    return f"agentkit.{_RENAMED.get(event.name, event.name)}"


def event_attributes(event: Event) -> Attributes:
    """An event's fields on a span: its own under the event's family, conventional ones under their names."""
    family = _RENAMED.get(event.name, event.name).partition(".")[0]
    told: Attributes = {}
    for field, value in event.fields.items():
        if field in _PRIVATE or value is None:
            continue
        name = "name" if field == family else field  # gate="Gates" is the gate's name
        key = _CONVENTIONAL.get(field) or f"agentkit.{family}.{name}"
        if isinstance(value, bool | int | float | str):
            told[key] = value
        elif isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
            told[key] = tuple(value)
    return told
