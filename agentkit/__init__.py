"""A middleware-extensible ReAct agent framework on LangGraph, for agents that run in production."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _CHECKING
from typing import Any as _Any

if _CHECKING:
    from langchain.agents.middleware import AgentMiddleware, AgentState

    from agentkit.agent import create_agent
    from agentkit.check.mending import barrier
    from agentkit.exits import Exit, exit_of
    from agentkit.limits import Limits
    from agentkit.middleware_base import Middleware, Placement
    from agentkit.run import AgentGraph, thread
    from agentkit.subagent import as_tool
    from agentkit.watch import Outcome, Run

__all__ = [
    "AgentGraph",
    "AgentMiddleware",
    "AgentState",
    "Exit",
    "Limits",
    "Middleware",
    "Outcome",
    "Placement",
    "Run",
    "as_tool",
    "barrier",
    "create_agent",
    "exit_of",
    "thread",
]

# Imported when first asked for: LangChain takes seconds, which a command's `--help` and a shell's completion have not.
_HOMES = {
    "AgentGraph": "agentkit.run",
    "AgentMiddleware": "langchain.agents.middleware",
    "AgentState": "langchain.agents.middleware",
    "Exit": "agentkit.exits",
    "Limits": "agentkit.limits",
    "Middleware": "agentkit.middleware_base",
    "Outcome": "agentkit.watch",
    "Placement": "agentkit.middleware_base",
    "Run": "agentkit.watch",
    "as_tool": "agentkit.subagent",
    "barrier": "agentkit.check.mending",
    "create_agent": "agentkit.agent",
    "exit_of": "agentkit.exits",
    "thread": "agentkit.run",
}


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
