"""`Approval`: pause before risky tool calls until a person has decided."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import add
from typing import Annotated, Any, Final, NotRequired

from langchain.agents.middleware import (
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from agentkit.beside import beside
from agentkit.errors import ConfigurationError
from agentkit.exits import Exit
from agentkit.middleware.approval_decisions import (
    READ_AGAIN,
    Decision,
    PendingApproval,
    Question,
    decide,
    decided_at,
    pending_approvals,
)
from agentkit.middleware.approval_policy import ApprovalRule, Case
from agentkit.middleware.approval_records import (
    ApprovalRecord,
    by_whom,
    record_of,
    refusal,
    report,
    report_asked,
    telling,
)
from agentkit.middleware_base import Middleware, Placement
from agentkit.pause import ask
from agentkit.tools import refused_arguments
from agentkit.transcript import SYNTHETIC

__all__ = [
    "Approval",
    "ApprovalRecord",
    "ApprovalRule",
    "ApprovalState",
    "Decision",
    "PendingApproval",
    "decide",
    "pending_approvals",
]

_RECORDS: Final = "approvals"
_JUDGED: Final = "approval_judged"


def _merged(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    return {**(old or {}), **(new or {})}


class ApprovalState(AgentState[Any]):
    """The state fields of `Approval`."""

    approvals: NotRequired[Annotated[list[ApprovalRecord], OmitFromInput, add]]
    """Every decision of the thread, in the order in which they took effect."""
    approval_judged: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, _merged]]
    """By policy: what the calls of the last answer were found to fall under."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _Verdict:
    """What came of the questions about one call."""

    call: ToolCall
    records: list[ApprovalRecord] = field(default_factory=list)
    refusal: ToolMessage | None = None
    """Stands in for the tool's result."""


