"""What users take for granted, of `Approval`, `Facts` and `Reuse`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from inspect import unwrap
from typing import Any, NotRequired

from langchain.agents.middleware import AgentState
from langgraph.types import Interrupt

from agentkit.middleware import Approval, ApprovalRule, Facts, Reuse
from agentkit.testing import MiddlewareContract, Request, ai, tool_call


def noon() -> datetime:
    return datetime(2026, 3, 1, 12, tzinfo=UTC)


class TestApproval(MiddlewareContract):
    def make(self) -> Any:
        return Approval(ApprovalRule(tool="settle", expires=60), clock=noon)

    def resolve(self, interrupts: Sequence[Interrupt]) -> Any:
        return {i.id: {"type": "approve", "by": "ann"} for i in interrupts}


class TestApprovalThatEdits(MiddlewareContract):
    def make(self) -> Any:
        return Approval(ApprovalRule(tool="settle"), clock=noon)

    def resolve(self, interrupts: Sequence[Interrupt]) -> Any:
        return {i.id: {"type": "edit", "edited_action": {"args": {"amount": 1}}} for i in interrupts}


class TestApprovalThatRejects(MiddlewareContract):
    def make(self) -> Any:
        return Approval(ApprovalRule(tool="settle"), clock=noon)

    def resolve(self, interrupts: Sequence[Interrupt]) -> Any:
        return {i.id: {"type": "reject", "by": "ann"} for i in interrupts}


class Order(AgentState[Any]):
    order_id: NotRequired[str]


class TestFacts(MiddlewareContract):
    options = {"state_schema": Order}  # noqa: RUF012  # the contract says ClassVar

    def make(self) -> Any:
        class WithOrder(Facts):
            def before_agent(self, state: Any, runtime: Any) -> Any:
                return {"order_id": "o-17"}

        return WithOrder(["order_id"])


class TestReuse(MiddlewareContract):
    def make(self) -> Any:
        return ReadingReuse()

    def answer(self, request: Request) -> Any:
        """As the contract's, with a call that stands there twice."""
        step = sum(m.type == "ai" for m in request.messages) % 3
        if step == 0:
            return ai("", tool_call("lookup", {"key": "a"}, "1"), tool_call("lookup", {"key": "a"}, "2"))
        if step == 1:
            return ai("", tool_call("lookup", {"key": "a"}, "3"), tool_call("settle", {"amount": 7}, "4"))
        return "done"


class ReadingReuse(Reuse):
    """`Reuse` for the contract's tools, whose `lookup` does not say that it only reads."""

    def wrap_tool_call(self, request: Any) -> Any:
        if request.tool.name == "lookup":
            lookup = request.tool.model_copy(update={"metadata": {"agentkit": {"effect": "read"}}})
            request = request.override(tool=lookup)
        return (yield from unwrap(Reuse.wrap_tool_call)(self, request))
