"""Wraps as traced runs (`NAME.wrap_model_call`), for who traces with LangSmith; a plain call for everybody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from langchain.agents.middleware import ModelRequest, ToolCallRequest
from langgraph.types import TracePolicy
from langsmith import traceable
from langsmith.utils import tracing_is_enabled

from agentkit._compat import trace_processor

__all__ = ["Traced"]


class Traced:
    """A wrap that records its run while tracing is on; decided at each call, since it may be switched on later."""

    __slots__ = ("_plain", "_traced")

    def __init__(self, wrap: Callable[..., Any], name: str, policy: TracePolicy | None) -> None:
        """Trace a wrap under a name, with the middleware's trace policy."""
        self._plain = wrap
        inputs = trace_processor(policy, "process_inputs")
        self._traced = traceable(
            name=name,
            process_inputs=lambda given: inputs(_readable(given)),
            process_outputs=trace_processor(policy, "process_outputs"),
        )(wrap)

    def __call__(self, request: Any, handler: Any) -> Any:
        """Call the wrap."""
        return (self._traced if tracing_is_enabled() else self._plain)(request, handler)


def _readable(given: dict[str, Any]) -> dict[str, Any]:
    """The inputs without what no tracer can store: the handler and the runtime."""
    kept = {key: value for key, value in given.items() if key != "handler"}
    request = kept.get("request")
    if isinstance(request, ModelRequest | ToolCallRequest):
        kept["request"] = {f.name: getattr(request, f.name) for f in fields(request) if f.name != "runtime"}
    return kept
