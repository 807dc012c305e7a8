"""Agents: what agentkit and LangChain build has no error."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent as langchain_agent
from langchain.agents.middleware import (
    AgentState,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState
from pydantic import BaseModel

from agentkit import create_agent
from agentkit.check import check
from agentkit.middleware import StepBudget, standard
from agentkit.testing import ScriptedModel
from tests.check.corpus import drawn


class Weather(BaseModel):
    """The weather."""

    degrees: int


@tool
def look(x: int) -> str:
    """Look."""
    return str(x)


@tool(return_direct=True)
def answer(x: int) -> str:
    """Answer."""
    return str(x)


STACKS: dict[str, list[Any]] = {
    "bare": [],
    "limits": [ModelCallLimitMiddleware(run_limit=3), ToolCallLimitMiddleware(run_limit=3)],
    "retries": [ModelRetryMiddleware(), ToolRetryMiddleware(), ModelFallbackMiddleware(ScriptedModel("x"))],
    "context": [SummarizationMiddleware(ScriptedModel("x")), ContextEditingMiddleware(), TodoListMiddleware()],
    "person": [HumanInTheLoopMiddleware({"look": True}), PIIMiddleware("email")],
}


@pytest.mark.parametrize("factory", [create_agent, langchain_agent], ids=["agentkit", "langchain"])
@pytest.mark.parametrize("response_format", [None, Weather], ids=["text", "structured"])
@pytest.mark.parametrize("stack", STACKS)
def test_an_agent_has_no_error(factory: Any, response_format: Any, stack: str) -> None:
    agent = factory(
        ScriptedModel("x"),
        [look, answer],
        middleware=STACKS[stack],
        response_format=response_format,
        checkpointer=InMemorySaver(),
    )
    report = check(agent)
    assert report.errors == (), str(report)
    assert report.complete


class Orders(AgentState[Any]):
    order_id: str


@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_the_standard_stack_has_no_finding(granularity: Any) -> None:
    stack = standard(StepBudget(10), approve=["look"], facts=["order_id"])
    agent = create_agent(
        ScriptedModel("x"),
        [look],
        middleware=stack,
        state_schema=Orders,
        checkpointer=InMemorySaver(),
        granularity=granularity,
    )
    assert check(agent).findings == ()


def test_an_agent_inside_another_graph_has_no_finding() -> None:
    agent = create_agent(ScriptedModel("x"), [look], name="agent")
    graph = drawn((START, "agent"), schema=MessagesState, agent=agent)
    assert check(graph).findings == ()