class Approval(Middleware):
    """Pauses before risky tool calls until a person has decided.

    ```python
    Approval(ApprovalRule(tool="refund", when=lambda args, state: args["amount"] > 1000))
    ```

    Each call pauses by itself, so siblings go on and each question has its own id. Answer with
    `agent.invoke(decide(agent.get_state(config), {call_id: {"type": "approve", "by": "ann"}}), config)`.
    """

    state_schema = ApprovalState
    tool_placement = Placement(outside=("ToolRetry", "ToolRetryMiddleware", "EffectLedger"))  # asked once, not per try

    pauses_tools = True

    def __init__(self, *policy: ApprovalRule | str, clock: Callable[[], datetime] = _now) -> None:
        """Take the policy.

        Args:
            policy: Rules; a name stands for `ApprovalRule(tool=name)`. All that cover a call must be satisfied.
                Default: `ApprovalRule(effect="write")`, every call of a tool that does not say that it only reads.
            clock: The time with its zone.

        Raises:
            ConfigurationError: If something is no rule, or two rules have one label.
        """
        super().__init__()
        if wrong := [rule for rule in policy if not isinstance(rule, ApprovalRule | str)]:
            raise ConfigurationError(f"Approval takes rules and names of tools, such as 'refund', not {wrong[0]!r}.")
        rules = [ApprovalRule(tool=rule) if isinstance(rule, str) else rule for rule in policy]
        self._rules = tuple(rules) or (ApprovalRule(effect="write"),)
        self._clock = clock
        labels = [rule.name for rule in self._rules]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise ConfigurationError(f"Approval: two rules are called {twice[0]!r}; give each a `label` of its own.")
        self._key = "; ".join(labels)  # tells the policies of one agent apart, in every process

    @property
    def named_tools(self) -> Collection[str]:
        """The tools that its rules name."""
        return tuple(name for rule in self._rules for name in rule.tools)

    @property
    def policy(self) -> tuple[ApprovalRule, ...]:
        """The rules."""
        return self._rules

    # ---- when the model has answered: judge its calls, once

    def wrap_model_call(self, request: ModelRequest[Any]) -> Generator[ModelRequest[Any], ModelResponse[Any], Any]:
        """Judge the calls of the answer, so that the judgement is stored before any of them can pause."""
        state: Mapping[str, Any] = request.state
        judged = (state.get(_JUDGED) or {}).get(self._key) or {}
        update: dict[str, Any] = {}
        if ending := self._ending(judged, state.get(_RECORDS) or []):
            response: ModelResponse[Any] = ModelResponse(
                result=[AIMessage(ending.detail, response_metadata={SYNTHETIC: True})]
            )
            update["exit"] = ending.record()
        else:
            response = yield request
        if withdrawn := self._withdrawn(judged, state):
            update[_RECORDS] = withdrawn
        if (now := self._judged(request, response)) or judged:
            update[_JUDGED] = {self._key: now}
        return ExtendedModelResponse(response, Command(update=update)) if update else response

    def _judged(self, request: ModelRequest[Any], response: ModelResponse[Any]) -> dict[str, Any]:
        """By call id: the rules that cover each call, where one might."""
        ai = next((m for m in reversed(response.result) if isinstance(m, AIMessage)), None)
        tools = {tool.name: tool for tool in request.tools if isinstance(tool, BaseTool)}
        at = self._clock().isoformat()
        found: dict[str, Any] = {}
        for call in ai.tool_calls if ai is not None else ():
            tool = tools.get(call["name"])
            rules = [rule for rule in self._rules if rule.may_cover(call["name"], tool)]
            if tool is None or not rules or call["id"] is None:
                continue  # an unknown tool is judged when it is about to run
            if refused_arguments(tool, call["args"]) is not None:
                continue  # it cannot run, so nobody is asked
            covering = [rule.name for rule in rules if rule.covers(call["args"], request.state)]
            found[call["id"]] = {"name": call["name"], "args": call["args"], "rules": covering, "at": at}
            if covering:
                report_asked(call["id"], call["name"], covering)
        return found

    def _withdrawn(self, judged: Mapping[str, Any], state: Mapping[str, Any]) -> list[ApprovalRecord]:
        """A record for each call that should have been approved and was left open, now that the model goes on."""
        decided = {(record["tool_call_id"], record["asked_at"]) for record in state.get(_RECORDS) or []}
        answered = _answered(judged, state["messages"])
        return [
            ApprovalRecord(
                tool_call_id=id,
                name=entry["name"],
                args=entry["args"],
                decision="withdrawn",
                by=None,
                at=self._clock().isoformat(),
                asked_at=entry["at"],
                rules=entry["rules"],
            )
            for id, entry in judged.items()
            if entry["rules"] and id not in answered and (id, entry["at"]) not in decided
        ]

    def _ending(self, judged: Mapping[str, Any], records: Sequence[ApprovalRecord]) -> Exit | None:
        """Why the run ends, if a rejection of one of the last answer's calls asked for it."""
        for record in records:
            entry = judged.get(str(record["tool_call_id"]))
            if record.get("end") and entry and entry["at"] == record["asked_at"]:
                why = f": {record['message']}" if record.get("message") else ""
                return Exit(
                    "rejected", f"`{record['name']}` was rejected{by_whom(record)}{why}", f"{self.name}.wrap_model_call"
                )
        return None

    # ---- when a call is about to run: ask

    def wrap_tool_call(self, request: ToolCallRequest) -> Generator[ToolCallRequest, Any, Any]:
        """Run the call as it was decided, or what stands in for it."""
        tools = {tool.name: tool for tool in request.runtime.tools}
        if request.tool is not None:
            tools[request.tool.name] = request.tool
        if (refused := self._refused(request.tool_call, tools)) is not None:
            return refused
        verdict = self._settled(request, tools)
        if not verdict.records:
            return (yield request)
        if verdict.refusal is not None:
            return beside(verdict.refusal, {_RECORDS: verdict.records}, self)
        edited = verdict.call is not request.tool_call
        if edited:
            request = request.override(tool_call=verdict.call, tool=tools[verdict.call["name"]])
        result = yield request
        if edited:
            result = telling(result, verdict.call, verdict.records)
        return beside(result, {_RECORDS: verdict.records}, self)

    def _refused(self, call: ToolCall, tools: Mapping[str, BaseTool]) -> ToolMessage | None:
        """What the model is told of a call that cannot run as it stands: nobody needs to be asked about it."""
        tool = tools.get(call["name"])
        if tool is None or not any(rule.may_cover(call["name"], tool) for rule in self._rules):
            return None
        wrong = refused_arguments(tool, call["args"])
        if wrong is None:
            return None
        return ToolMessage(str(wrong), name=call["name"], tool_call_id=str(call["id"]), status="error")

    def _settled(self, request: ToolCallRequest, tools: Mapping[str, BaseTool]) -> _Verdict:
        """Ask until the call is decided. Runs anew with each answer; nothing in it has effects but what is reported."""
        verdict = _Verdict(request.tool_call)
        case = self._case(request, verdict.call, tools)
        consents: list[str | None] = []
        editors: list[str | None] = []
        reused = any(record["tool_call_id"] == verdict.call["id"] for record in request.state.get(_RECORDS) or [])
        while case.missing(consents) > 0:
            question = Question(verdict.call, case, tools, tuple(consents), tuple(editors), reused)
            decision = ask(question.payload(), question.check, question.schema(), asker=self.name)
            at = decided_at(decision, verdict.call["id"]) if "at" in decision else self._clock()
            record = record_of(verdict.call, case, decision, at, was_in_time=bool(decision.get(READ_AGAIN)))
            verdict.records.append(record)
            if READ_AGAIN not in decision:  # it was reported when it was given
                report(record)
            if record["decision"] in ("reject", "expired", "respond"):
                verdict.refusal = refusal(record, case)
                return verdict
            if record["decision"] == "edit":
                verdict.call = question.edited(decision)
                after = self._case(request, verdict.call, tools)
                # whoever wrote the call consents to it, but only under rules they were asked under
                consents = [record["by"]] if all(rule in case.rules for rule in after.rules) else []
                case = after
                editors.append(record["by"])
            else:
                consents.append(record["by"])
        return verdict

    def _case(self, request: ToolCallRequest, call: ToolCall, tools: Mapping[str, BaseTool]) -> Case:
        """What a call falls under: as it was judged when the model made it, or judged now if it is another one."""
        rules = [rule for rule in self._rules if rule.may_cover(call["name"], tools.get(call["name"]))]
        if not rules:
            return Case()
        judged = (request.state.get(_JUDGED) or {}).get(self._key) or {}
        entry = judged.get(str(call["id"]))
        if entry is not None and (entry["name"], entry["args"]) == (call["name"], call["args"]):
            covering = [rule for rule in self._rules if rule.name in entry["rules"]]
        else:
            covering = [rule for rule in rules if rule.covers(call["args"], request.state)]
        asked_at = datetime.fromisoformat(entry["at"]) if entry is not None else None
        return Case(tuple(covering), asked_at)


def _answered(ids: Container[str], messages: Sequence[AnyMessage]) -> set[str]:
    """Those of the calls that have a result: calls of one answer, which need not be the last one any more."""
    results: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            results.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            if any(call["id"] in ids for call in message.tool_calls):
                break
            results = set()
    return results
