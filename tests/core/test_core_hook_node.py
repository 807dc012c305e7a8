"""A hook that ends the run while calls are open leaves a history in which each has a result."""

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.messages import AIMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from agentkit import create_agent, exit_of
from agentkit.testing import ScriptedModel, ai, assert_paired, tool_call


def look(x: int) -> str:
    """Look at x."""
    raise AssertionError("an open call of a run that has ended was executed")


def speaks(state: Any) -> list[Any]:
    return [AIMessage("I stop here.")]


def is_silent(state: Any) -> list[Any]:
    return []


def strips(state: Any) -> list[Any]:
    return [state["messages"][-1].model_copy(update={"tool_calls": [], "content": "Never mind."})]


def rewrites(state: Any) -> list[Any]:
    return [RemoveMessage(id=REMOVE_ALL_MESSAGES), *state["messages"]]


@pytest.mark.parametrize("granularity", ["hook", "turn"])
@pytest.mark.parametrize(("says", "answered"), [(speaks, 2), (is_silent, 2), (strips, 0), (rewrites, 2)])
def test_open_calls_are_answered(says: Any, answered: int, granularity: Any) -> None:
    class Ends(AgentMiddleware):
        @hook_config(can_jump_to=["end"])
        def after_model(self, state: Any, runtime: Any) -> Any:
            return {"jump_to": "end", "messages": says(state)}

    model = ScriptedModel(ai("", tool_call("look", {"x": 1}, "a"), tool_call("look", {"x": 2}, "b")))
    ended = create_agent(model, [look], middleware=[Ends()], granularity=granularity).invoke({"messages": "hi"})
    assert_paired(ended["messages"])
    results = [m for m in ended["messages"] if m.type == "tool"]
    assert [m.status for m in results] == ["error"] * answered
    assert all("Ends.after_model ended the run" in m.text for m in results)
    ending = exit_of(ended)
    assert ending is not None
    assert (ending.reason, ending.source) == ("jump", "Ends.after_model")
