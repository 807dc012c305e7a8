"""Shipped middleware, one per module."""

if __name__ != "agentkit.middleware":
    raise ImportError("import this package as agentkit.middleware")

from agentkit.middleware.model_retry import Fallback, ModelRetry
from agentkit.middleware.tool_retry import ToolRetry

__all__ = ["Fallback", "ModelRetry", "ToolRetry"]
