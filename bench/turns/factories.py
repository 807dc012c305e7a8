"""The contenders that run in this process, and middleware that does nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import AgentMiddleware

from agentkit import create_agent

FACTORIES: dict[str, Callable[..., Any]] = {
    "hook": partial(create_agent, granularity="hook"),
    "turn": partial(create_agent, granularity="turn"),
    "langchain": langchain_create_agent,
}


class Hook(AgentMiddleware[Any, Any, Any]):
    """Two node hooks that do nothing."""

    def before_model(self, state: Any, runtime: Any) -> None:
        """Do nothing."""

    def after_model(self, state: Any, runtime: Any) -> None:
        """Do nothing."""

    async def abefore_model(self, state: Any, runtime: Any) -> None:
        """Do nothing."""

    async def aafter_model(self, state: Any, runtime: Any) -> None:
        """Do nothing."""


class Wrap(AgentMiddleware[Any, Any, Any]):
    """A model wrap and a tool wrap that do nothing."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Pass it on."""
        return handler(request)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Pass it on."""
        return handler(request)


def stack(kind: type[AgentMiddleware[Any, Any, Any]], size: int) -> list[Any]:
    """So many middlewares, each a class of its own, which LangChain's factory wants."""
    return [type(f"{kind.__name__}{number}", (kind,), {})() for number in range(size)]
