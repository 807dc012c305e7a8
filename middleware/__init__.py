"""Shipped middleware, one per module."""

if __name__ != "agentkit.middleware":
    raise ImportError("import this package as agentkit.middleware")

import importlib
import typing

if typing.TYPE_CHECKING:
    from agentkit.middleware.approval import (
        Approval,
        ApprovalRecord,
        ApprovalRule,
        Decision,
        PendingApproval,
        decide,
        pending_approvals,
    )
    from agentkit.middleware.effect_ledger import EffectLedger
    from agentkit.middleware.facts import Facts
    from agentkit.middleware.gate_budgets import CostBudget, Deadline, Price, StepBudget, TokenBudget, ToolCallBudget
    from agentkit.middleware.gate_failures import ConsecutiveFailures, RepeatedCall, SameCallFailed
    from agentkit.middleware.gate_rules import Rule, Standing
    from agentkit.middleware.gates import Gates
    from agentkit.middleware.handoff import Handoff
    from agentkit.middleware.insist import Insist
    from agentkit.middleware.model_retry import Fallback, ModelRetry
    from agentkit.middleware.reuse import Reuse
    from agentkit.middleware.run_log import RunLog
    from agentkit.middleware.stack import standard
    from agentkit.middleware.tool_retry import ToolRetry
    from agentkit.middleware.tracing import Tracing

__all__ = [
    "Approval",
    "ApprovalRecord",
    "ApprovalRule",
    "ConsecutiveFailures",
    "CostBudget",
    "Deadline",
    "Decision",
    "EffectLedger",
    "Facts",
    "Fallback",
    "Gates",
    "Handoff",
    "Insist",
    "ModelRetry",
    "PendingApproval",
    "Price",
    "RepeatedCall",
    "Reuse",
    "Rule",
    "RunLog",
    "SameCallFailed",
    "Standing",
    "StepBudget",
    "TokenBudget",
    "ToolCallBudget",
    "ToolRetry",
    "Tracing",
    "decide",
    "pending_approvals",
    "standard",
]

_HOMES: typing.Final = {
    "Approval": "approval",
    "ApprovalRecord": "approval",
    "ApprovalRule": "approval",
    "ConsecutiveFailures": "gate_failures",
    "CostBudget": "gate_budgets",
    "Deadline": "gate_budgets",
    "Decision": "approval",
    "EffectLedger": "effect_ledger",
    "Facts": "facts",
    "Fallback": "model_retry",
    "Gates": "gates",
    "Handoff": "handoff",
    "Insist": "insist",
    "ModelRetry": "model_retry",
    "PendingApproval": "approval",
    "Price": "gate_budgets",
    "RepeatedCall": "gate_failures",
    "Reuse": "reuse",
    "Rule": "gate_rules",
    "RunLog": "run_log",
    "SameCallFailed": "gate_failures",
    "Standing": "gate_rules",
    "StepBudget": "gate_budgets",
    "TokenBudget": "gate_budgets",
    "ToolCallBudget": "gate_budgets",
    "ToolRetry": "tool_retry",
    "Tracing": "tracing",
    "decide": "approval",
    "pending_approvals": "approval",
    "standard": "stack",
}


if not typing.TYPE_CHECKING:  # a checker shall see what is there, and nothing else

    def __getattr__(name: str) -> typing.Any:
        """Import a middleware where it is first used: an agent pays for those it has."""
        if name not in _HOMES:
            raise AttributeError(f"module 'agentkit.middleware' has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f"agentkit.middleware.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
