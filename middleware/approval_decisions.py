"""Questions and decisions: what a person is shown, what they may answer, and how an answer is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NotRequired

from langchain_core.messages import ToolCall
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command, Interrupt, StateSnapshot
from pydantic import BaseModel, ValidationError
from typing_extensions import TypedDict

from agentkit.errors import IncompleteDecision, InvalidEdit, NotEntitled, UnknownDecision, WrongCall
from agentkit.middleware.approval_policy import Case, DecisionType
from agentkit.pause import Delivery

__all__ = ["READ_AGAIN", "Decision", "PendingApproval", "Question", "decide", "decided_at", "pending_approvals"]

_KIND: Final = "tool_approval"
READ_AGAIN: Final = "read_again"
"""Marks a decision that was taken before, in time, and is read again since another followed it."""
_REUSED: Final = "an earlier call had the same id and was decided on, so it may be meant for that one."
_TEXT: Final = {"type": "string"}


class EditedAction(TypedDict):
    """What a call becomes."""

    args: dict[str, Any]
    name: NotRequired[str]
    """Another tool. Default: the same."""


class Decision(TypedDict):
    """A person's decision on one tool call."""

    type: DecisionType
    by: NotRequired[str]
    """Who decided. Required where the rule names approvers, or wants several."""
    tool_call_id: NotRequired[str]
    """The call that is meant, checked where it is given. Required where the run is resumed without the question's id;
    `decide` fills it in."""
    at: NotRequired[str]
    """When, as ISO 8601 text. Default: when the run is resumed. `decide` fills it in."""
    edited_action: NotRequired[EditedAction]
    """For `edit`."""
    message: NotRequired[str]
    """For `reject`: why; for `respond`: the answer that stands in for the tool's result."""
    end: NotRequired[bool]
    """For `reject`: end the run, with the reason `rejected`."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question about one call.

    Attributes:
        call: The call as it would be executed.
        case: The rules it falls under.
        tools: The agent's tools by name.
        consents: Who approved it already.
        edited_by: Who made it what it is, if a person did.
        id_reused: Whether an earlier call of the thread that had the same id was decided on.
    """

    call: ToolCall
    case: Case
    tools: Mapping[str, BaseTool]
    consents: tuple[str | None, ...] = ()
    edited_by: tuple[str | None, ...] = ()
    id_reused: bool = False

    def payload(self) -> dict[str, Any]:
        """What a person is shown: LangChain's `ToolApprovalRequest`, and more."""
        case = self.case
        return {
            "type": _KIND,
            "tool_call_id": self.call["id"],
            "name": self.call["name"],
            "args": self.call["args"],
            "description": f"`{self.call['name']}` must be approved: {'; '.join(rule.name for rule in case.rules)}.",
            "rules": [rule.name for rule in case.rules],
            "allowed": list(case.allowed),
            "among": case.among,
            "approved_by": list(self.consents),
            "missing": case.missing(self.consents),
            "edited": bool(self.edited_by),
            "id_reused": self.id_reused,
            "asked_at": case.asked_at.isoformat() if case.asked_at else None,
            "expires_at": case.expires_at.isoformat() if case.expires_at else None,
        }

    def schema(self) -> dict[str, Any]:
        """What a decision looks like, as JSON schema."""
        fields: dict[DecisionType, tuple[dict[str, Any], list[str]]] = {
            "approve": ({}, []),
            "edit": ({"edited_action": {"type": "object", "properties": self._action(), "required": ["args"]}}, []),
            "reject": ({"message": _TEXT, "end": {"type": "boolean"}}, []),
            "respond": ({"message": _TEXT}, ["message"]),
        }
        fields["edit"][1].append("edited_action")
        always = ["type", "by"] if self.case.needs_name else ["type"]
        common = {"by": _TEXT, "tool_call_id": {"const": self.call["id"]}, "at": {**_TEXT, "format": "date-time"}}
        return {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"type": {"const": kind}, **common, **fields[kind][0]},
                    "required": [*always, *fields[kind][1]],
                }
                for kind in self.case.allowed
            ]
        }

    def _action(self) -> dict[str, Any]:
        tool = self.tools.get(self.call["name"])
        return {"name": {"enum": sorted(self.tools)}, "args": _parameters(tool) if tool else {}}

    def check(self, answer: Any, came: Delivery) -> dict[str, Any]:
        """The decision as it was sent, if it can be taken.

        Args:
            answer: What the run was resumed with.
            came: How it came.

        Raises:
            InvalidDecision: If it cannot.
        """
        id = self.call["id"]
        decision = _shaped(answer, id, self.case.allowed)
        if decision.get("tool_call_id", id) != id:
            raise WrongCall(id, f"it is for call {decision['tool_call_id']!r}. Decide on the call that is asked about.")
        if not came.addressed and self.id_reused:
            raise IncompleteDecision(id, f"{_REUSED} Resume with `decide`, by the question's own id.")
        if not came.addressed and "tool_call_id" not in decision:
            raise IncompleteDecision(
                id, "it names no call, so it may be meant for another. Resume with `decide`, or add `tool_call_id`."
            )
        by = decision.get("by")
        if by is None and self.case.needs_name:
            raise IncompleteDecision(id, "who decided is missing; add `by`.")
        if not self.case.entitled(by):
            raise NotEntitled(id, f"{by!r} may not decide; {', '.join(self.case.among)} may.")
        if decision["type"] == "approve" and self.case.needs_name and by in self.consents:
            raise NotEntitled(id, f"{by!r} has approved it already; somebody else must, too.")
        if decision["type"] == "edit":
            _check_arguments(self.edited(decision), self.tools)
        return decision if came.new else {**decision, READ_AGAIN: True}

    def edited(self, decision: Mapping[str, Any]) -> ToolCall:
        """The call that an edit makes of this one."""
        action = decision["edited_action"]
        return {**self.call, "name": action.get("name") or self.call["name"], "args": action["args"]}


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A question that waits for a decision."""

    id: str
    """The question's own id, to resume with. A question that follows an answer has another one."""
    tool_call_id: str
    name: str
    args: dict[str, Any]
    request: Mapping[str, Any]
    """All that the question says."""
    response_schema: Mapping[str, Any]
    """What a decision looks like, as JSON schema."""


