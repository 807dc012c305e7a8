"""What is kept of a decision, and what the model is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NotRequired

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.types import Command
from typing_extensions import TypedDict

from agentkit.events import emit
from agentkit.middleware.approval_policy import Case
from agentkit.transcript import REWRITTEN, SYNTHETIC

__all__ = ["ApprovalRecord", "by_whom", "record_of", "refusal", "report", "report_asked", "telling"]

_DECISIONS: Final = {"approve": "allow", "edit": "modify"}  # the others keep the call from running


class ApprovalRecord(TypedDict):
    """One decision, as it is kept in the state field `approvals`."""

    tool_call_id: str | None
    name: str
    args: dict[str, Any]
    """The call as it was decided on."""
    decision: str
    """`approve`, `edit`, `reject`, `respond`; `expired` if it came too late; `withdrawn` if none was recorded before
    the conversation went on."""
    by: str | None
    at: str
    asked_at: str | None
    rules: list[str]
    edited_action: NotRequired[dict[str, Any]]
    message: NotRequired[str]
    end: NotRequired[bool]


def record_of(
    call: ToolCall, case: Case, decision: Mapping[str, Any], at: datetime, *, was_in_time: bool
) -> ApprovalRecord:
    """The record of a decision.

    Args:
        call: The call as it was decided on.
        case: The rules it falls under.
        decision: What was decided.
        at: When.
        was_in_time: Whether it was found in time before, however late it is now.
    """
    too_late = case.expires_at is not None and at > case.expires_at and not was_in_time
    late = too_late and decision["type"] != "reject"
    record = ApprovalRecord(
        tool_call_id=call["id"],
        name=call["name"],
        args=call["args"],
        decision="expired" if late else decision["type"],
        by=decision.get("by"),
        at=at.isoformat(),
        asked_at=case.asked_at.isoformat() if case.asked_at else None,
        rules=[rule.name for rule in case.rules],
    )
    for key in ("edited_action", "message", "end"):
        if key in decision:
            record[key] = decision[key]
    return record


def refusal(record: ApprovalRecord, case: Case) -> ToolMessage:
    """What the model is told instead of a result."""
    name, why = record["name"], record.get("message")
    if record["decision"] == "respond":
        text = why or ""
    elif record["decision"] == "expired":
        assert case.expires_at is not None
        text = (
            f"Not executed: the decision on `{name}` came too late{by_whom(record)}. It expired at "
            f"{case.expires_at.isoformat(timespec='seconds')}, so it counts as rejected."
        )
    else:
        reason = f": {why}" if why else "."
        text = (
            f"Not executed: `{name}` was rejected{by_whom(record)}{reason}\n"
            "Do not repeat the call unless the user asks for it."
        )
    return ToolMessage(
        text,
        name=name,
        tool_call_id=str(record["tool_call_id"]),
        status="success" if record["decision"] == "respond" else "error",
        additional_kwargs={SYNTHETIC: True},
    )


def by_whom(record: ApprovalRecord) -> str:
    """Who decided, as the end of a clause; empty if nobody said."""
    return f" by {record['by']}" if record["by"] else ""


def telling(result: Any, call: ToolCall, records: Sequence[ApprovalRecord]) -> Any:
    """The result of an edited call, with the model told of the edit."""
    if isinstance(result, list):
        return [telling(one, call, records) for one in result]
    if isinstance(result, Command) and isinstance(result.update, dict) and "messages" in result.update:
        return replace(result, update={**result.update, "messages": telling(result.update["messages"], call, records)})
    if not isinstance(result, ToolMessage) or result.tool_call_id != call["id"]:
        return result
    editor = next(record for record in reversed(records) if record["decision"] == "edit")
    arguments = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
    told = (
        f"Note: a person changed this call before it ran{by_whom(editor)}. Executed was "
        f"`{call['name']}({arguments})`, on purpose; do not repeat the original call. Its result:"
    )
    content: Any = f"{told}\n{result.content}"
    if isinstance(result.content, list):
        content = [{"type": "text", "text": told}, *result.content]
    extra = {**result.additional_kwargs, REWRITTEN: told}
    return result.model_copy(update={"content": content, "additional_kwargs": extra})


def report(record: ApprovalRecord) -> None:
    """Who decided what, before it takes effect; never the arguments."""
    emit(
        "gate.decision",
        f"approval of {record['name']}: {record['decision']}",
        **_about(record["tool_call_id"], record["name"], record["rules"]),
        decision=_DECISIONS.get(record["decision"], "deny"),
        reason_code=record["decision"],
        by=record["by"],
        at=record["at"],
    )


def report_asked(call_id: str, name: str, rules: Sequence[str]) -> None:
    """That a call has to be approved; told when the model asks for it."""
    text = f"{name} must be approved"
    emit("gate.decision", text, **_about(call_id, name, rules), decision="require_approval", reason_code="asked")


def _about(call_id: str | None, name: str, rules: Sequence[str]) -> dict[str, Any]:
    call = {"tool": name, "tool_call_id": call_id, "rules": list(rules)}
    return {"gate": "Approval", "kind": "approval", "target": "tool", **call}
