"""What stands around an agent's model and tools: its middlewares and its tools, read off a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.runnables import RunnableBinding
from langchain_core.tools import BaseTool

from agentkit.check.leaving import tools_in
from agentkit.check.shape import NodeShape, Shape
from agentkit.check.sources import functions_of
from agentkit.run import AgentGraph

__all__ = ["bound_tools", "is_agent", "middleware_of", "tools_of"]


def middleware_of(shape: Shape) -> list[tuple[str, AgentMiddleware[Any, Any, Any]]]:
    """The middlewares of an agent, each with its name.

    All of them for an agent of agentkit's. LangChain's factory leaves only those to be seen that have hooks which are
    nodes.
    """
    if isinstance(shape.compiled, AgentGraph):
        table = shape.compiled.agent.hooks
        return list(zip(table.names, table.middleware, strict=True)) if table is not None else []
    found: dict[int, tuple[str, AgentMiddleware[Any, Any, Any]]] = {}
    for name, node in shape.nodes.items():
        for hook in functions_of(node.runnable):
            owner = getattr(hook, "__self__", None)
            if isinstance(owner, AgentMiddleware):
                found[id(owner)] = (name.rpartition(".")[0], owner)
    return list(found.values())


def tools_of(node: NodeShape) -> Mapping[str, BaseTool]:
    """The tools that a node runs: those of a `ToolNode`, or of an agent's tools step."""
    return tools_in(node.runnable)


def bound_tools(node: NodeShape) -> list[tuple[str, list[str]]]:
    """The models with tools that a node's function names, each with the names of these tools, in their order."""
    found = []
    for source in (body.source for body in node.bodies):
        if source is None:
            continue
        used = {part.id for part in source.own() if hasattr(part, "id")}
        for name in sorted(used):
            model = source.names.get(name)
            tools = model.kwargs.get("tools") if isinstance(model, RunnableBinding) else None
            if isinstance(tools, list | tuple):
                found.append((name, [_name(tool) for tool in tools]))
    return found


def is_agent(shape: Shape) -> bool:
    """Whether the graph is an agent that was made by agentkit's or LangChain's `create_agent`."""
    config: Any = getattr(shape.compiled, "config", None) or {}
    return (config.get("metadata") or {}).get("ls_integration") == "langchain_create_agent"


def _name(tool: Any) -> str:
    if isinstance(tool, Mapping):
        return str(tool.get("name") or (tool.get("function") or {}).get("name") or "")
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", ""))
