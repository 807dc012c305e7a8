"""The graph that a plan becomes: nodes, edges and dispatches as the articles about `create_agent` describe them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from agentkit import create_agent, thread
from agentkit.testing import ENTRY_POINTS, EntryPoint, ScriptedModel, ai, run, tool_call


class Answer(BaseModel):
    value: int


@tool
def look(x: int) -> str:
    """Look."""
    return f"found {x}"


@tool(return_direct=True)
def direct(x: int) -> str:
    """Answer."""
    return "direct"


class Every(AgentMiddleware[Any, Any, Any]):
    def before_agent(self, state: Any, runtime: Any) -> None: ...

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> None: ...

    def after_model(self, state: Any, runtime: Any) -> None: ...

    def after_agent(self, state: Any, runtime: Any) -> None: ...


class Second(Every):
    pass


class Jumps(AgentMiddleware[Any, Any, Any]):
    @hook_config(can_jump_to=["model", "tools", "end"])
    def before_agent(self, state: Any, runtime: Any) -> None: ...

    @hook_config(can_jump_to=["model", "tools"])
    def after_model(self, state: Any, runtime: Any) -> None: ...


class Wraps(AgentMiddleware[Any, Any, Any]):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request)


SHAPES: dict[str, dict[str, Any]] = {
    "a model": {},
    "tools": {"tools": [look]},
    "a direct tool": {"tools": [look, direct]},
    "hooks": {"middleware": [Every(), Second()]},
    "hooks and tools": {"tools": [look], "middleware": [Every(), Second()]},
    "hooks, tools and an answer": {"tools": [look], "middleware": [Every()], "response_format": ToolStrategy(Answer)},
    "an answer": {"response_format": ToolStrategy(Answer)},
    "a wrap": {"tools": [look], "middleware": [Wraps()]},
    "jumps": {"tools": [look], "middleware": [Jumps(), Every()]},
}


def picture(agent: Any) -> tuple[list[str], set[tuple[str, str, bool]]]:
    graph = agent.get_graph()
    return list(graph.nodes), {(edge.source, edge.target, edge.conditional) for edge in graph.edges}


@pytest.mark.parametrize("granularity", ["hook", "turn"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_drawn_as_langchain_draws_it(shape: dict[str, Any], granularity: Any) -> None:
    nodes, edges = picture(create_agent(ScriptedModel("x"), **shape, granularity=granularity))
    their_nodes, their_edges = picture(langchain_create_agent(ScriptedModel("x"), **shape))
    assert nodes == their_nodes
    assert edges == their_edges


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_can_be_drawn_as_text(shape: dict[str, Any]) -> None:
    agent = create_agent(ScriptedModel("x"), **shape)
    text = agent.get_graph().draw_mermaid()
    assert all(stop.name in text for stop in agent.plan.stops)
    assert all(stop.name in str(agent.plan) for stop in agent.plan.stops)


@pytest.mark.parametrize("entry", ["stream", "astream"])
def test_one_update_per_finished_node_in_the_order_of_the_plan(entry: EntryPoint) -> None:
    """Each hook is a node of its own; each call of a batch is one dispatch."""
    calls = [tool_call("look", {"x": x}, f"c{x}") for x in (1, 2)]
    agent = create_agent(ScriptedModel(ai("", *calls), "done"), [look], middleware=[Every(), Second()])
    before = ["Every.before_agent", "Second.before_agent"]
    loop = ["Every.before_model", "Second.before_model", "model", "Second.after_model", "Every.after_model"]
    after = ["Second.after_agent", "Every.after_agent"]
    assert updates(agent, entry) == [*before, *loop, "tools", "tools", *loop, *after]


@pytest.mark.parametrize("entry", ["stream", "astream"])
def test_at_granularity_turn_one_update_per_turn(entry: EntryPoint) -> None:
    calls = [tool_call("look", {"x": x}, f"c{x}") for x in (1, 2)]
    agent = create_agent(
        ScriptedModel(ai("", *calls), "done"), [look], middleware=[Every(), Second()], granularity="turn"
    )
    assert updates(agent, entry) == ["model", "tools", "tools", "model"]


def updates(agent: Any, entry: EntryPoint) -> list[str]:
    """The nodes in the order in which they finished."""
    if entry == "stream":
        return [name for update in agent.stream({"messages": "hi"}, stream_mode="updates") for name in update]

    async def collect() -> list[str]:
        stream = agent.astream({"messages": "hi"}, stream_mode="updates")
        return [name async for update in stream for name in update]

    return asyncio.run(collect())


def test_each_call_is_a_dispatch_of_its_own() -> None:
    calls = [tool_call("look", {"x": x}, f"c{x}") for x in (1, 2, 3)]
    agent = create_agent(
        ScriptedModel(ai("", *calls), "done"), [look], checkpointer=InMemorySaver(), interrupt_before=["tools"]
    )
    agent.invoke({"messages": "hi"}, thread("t"))
    tasks = agent.get_state(thread("t")).tasks
    assert [task.name for task in tasks] == ["tools"] * 3
    dispatched = [snapshot for snapshot in agent.get_state_history(thread("t")) if snapshot.next]
    assert dispatched[0].next == ("tools",) * 3


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_without_tools_after_model_still_runs(entry: EntryPoint, granularity: Any) -> None:
    ran: list[str] = []

    class Notes(AgentMiddleware[Any, Any, Any]):
        def after_model(self, state: Any, runtime: Any) -> None:
            ran.append(state["messages"][-1].text)

    agent = create_agent(ScriptedModel("done"), middleware=[Notes()], granularity=granularity)
    run(agent, "hi", entry=entry)
    assert ran == ["done"]


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_an_unknown_tool_is_answered_with_what_is_there(entry: EntryPoint, granularity: Any) -> None:
    model = ScriptedModel(ai("", tool_call("luk", {"x": 1}, "c1")), "done")
    result = run(create_agent(model, [look], granularity=granularity), "hi", entry=entry)
    answer = result.messages[2]
    assert getattr(answer, "status", None) == "error"
    assert "luk" in answer.text
    assert "look" in answer.text


@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_a_fork_from_the_middle_goes_its_own_way(granularity: Any) -> None:
    """Time travel: an older checkpoint is gone on from, and the thread's history keeps both."""
    steps: list[Any] = [ai("", tool_call("look", {"x": 1}, "c1")), "first ending", "second ending"]
    agent = create_agent(ScriptedModel(*steps), [look], checkpointer=InMemorySaver(), granularity=granularity)
    agent.invoke({"messages": "hi"}, thread("t"))
    middle = next(s for s in agent.get_state_history(thread("t")) if len(s.values.get("messages", ())) == 3)
    result = agent.invoke(None, middle.config)
    assert [m.text for m in result["messages"]] == ["hi", "", "found 1", "second ending"]


@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_update_state_edits_what_a_paused_run_goes_on_with(granularity: Any) -> None:
    @tool
    def ask(x: int) -> str:
        """Ask a person."""
        return f"{x}: {interrupt('?')}"

    agent = create_agent(
        ScriptedModel(ai("", tool_call("ask", {"x": 1}, "c1")), "done"),
        [ask],
        middleware=[Every()],
        checkpointer=InMemorySaver(),
        granularity=granularity,
    )
    agent.invoke({"messages": "hi"}, thread("t"))
    edited = ai("", tool_call("ask", {"x": 7}, "c1"))
    edited.id = agent.get_state(thread("t")).values["messages"][-1].id
    agent.update_state(
        thread("t"), {"messages": [edited]}, as_node="model" if granularity == "turn" else "Every.after_model"
    )
    assert agent.get_state(thread("t")).next == ("tools",)
    agent.invoke(None, thread("t"))
    result = agent.invoke(Command(resume="yes"), thread("t"))
    assert [m.text for m in result["messages"]] == ["hi", "", "7: yes", "done"]
