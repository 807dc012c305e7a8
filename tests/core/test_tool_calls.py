"""The calls of one answer: at once, in as many threads as they need, within the bounds that were set."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import tool
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agentkit import create_agent, thread
from agentkit.testing import ENTRY_POINTS, ScriptedModel, ai, run, tool_call

granularities = pytest.mark.parametrize("granularity", ["hook", "turn"])
MANY = 40  # more threads than LangGraph would start on any machine with up to 35 cores


def meeting(parties: int) -> tuple[BaseTool, list[int]]:
    """A tool whose calls wait until so many of them run, and how many ran at once each time."""
    lock, together, running, most = threading.Lock(), threading.Barrier(parties), set[int](), list[int]()

    @tool
    def meet(number: int, config: RunnableConfig) -> str:
        """Meet the others."""
        with lock:
            running.add(number)
            most.append(len(running))
        together.wait(30)
        with lock:
            running.discard(number)
        return str(number)

    return meet, most


def asking(name: str, number: int) -> Any:
    return ai("", *(tool_call(name, {"number": n}, f"c{n}") for n in range(number)))


@granularities
def test_many_sync_calls_are_all_made_at_once(granularity: Any) -> None:
    meet, _ = meeting(MANY)
    agent = create_agent(ScriptedModel(asking("meet", MANY), "Done."), [meet], granularity=granularity)
    result = agent.invoke({"messages": "go"})
    assert [m.text for m in result["messages"] if m.type == "tool"] == [str(n) for n in range(MANY)]


@granularities
@pytest.mark.parametrize(
    "how",
    [
        lambda agent: partial(agent.invoke, config={"max_concurrency": 2}),
        lambda agent: agent.with_config(max_concurrency=2).invoke,
        lambda agent: partial(RunnableLambda(lambda given: agent.invoke(given)).invoke, config={"max_concurrency": 2}),
    ],
    ids=["this run's", "the agent's", "the run's around it"],
)
def test_a_bound_that_is_set_holds(granularity: Any, how: Callable[[Any], Any]) -> None:
    meet, most = meeting(2)
    agent = create_agent(ScriptedModel(asking("meet", 6), "Done."), [meet], granularity=granularity)
    how(agent)({"messages": "go"})
    assert max(most) == 2


@granularities
@pytest.mark.parametrize("bound", [None, 3])
def test_what_runs_inside_sees_no_bound_but_the_callers(granularity: Any, bound: int | None) -> None:
    """A `batch` in a tool, a hook or a model takes its own bound from the config that it inherits."""
    seen: list[Any] = []

    def look(given: Any, config: RunnableConfig) -> Any:
        seen.append(config.get("max_concurrency"))
        return given

    class Looks(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> None:
            RunnableLambda(look).invoke(1)

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            RunnableLambda(look).invoke(1)
            return handler(request)

    @tool
    def peek(number: int, config: RunnableConfig) -> str:
        """Look inside."""
        RunnableLambda(look).invoke(number)
        seen.append(config.get("max_concurrency"))
        return "seen"

    script = [asking("peek", 2), asking("peek", 1), "Done."]
    agent = create_agent(ScriptedModel(*script), [peek], middleware=[Looks()], granularity=granularity)
    agent.invoke({"messages": "go"}, {} if bound is None else {"max_concurrency": bound})
    assert seen == [bound] * 12


@granularities
@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_a_call_leaves_nothing_behind_in_the_context(granularity: Any, calls: int, entry: Any) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="clean")
    seen: list[str] = []

    @tool
    def mark(number: int) -> str:
        """Set the variable."""
        seen.append(variable.get())
        variable.set("set by a tool")
        return "set"

    class Looks(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> None:
            seen.append(variable.get())

    model = ScriptedModel(asking("mark", calls), asking("mark", calls), "Done.")
    agent = create_agent(model, [mark], middleware=[Looks()], granularity=granularity)
    run(agent, "go", entry=entry)
    assert seen == ["clean"] * (3 + 2 * calls)
    assert variable.get() == "clean"


@granularities
@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
@pytest.mark.parametrize("bound", [None, 2])
def test_calls_that_a_command_leads_to_are_made_at_once(granularity: Any, bound: int | None, entry: Any) -> None:
    """Such a step holds all open calls of the answer."""
    meet, most = meeting(2)
    agent = create_agent(
        ScriptedModel("Hello.", "Done."), [meet], granularity=granularity, checkpointer=InMemorySaver()
    )
    config: Any = thread("t", **({} if bound is None else {"max_concurrency": bound}))
    run(agent, "hi", config, entry=entry)
    given: Any = Command(update={"messages": ["go", asking("meet", 4)]}, goto="tools")
    result = run(agent, given, config, entry=entry)
    assert [m.text for m in result.messages] == ["hi", "Hello.", "go", "", "0", "1", "2", "3", "Done."]
    assert max(most) == 2 if bound else max(most) >= 2
