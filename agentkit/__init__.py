"""A middleware-extensible ReAct agent framework on LangGraph, for agents that run in production."""

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
