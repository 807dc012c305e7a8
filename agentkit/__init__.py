"""A middleware-extensible ReAct agent framework on LangGraph, for agents that run in production."""

import importlib
import typing

if typing.TYPE_CHECKING:
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

_HOMES: typing.Final = {
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
_PACKAGES: typing.Final = frozenset({"errors", "ledger", "middleware", "testing", "tools"})


if not typing.TYPE_CHECKING:  # a checker shall see what is there, and nothing else

    def __getattr__(name: str) -> typing.Any:
        """Import a name where it is first used: `import agentkit` alone loads neither LangChain nor LangGraph."""
        if name in _PACKAGES:
            return importlib.import_module(f"agentkit.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'agentkit' has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
