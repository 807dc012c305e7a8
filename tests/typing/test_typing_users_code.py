"""Code as users write it. mypy --strict reads this file with the rest; running it shows that it is no fiction."""

from collections.abc import Generator
from typing import Any, NotRequired, assert_type

from langchain.agents.middleware import ModelRequest, ModelResponse, ToolCallRequest, hook_config
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from agentkit import (
    AgentGraph,
    AgentMiddleware,
    AgentState,
    Exit,
    Limits,
    Middleware,
    Outcome,
    Placement,
    Run,
    as_tool,
    create_agent,
    exit_of,
    thread,
)
from agentkit.testing import ScriptedModel, ai, tool_call


class Visits(AgentState[Any]):
    visits: NotRequired[int]


class Guard(Middleware):
    """Every hook that agentkit knows, annotated as a user would."""

    state_schema = Visits
    model_placement = Placement(at="outermost")

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[str] = []

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: Visits, runtime: Runtime[None]) -> dict[str, Any] | None:
        return {"visits": state.get("visits", 0) + 1}

    def wrap_model_call(
        self, request: ModelRequest[None]
    ) -> Generator[ModelRequest[None], ModelResponse[Any], ModelResponse[Any]]:
        response = yield request
        return response

    def wrap_tool_call(
        self, request: ToolCallRequest
    ) -> Generator[ToolCallRequest, ToolMessage | Command[Any], ToolMessage | Command[Any]]:
        return (yield request)

    def around_run(self, run: Run) -> Generator[None, Outcome, None]:
        outcome = yield
        self.outcomes.append(outcome.status)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def build(guard: Guard) -> AgentGraph:
    middleware: list[AgentMiddleware[Any, Any, Any]] = [guard]
    return create_agent(
        ScriptedModel(ai("", tool_call("add", {"a": 1, "b": 2})), "Three."),
        [add],
        system_prompt="You add.",
        middleware=middleware,
        checkpointer=InMemorySaver(),
        name="adder",
        limits=Limits(model_calls=5),
    )


def test_types_are_what_users_expect() -> None:
    guard = Guard()
    agent = build(guard)
    graph: CompiledStateGraph[Any, Any, Any, Any] = agent  # goes wherever a compiled graph goes
    config = assert_type(thread("t-1"), RunnableConfig)

    result = graph.invoke({"messages": "1 + 2?"}, config)
    ended = assert_type(exit_of(result), Exit | None)
    assert ended is not None
    assert ended.reason == "answer"
    assert result["visits"] == 1
    assert guard.outcomes == ["success"]


def test_an_agent_is_a_tool() -> None:
    inner = create_agent(ScriptedModel("Three."), name="adder")
    assert assert_type(as_tool(inner, description="Adds."), BaseTool).name == "adder"
