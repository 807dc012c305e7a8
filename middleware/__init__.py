"""Shipped middleware, one per module."""

if __name__ != "agentkit.middleware":
    raise ImportError("import this package as agentkit.middleware")

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

__all__ = [
    "ConsecutiveFailures",
    "CostBudget",
    "Deadline",
    "Gates",
    "Handoff",
    "Price",
    "RepeatedCall",
    "Rule",
    "SameCallFailed",
    "Standing",
    "StepBudget",
    "TokenBudget",
    "ToolCallBudget",
]
