"""Shipped middleware, one per module."""

if __name__ != "agentkit.middleware":
    raise ImportError("import this package as agentkit.middleware")

from agentkit.middleware.approval import (
    Approval,
    ApprovalRecord,
    ApprovalRule,
    Decision,
    PendingApproval,
    decide,
    pending_approvals,
)
from agentkit.middleware.facts import Facts
from agentkit.middleware.gate_rules import (
    ConsecutiveFailures,
    CostBudget,
    Deadline,
    Price,
    RepeatedCall,
    Rule,
    SameCallFailed,
    Standing,
    StepBudget,
    TokenBudget,
    ToolCallBudget,
)
from agentkit.middleware.gates import Gates
from agentkit.middleware.handoff import Handoff
from agentkit.middleware.model_retry import Fallback, ModelRetry
from agentkit.middleware.reuse import Reuse
from agentkit.middleware.tool_retry import ToolRetry

__all__ = [
    "Approval",
    "ApprovalRecord",
    "ApprovalRule",
    "ConsecutiveFailures",
    "CostBudget",
    "Deadline",
    "Decision",
    "Facts",
    "Fallback",
    "Gates",
    "Handoff",
    "ModelRetry",
    "PendingApproval",
    "Price",
    "RepeatedCall",
    "Reuse",
    "Rule",
    "SameCallFailed",
    "Standing",
    "StepBudget",
    "TokenBudget",
    "ToolCallBudget",
    "ToolRetry",
    "decide",
    "pending_approvals",
]