def pending_approvals(paused: StateSnapshot | Mapping[str, Any]) -> list[PendingApproval]:
    """The questions that a paused run waits for, those of sub-agents among them, in the order of their calls' ids.

    Args:
        paused: What `invoke` returned, or `agent.get_state(config)`.
    """
    found: Sequence[Interrupt]
    found = paused.interrupts if isinstance(paused, StateSnapshot) else paused.get("__interrupt__", ())
    asked = [i for i in found if isinstance(i.value, Mapping) and i.value.get("type") == _KIND]
    pending = [
        PendingApproval(i.id, i.value["tool_call_id"], i.value["name"], i.value["args"], i.value, _schema_of(i))
        for i in asked
    ]
    return sorted(pending, key=lambda one: (one.tool_call_id, one.id))


def decide(paused: StateSnapshot | Mapping[str, Any], decisions: Mapping[str, Decision]) -> Command[Any]:
    """The command that resumes a paused run with decisions. Questions that are left out stay open.

    Each decision is checked for its shape here, before anything runs, and marked with its call and the time.

    Args:
        paused: What `invoke` returned, or `agent.get_state(config)`, read just now.
        decisions: By the question's id, or the id of its tool call.

    Raises:
        InvalidDecision: If one cannot be taken; then none is.
    """
    pending = pending_approvals(paused)
    resume: dict[str, Any] = {}
    for key, decision in decisions.items():
        meant = [one for one in pending if key in (one.id, one.tool_call_id)]
        if not meant:
            waiting = ", ".join(f"{one.tool_call_id!r}" for one in pending) or "nothing"
            raise WrongCall(key, f"no question about it is open; it was decided or withdrawn. Waiting: {waiting}.")
        if len(meant) > 1:
            raise WrongCall(key, "several questions are about a call of this id; use the questions' own ids.")
        one = meant[0]
        if key != one.id and one.request.get("id_reused"):
            raise WrongCall(key, f"{_REUSED} Use the question's own id.")
        shaped = _shaped(decision, one.tool_call_id, one.request["allowed"])
        if shaped.get("tool_call_id", one.tool_call_id) != one.tool_call_id:
            raise WrongCall(key, f"the decision is for call {shaped['tool_call_id']!r}.")
        resume[one.id] = {**shaped, "tool_call_id": one.tool_call_id, "at": datetime.now(UTC).isoformat()}
    if not resume:
        raise WrongCall(None, "no decision was given.")
    return Command(resume=resume)


