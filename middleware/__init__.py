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
from agentkit.middleware.model_retry import Fallback, ModelRetry
from agentkit.middleware.reuse import Reuse
from agentkit.middleware.tool_retry import ToolRetry

__all__ = [
    "Approval",
    "ApprovalRecord",
    "ApprovalRule",
    "Decision",
    "Facts",
    "Fallback",
    "ModelRetry",
    "PendingApproval",
    "Reuse",
    "ToolRetry",
    "decide",
    "pending_approvals",
]
