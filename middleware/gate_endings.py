"""How a gate ends a run: the texts, the updates of the state, and the closing call."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from agentkit import Exit
from agentkit.events import emit
from agentkit.middleware.gate_rules import Rule, Standing
from agentkit.transcript import SYNTHETIC, closing_results

__all__ = ["closed", "closing_call", "ending", "going_on", "report_blind", "report_trip", "said", "stopped"]

_INSTRUCTION: Final = (
    "A note from the agent's supervision, not from the user: this run has to end now, because {why}. No more tools "
    "can be called. Answer the user from what is known, and say what was not done."
)


def report_trip(gate: str, ended: Exit) -> None:
    """Report that a gate ends the run."""
    emit(
        "gate.decision",
        f"{ended.source}: {ended.reason} tripped",
        level=logging.WARNING,
        gate=gate,
        kind="budget",
        decision="deny",
        target="run",
        reason_code=ended.reason,
        source=ended.source,
    )


def report_blind(gate: str, rules: Sequence[Rule], standing: Standing) -> None:
    """Report what the budgets of a gate could not count."""
    for rule in rules:
        if missing := rule.blind(standing):
            text = f"{gate} cannot count everything: {missing}"
            emit("gate.blind", text, level=logging.WARNING, gate=gate, rule=type(rule).__name__)


def ending(refused: Sequence[AnyMessage], last: Sequence[AnyMessage], ended: Exit) -> dict[str, Any]:
    """The update that ends the run."""
    return {"jump_to": "end", "exit": ended.record(), "messages": [*refused, *last]}


def going_on(update: Mapping[str, Any], added: Sequence[AnyMessage], *, leave: bool) -> dict[str, Any]:
    """The update with which the run reaches the model again.

    Args:
        update: The rest of the update.
        added: Messages to write.
        leave: Whether the hook has to jump there; before the model it is next anyway.
    """
    kept = {key: value for key, value in update.items() if key not in ("jump_to", "messages")}
    return {**kept, **({"messages": list(added)} if added else {}), **({"jump_to": "model"} if leave else {})}


def closing_call(
    request: ModelRequest[Any], why: str
) -> Generator[ModelRequest[Any], ModelResponse[Any], AIMessage | ModelResponse[Any]]:
    """The one closing call: no tools, and told why. A failure of it is no failure of the run."""
    told = HumanMessage(_INSTRUCTION.format(why=why))
    try:
        response = yield request.override(tools=[], tool_choice=None, messages=[*request.messages, told])
    except Exception as error:
        failed = type(error).__name__
        emit("gate.closing_failed", f"the closing call failed: {failed}", level=logging.WARNING, error_type=failed)
        return AIMessage(_fallback(request.messages, why))
    reply = next((m for m in reversed(response.result) if isinstance(m, AIMessage)), None)
    if response.structured_response is not None or _is_plainsaid(reply):
        return response
    text = (reply.text.strip() if reply else "") or _fallback(request.messages, why)
    usage = reply.usage_metadata if reply else None
    metadata = reply.response_metadata if reply else {}
    return AIMessage(text, usage_metadata=usage, response_metadata=metadata)


def _is_plainsaid(reply: AIMessage | None) -> bool:
    return reply is not None and not reply.tool_calls and not reply.invalid_tool_calls and bool(reply.text.strip())


def closed(state: Mapping[str, Any], ended: Exit) -> dict[str, Any]:
    """The end after the closing call: its answer stands, whatever other wraps have made of it."""
    messages = state["messages"]
    last = messages[-1] if messages else None
    if state.get("structured_response") is not None or (isinstance(last, AIMessage) and _is_plainsaid(last)):
        return ending([], [], ended)
    refused = closing_results(messages, ended.detail)
    return ending(refused, [said(_fallback(messages, ended.detail), ended)], ended)


def said(text: str, ended: Exit) -> AIMessage:
    """A last message that no model wrote."""
    return AIMessage(text, response_metadata={SYNTHETIC: True, "exit": ended.reason})


def stopped(ended: Exit) -> str:
    """What the user is told when the run just stops."""
    return f"I had to stop before I was done: {ended.detail}."


def _fallback(messages: Sequence[AnyMessage], why: str, most: int = 5, length: int = 200) -> str:
    """What the user gets when the closing call gave nothing: why, and the last results."""
    results = [m for m in messages if isinstance(m, ToolMessage) and m.status != "error" and m.text.strip()]
    lines = [f"- {m.name or 'result'}: {m.text[:length]}{'…' if len(m.text) > length else ''}" for m in results[-most:]]
    found = ["", "This is what was found:", *lines] if lines else []
    return "\n".join([f"I had to stop before I was done: {why}.", *found])