def _schema_of(interrupt: Interrupt) -> Mapping[str, Any]:
    return getattr(interrupt, "response_schema", None) or {}


def _shaped(answer: Any, id: str | None, allowed: Sequence[str]) -> dict[str, Any]:
    """The decision, if each of its fields is there and of its kind."""
    kind = answer.get("type") if isinstance(answer, Mapping) else None
    if kind not in allowed:
        shown = f"{kind!r} is not allowed" if kind else f"a {type(answer).__name__} without a `type` is none"
        raise UnknownDecision(id, f"{shown}; a decision is a dict with one of the types {', '.join(allowed)}.")
    decision = dict(answer)
    if kind == "respond" and "message" not in decision:
        raise IncompleteDecision(id, "`respond` needs a `message`, the answer to give the model.")
    if kind == "edit" and not isinstance(decision.get("edited_action"), Mapping):
        raise IncompleteDecision(id, "`edit` needs an `edited_action` with the new `args`.")
    if kind == "edit" and not isinstance(decision["edited_action"].get("args"), Mapping):
        raise IncompleteDecision(id, "`edited_action` needs `args`, all arguments of the call as a dict.")
    for name in ("by", "message", "tool_call_id", "at"):
        if not isinstance(decision.get(name, ""), str):
            raise IncompleteDecision(id, f"`{name}` must be a text, not a {type(decision[name]).__name__}.")
    if not decision.get("by", "somebody"):
        raise IncompleteDecision(id, "`by` is empty.")
    if "at" in decision:
        decided_at(decision, id)
    return decision


def decided_at(decision: Mapping[str, Any], id: str | None) -> datetime:
    """When a decision was made, as it says itself."""
    try:
        at = datetime.fromisoformat(decision["at"])
    except ValueError:
        raise IncompleteDecision(id, f"`at` must be a time in ISO 8601, not {decision['at']!r}.") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _parameters(tool: BaseTool) -> Mapping[str, Any]:
    """The arguments that the model may set, as JSON schema."""
    parameters: Mapping[str, Any] = convert_to_openai_tool(tool)["function"].get("parameters") or {}
    return parameters


def _check_arguments(call: ToolCall, tools: Mapping[str, BaseTool]) -> None:
    """Refuse an edited call that could not be executed, or not with all that was written."""
    name, args, id = call["name"], call["args"], call["id"]
    tool = tools.get(name)
    if tool is None:
        raise InvalidEdit(id, f"there is no tool {name!r}; there are {', '.join(sorted(tools))}.")
    shown, schema = _parameters(tool), tool.tool_call_schema
    known: Mapping[str, Any] = shown.get("properties", {})
    unknown = sorted(set(args) - set(known))
    if unknown and not shown.get("additionalProperties"):
        raise InvalidEdit(id, f"`{name}` takes no {', '.join(unknown)}; it takes {', '.join(known) or 'nothing'}.")
    if missing := [one for one in shown.get("required", []) if one not in args]:
        raise InvalidEdit(id, f"`{name}` needs {', '.join(missing)}.")
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        try:
            schema.model_validate(args)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or name
            raise InvalidEdit(id, f"`{name}` refuses the arguments: {where}: {first['msg']}.") from None
