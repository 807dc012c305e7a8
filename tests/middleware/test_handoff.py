"""Handoff: what the person is given, how the run ends or goes on, and who may ask for it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents import AgentState
from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from agentkit import create_agent, exit_of, thread
from agentkit.middleware import Gates, Handoff, SameCallFailed, StepBudget
from agentkit.testing import ENTRY_POINTS, EntryPoint, RunResult, ScriptedModel, ai, assert_paired, run, tool_call


@tool
def find_user(name: str) -> str:
    """Find a user."""
    raise ToolException(f"no user {name}")


find_user.handle_tool_error = True


@tool
def refund(order: str) -> str:
    """Refund an order."""
    return f"refunded {order}"


@tool
def call_a_person(why: str, id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Ask for a person."""
    return Command(update={"handoff_reason": why, "messages": [ToolMessage("asked", tool_call_id=id)]})


TOOLS: list[BaseTool] = [find_user, refund, call_a_person]


@pytest.fixture(params=ENTRY_POINTS)
def entry(request: pytest.FixtureRequest) -> EntryPoint:
    return request.param  # type: ignore[no-any-return]


def reason(ended: RunResult) -> str:
    found = exit_of(ended.raw)
    return found.reason if found else "not ended"


class Orders(AgentState[Any]):
    user_id: NotRequired[str]
    order_id: NotRequired[str]


def test_a_gate_hands_over_with_all_that_is_known(entry: EntryPoint) -> None:
    look = ai("", tool_call("find_user", {"name": "Ann"}, "f"))
    model = ScriptedModel(ai("", tool_call("refund", {"order": "W1"}, "r")), look, look)
    gates = Gates(SameCallFailed(2), on_trip=Handoff("human service", facts=["order_id", "user_id"]))
    agent = create_agent(model, TOOLS, middleware=[gates], state_schema=Orders, checkpointer=InMemorySaver())
    given = {"messages": [HumanMessage("refund W1, please")], "order_id": "W1"}
    ended = run(agent, given, thread("t-1"), entry=entry)
    assert ended.values["handoff"] == {
        "to": "human service",
        "reason": "repeated_call",
        "detail": "the same call of `find_user` failed 2 times",
        "wants": ["refund W1, please"],
        "facts": {"order_id": "W1"},
        "tried": [
            {"tool": "refund", "args": {"order": "W1"}, "outcome": "ok"},
            {"tool": "find_user", "args": {"name": "Ann"}, "outcome": "failed"},
            {"tool": "find_user", "args": {"name": "Ann"}, "outcome": "failed"},
        ],
        "errors": ["no user Ann", "no user Ann"],
        "transcript": {"thread_id": "t-1", "messages": 7},
    }
    found = exit_of(ended.raw)
    assert found and found.reason == "handoff" and "failed 2 times" in found.detail
    assert "human service" in ended.text
    assert_paired(model, ended.messages)


def test_a_person_answers_after_a_restart_and_the_run_goes_on(tmp_path: Path) -> None:
    def agent(model: ScriptedModel) -> Any:
        connection = sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)
        gates = Gates(StepBudget(1), on_trip=Handoff("support", wait=True))
        return create_agent(model, TOOLS, middleware=[gates], checkpointer=SqliteSaver(connection))

    call = ai("", tool_call("refund", {"order": "W1"}))
    paused = run(agent(ScriptedModel(call)), "refund W1", thread("t"))
    assert paused.interrupts[0].value["tried"] == [
        {"tool": "refund", "args": {"order": "W1"}, "outcome": "not executed"}
    ]
    assert exit_of(paused.raw) is None
    model = ScriptedModel("as you say")
    ended = run(agent(model), Command(resume="tell them it takes a week"), thread("t"))
    assert (ended.text, reason(ended)) == ("as you say", "answer")
    last = model.requests[0].messages[-1]
    assert (last.type, last.text) == ("human", "support says: tell them it takes a week")
    assert_paired(model, ended.messages)


