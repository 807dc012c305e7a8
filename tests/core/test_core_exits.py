"""Why a run ended: read from results, snapshots and states, and never from what has not ended."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from agentkit import Exit, Limits, create_agent, exit_of, thread
from agentkit.exits import Reason
from agentkit.testing import ScriptedModel, ai, tool_call


class Answer(BaseModel):
    value: int


@tool
def look(x: int) -> str:
    """Look."""
    return "found"


@tool(return_direct=True)
def direct(x: int) -> str:
    """Answer at once."""
    return "direct"


class Stops(AgentMiddleware[Any, Any, Any]):
    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> Any:
        return {"jump_to": "end"}


class StopsAfter(AgentMiddleware[Any, Any, Any]):
    @hook_config(can_jump_to=["end"])
    def after_model(self, state: Any, runtime: Any) -> Any:
        return {"jump_to": "end"}


LOOKS = ai("", tool_call("look", {"x": 1}))
WAYS: list[tuple[str, str, dict[str, Any]]] = [
    ("answer", "model", {"model": ScriptedModel("done")}),
    ("answer", "model", {"model": ScriptedModel(LOOKS, "done"), "tools": [look]}),
    ("return_direct", "direct", {"model": ScriptedModel(ai("", tool_call("direct", {"x": 1}))), "tools": [direct]}),
    (
        "structured",
        "model",
        {"model": ScriptedModel(ai("", tool_call("Answer", {"value": 1}))), "response_format": ToolStrategy(Answer)},
    ),
    ("jump", "Stops.before_model", {"model": ScriptedModel(), "middleware": [Stops()]}),
    ("jump", "StopsAfter.after_model", {"model": ScriptedModel(LOOKS), "tools": [look], "middleware": [StopsAfter()]}),
    ("step_budget", "limits", {"model": ScriptedModel(LOOKS), "tools": [look], "limits": Limits(model_calls=1)}),
]


@pytest.mark.parametrize("granularity", ["hook", "turn"])
@pytest.mark.parametrize(("reason", "source", "arguments"), WAYS, ids=[f"{way[0]} by {way[1]}" for way in WAYS])
async def test_every_way_to_end_has_its_reason(
    reason: str, source: str, arguments: dict[str, Any], granularity: Any
) -> None:
    """The same from the result, the snapshot, the last streamed values and the last hook's state."""
    seen: list[Any] = []

    class Last(AgentMiddleware[Any, Any, Any]):
        def after_agent(self, state: Any, runtime: Any) -> None:
            seen.append(exit_of(state))

    model = arguments["model"]
    given = {**arguments, "middleware": [Last(), *arguments.get("middleware", ())], "granularity": granularity}

    def made() -> Any:
        return create_agent(**{**given, "model": ScriptedModel(*model.steps)}, checkpointer=InMemorySaver())

    agent, asking = {"messages": "hi"}, thread("t")
    sync, asynchronous, streaming = made(), made(), made()
    found = [exit_of(sync.invoke(agent, asking)), exit_of(await asynchronous.ainvoke(agent, asking))]
    found += [exit_of(sync.get_state(asking)), exit_of(list(streaming.stream(agent, asking, stream_mode="values"))[-1])]
    assert [(one.reason, one.source) for one in [*found, *seen] if one] == [(reason, source)] * 7
    assert all(one.detail for one in found if one)


@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_a_paused_or_new_thread_has_not_ended(granularity: Any) -> None:
    @tool
    def ask(x: int) -> str:
        """Ask a person."""
        return str(interrupt("?"))

    model = ScriptedModel(ai("", tool_call("ask", {"x": 1})), "done")
    agent = create_agent(model, [ask], checkpointer=InMemorySaver(), granularity=granularity)
    assert exit_of(agent.get_state(thread("t"))) is None
    assert exit_of(agent.invoke({"messages": "hi"}, thread("t"))) is None
    assert exit_of(agent.get_state(thread("t"))) is None
    ended = exit_of(agent.invoke(Command(resume="yes"), thread("t")))
    assert ended is not None
    assert ended.reason == "answer"


@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_an_earlier_turns_reason_is_not_this_ones(granularity: Any) -> None:
    class StopsOnce(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["end"])
        def before_model(self, state: Any, runtime: Any) -> Any:
            return {"jump_to": "end"} if len(state["messages"]) == 1 else None

    agent = create_agent(
        ScriptedModel("done"), middleware=[StopsOnce()], checkpointer=InMemorySaver(), granularity=granularity
    )
    first, second = (exit_of(agent.invoke({"messages": "hi"}, thread("t"))) for _ in range(2))
    assert [one and one.reason for one in (first, second)] == ["jump", "answer"]


@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_a_second_turn_that_a_hook_ends_does_not_keep_the_first_ones_limit(granularity: Any) -> None:
    class StopsLater(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["end"])
        def before_agent(self, state: Any, runtime: Any) -> Any:
            return {"jump_to": "end"} if len(state["messages"]) > 1 else None

    agent = create_agent(
        ScriptedModel(LOOKS),
        [look],
        middleware=[StopsLater()],
        limits=Limits(model_calls=1),
        checkpointer=InMemorySaver(),
        granularity=granularity,
    )
    first, second = (exit_of(agent.invoke({"messages": "hi"}, thread("t"))) for _ in range(2))
    assert [one and one.reason for one in (first, second)] == ["step_budget", "jump"]


def test_a_hook_may_name_the_reason_itself() -> None:
    class HandsOver(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["end"])
        def before_model(self, state: Any, runtime: Any) -> Any:
            return {"jump_to": "end", "exit": Exit("handoff", "a person takes over", "desk").record()}

    result = create_agent(ScriptedModel(), middleware=[HandsOver()]).invoke({"messages": "hi"})
    assert exit_of(result) == Exit("handoff", "a person takes over", "desk")


def test_a_result_is_equal_to_a_plain_dict() -> None:
    result = create_agent(ScriptedModel("done")).invoke({"messages": "hi"})
    assert result == {"messages": result["messages"]}
    assert dict(result) == result
    assert {**result} == result


@pytest.mark.parametrize("nothing", [None, 3, "text", []])
def test_what_is_no_result_is_refused(nothing: Any) -> None:
    with pytest.raises(TypeError, match=type(nothing).__name__):
        exit_of(nothing)


@pytest.mark.parametrize("reason", get_args(Reason))
def test_a_recorded_exit_is_read_back(reason: Any) -> None:
    ended = Exit(reason, "because", "me")
    assert exit_of({"messages": ["m"], "exit": ended.record()}) == ended
