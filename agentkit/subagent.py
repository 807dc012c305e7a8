"""An agent as a tool of another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field

from agentkit.contract import AGENT
from agentkit.errors import ConfigurationError
from agentkit.exits import exit_of
from agentkit.run import AgentGraph

__all__ = ["as_tool"]

_UNNAMED: Final = "LangGraph"


class Task(BaseModel):
    """What the agent is asked to do."""

    request: str = Field(description="The task, with everything the agent needs to know; it sees nothing else.")


def as_tool(agent: AgentGraph, *, description: str, name: str | None = None) -> BaseTool:
    """Make an agent callable as a tool of another.

    The inner agent starts with the request alone, pauses together with the outer run, and gets no more model calls than
    the outer run has steps left. Its last message, or its structured answer as JSON, is the result; a run that a limit
    ended is an error result.

    Args:
        agent: The inner agent, built without a checkpointer (it is kept in the outer run's).
        description: What the agent is good for, told to the outer model.
        name: The tool's name. Default: the agent's.

    Raises:
        ConfigurationError: If neither the agent nor the tool has a name.
    """
    name = name or agent.get_name()
    if name == _UNNAMED:
        raise ConfigurationError("as_tool needs a name: pass `name=`, or build the agent with `name=`.")

    def run(request: str) -> str:
        return _answer(agent.invoke(_input(request)))

    async def arun(request: str) -> str:
        return _answer(await agent.ainvoke(_input(request)))

    return StructuredTool.from_function(
        run, arun, name=name, description=description, args_schema=Task, metadata={AGENT: name}
    )


def _input(request: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(request)]}


def _answer(result: Mapping[str, Any]) -> str:
    ended = exit_of(result)
    text: str = result["messages"][-1].text
    if ended is not None and ended.source == "limits":
        raise ToolException(text)
    value = result.get("structured_response")
    if value is None:
        return text
    return (
        value.model_dump_json() if isinstance(value, BaseModel) else json.dumps(value, default=str, ensure_ascii=False)
    )