def test_a_person_may_end_the_run(entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", tool_call("refund", {"order": "W1"})))
    gates = Gates(StepBudget(1), on_trip=Handoff("support", wait=True))
    agent = create_agent(model, TOOLS, middleware=[gates], checkpointer=InMemorySaver())
    run(agent, "refund W1", thread("t"), entry=entry)
    ended = run(agent, Command(resume={"message": "I did it myself.", "end": True}), thread("t"), entry=entry)
    assert (ended.text, reason(ended), model.calls) == ("I did it myself.", "handoff", 1)


@pytest.mark.parametrize("wrong", [7, "", {"massage": "x"}, {"message": ""}, None])
def test_an_answer_that_cannot_be_understood_is_asked_for_again(wrong: Any) -> None:
    model = ScriptedModel(ai("", tool_call("refund", {"order": "W1"})), "done")
    gates = Gates(StepBudget(1), on_trip=Handoff("support", wait=True))
    agent = create_agent(model, TOOLS, middleware=[gates], checkpointer=InMemorySaver())
    paused = run(agent, "hi", thread("t"))
    again = run(agent, Command(resume={paused.interrupts[0].id: wrong}), thread("t"))
    assert "'message': text" in again.interrupts[0].value["error"]
    assert run(agent, Command(resume="go on"), thread("t")).text == "done"


def test_a_tool_may_ask_for_a_person(entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", tool_call("call_a_person", {"why": "the user is angry"})), "never")
    agent = create_agent(model, TOOLS, middleware=[Handoff("support", message="Somebody will call you.")])
    ended = run(agent, "hi", entry=entry)
    assert (ended.text, reason(ended), model.calls) == ("Somebody will call you.", "handoff", 1)
    assert ended.values["handoff"]["detail"] == "the user is angry"
    assert_paired(model, ended.messages)


def test_a_hook_may_ask_for_a_person_and_the_open_calls_are_not_executed(entry: EntryPoint) -> None:
    class Guard(AgentMiddleware[Any, Any, Any]):
        def after_model(self, state: Any, runtime: Any) -> Any:
            return {"handoff_reason": "refunds need a person"} if state["messages"][-1].tool_calls else None

    model = ScriptedModel(ai("", tool_call("refund", {"order": "W1"})))
    ended = run(create_agent(model, TOOLS, middleware=[Handoff("support"), Guard()]), "hi", entry=entry)
    assert reason(ended) == "handoff"
    [result] = [m for m in ended.messages if isinstance(m, ToolMessage)]
    assert result.status == "error" and "handed over to support" in result.text
    assert_paired(model, ended.messages)


def test_a_predicate_may_ask_for_a_person(entry: EntryPoint) -> None:
    handoff = Handoff("support", when=lambda state: "no user" if "nobody" in state["messages"][-1].text else None)
    model = ScriptedModel("hello")
    agent = create_agent(model, TOOLS, middleware=[handoff], checkpointer=InMemorySaver())
    assert reason(run(agent, "I am nobody", thread("t"), entry=entry)) == "handoff"
    ended = run(agent, "I am Ann", thread("t"), entry=entry)
    assert (ended.text, reason(ended)) == ("hello", "answer")


def test_a_reason_that_was_answered_is_not_asked_again_in_the_same_turn() -> None:
    model = ScriptedModel(ai("", tool_call("refund", {"order": "W1"})), "done", "done again")
    handoff = Handoff("support", wait=True, when=lambda state: None if state.get("user_id") else "the user is unknown")
    agent = create_agent(model, TOOLS, middleware=[handoff], state_schema=Orders, checkpointer=InMemorySaver())
    assert run(agent, "hi", thread("t")).interrupts
    assert run(agent, Command(resume="it is Ann"), thread("t")).text == "done"
    assert run(agent, "and now?", thread("t")).interrupts
    assert run(agent, Command(resume="still Ann"), thread("t")).text == "done again"


def test_a_reason_does_not_outlive_its_turn() -> None:
    model = ScriptedModel(ai("", tool_call("call_a_person", {"why": "angry"})), "hello again")
    agent = create_agent(model, TOOLS, middleware=[Handoff("support")], checkpointer=InMemorySaver())
    assert reason(run(agent, "hi", thread("t"))) == "handoff"
    assert run(agent, "hi", thread("t")).text == "hello again"


def test_it_works_under_langchains_own_factory() -> None:
    model = ScriptedModel(ai("", tool_call("refund", {"order": "W1"})))
    agent = langchain_create_agent(
        model, TOOLS, middleware=[Gates(StepBudget(1), on_trip=Handoff("support"))], checkpointer=InMemorySaver()
    )
    result = agent.invoke({"messages": [HumanMessage("hi")]}, {"configurable": {"thread_id": "t"}})
    assert result["handoff"]["to"] == "support"
    assert_paired(model, result["messages"])
