"""What is asked and told about effects in doubt, and about those that are recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from agentkit.errors import InvalidSettlement
from agentkit.ledger import Call, Doubt, Effect, Settlement
from agentkit.transcript import SYNTHETIC

__all__ = ["OnDoubt", "in_words", "other_arguments", "question", "recorded", "schema", "settlement"]

OnDoubt: TypeAlias = Literal["ask", "tell"] | Callable[[Doubt], Settlement]
_ANSWER: Final = ("doubt", "outcome", "result", "by")
_UNRECORDED: Final = (
    "`{tool}` took effect, but the process ended before its result was recorded. It was not executed again."
)


def question(doubt: Doubt) -> dict[str, Any]:
    """What a person is asked, as plain data."""
    effect = doubt.effect
    return {
        "type": "effect_in_doubt",
        "doubt": doubt.id,
        "tool": effect.tool,
        "args": effect.args,
        "effect_name": effect.effect_name,
        "thread_id": effect.thread_id,
        "tool_call_id": effect.call_id,
        "started_at": effect.started_at.isoformat(),
        "error": effect.error,
        "requested": {"tool_call_id": doubt.call.call_id, "args": dict(doubt.call.args)},
        "text": (
            f"Whether this call of `{effect.tool}` took effect is unknown. Look where the effect would be seen, then "
            'answer {"doubt": ..., "outcome": "done", "not_done" or "unknown", "by": ...}; "not_done" executes what is '
            "requested now."
        ),
    }


def schema() -> dict[str, Any]:
    """What an answer looks like."""
    return {
        "type": "object",
        "properties": {
            "doubt": {"type": "string", "description": "The question's `doubt`, which the answer settles."},
            "outcome": {"enum": ["done", "not_done", "unknown"]},
            "result": {"description": "What the tool would have returned, if it is done and the result is known."},
            "by": {"type": ["string", "null"]},
        },
        "required": ["doubt", "outcome"],
    }


def settlement(answer: Any) -> tuple[str, Settlement]:
    """A person's answer: which doubt it settles, and how.

    Raises:
        InvalidSettlement: If it is no such answer.
    """
    if not isinstance(answer, Mapping):
        raise InvalidSettlement(f"an answer is a dict with `doubt` and `outcome`, not a {type(answer).__name__}.")
    if unknown := sorted(set(map(str, answer)) - set(_ANSWER)):
        raise InvalidSettlement(f"an answer has no field {unknown[0]!r}; it has {', '.join(_ANSWER)}.")
    if not isinstance(answer.get("doubt"), str):
        raise InvalidSettlement("`doubt` is missing; copy it from the question, so that no other doubt is settled.")
    return answer["doubt"], Settlement(answer.get("outcome"), answer.get("result"), answer.get("by"))  # type: ignore[arg-type]  # checked there


def in_words(doubt: Doubt) -> ToolMessage:
    """What the model is told of an effect that stays in doubt."""
    effect, call = doubt.effect, doubt.call
    which = "this call" if effect.call_key == call.call_key else "an earlier call for the same effect"
    since = effect.started_at.isoformat(timespec="seconds")
    return _told(
        call,
        f"Not executed: whether {which} of `{effect.tool}`, started at {since}, took effect is unknown. "
        "Do not repeat it. Check first what became of it, or tell the user that it is being looked into.",
    )


def recorded(effect: Effect, call: Call) -> Any:
    """The recorded result of an effect, for this call."""
    if effect.outcome is None:
        return _told(call, _UNRECORDED.format(tool=effect.tool), status="success")
    if effect.call_key == call.call_key:
        return effect.outcome
    return _readdressed(effect.outcome, effect, call)


def other_arguments(effect: Effect, call: Call) -> ToolMessage:
    """What the model is told when the effect happened with other arguments than these."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in effect.args.items())
    text = (
        f"Not executed: this effect has happened already, with other arguments: `{effect.tool}({arguments})`. "
        "It happens once; do not repeat it."
    )
    return _told(call, text)


def _told(call: Call, text: str, status: Literal["success", "error"] = "error") -> ToolMessage:
    return ToolMessage(
        text,
        name=call.tool,
        tool_call_id=str(call.call_id),
        status=status,
        additional_kwargs={SYNTHETIC: True},
    )


def _readdressed(result: Any, effect: Effect, call: Call) -> Any:
    """Another call's result as the answer to this one, which is told so."""
    if isinstance(result, list):
        return [_readdressed(one, effect, call) for one in result]
    if isinstance(result, Command) and isinstance(result.update, dict) and "messages" in result.update:
        return replace(
            result, update={**result.update, "messages": _readdressed(result.update["messages"], effect, call)}
        )
    if not isinstance(result, ToolMessage) or result.tool_call_id != effect.call_id:
        return result
    told = "This effect has happened already, by an earlier call; it was not executed again. Its result then:"
    content: Any = f"{told}\n{result.content}"
    if isinstance(result.content, list):
        content = [{"type": "text", "text": told}, *result.content]
    return result.model_copy(update={"id": None, "content": content, "tool_call_id": str(call.call_id)})
