"""Field reports, family C: pairing of tool calls and results."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any

import pytest
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, ToolCallLimitMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command
from typing_extensions import TypedDict

from agentkit import create_agent, thread
from agentkit.testing import (
    EntryPoint,
    RunResult,
    ScriptedModel,
    ai,
    arun,
    assert_paired,
    comparable,
    pairing_problems,
    run,
    tool_call,
)

Maker = Callable[..., Any]
APPROVE: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})
REJECT: Command[Any] = Command(resume={"decisions": [{"type": "reject", "message": "no"}]})


def approval(*tools: str) -> HumanInTheLoopMiddleware[Any, Any, Any]:
    return HumanInTheLoopMiddleware({name: True for name in tools})


def results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    return [m for m in messages if isinstance(m, ToolMessage)]


@pytest.mark.parametrize("behaviour", ["end", "continue"])
def test_lc_34159_a_limit_on_a_batch_leaves_no_call_unanswered(entry: EntryPoint, add: Any, behaviour: Any) -> None:
    batch = ai("", *[tool_call("add", {"a": i, "b": i}, f"c{i}") for i in range(4)])
    model = ScriptedModel(batch, "after", "next", repeat=True)
    limit = ToolCallLimitMiddleware(tool_name="add", run_limit=2, exit_behavior=behaviour)
    agent = create_agent(model, [add.tool], middleware=[limit], checkpointer=InMemorySaver())
    first = run(agent, "one", thread("t"), entry=entry)
    second = run(agent, "two", thread("t"), entry=entry)
    assert_paired(model, first.messages, second.messages)
    assert {r.tool_call_id for r in results(second.messages)} == {"c0", "c1", "c2", "c3"}
    assert second.messages[-1].text in ("after", "next")


async def test_oswe_1604_a_cancelled_tool_is_closed_when_the_user_comes_back() -> None:
    started = asyncio.Event()

    @tool
    async def wait(seconds: int) -> str:
        """Wait."""
        started.set()
        await asyncio.sleep(seconds)
        return "waited"

    model = ScriptedModel(ai("", tool_call("wait", {"seconds": 60})), "welcome back")
    agent = create_agent(model, [wait], checkpointer=InMemorySaver())
    task = asyncio.create_task(arun(agent, "one", thread("t")))
    await started.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    ended = await arun(agent, "two", thread("t"))
    assert ended.text == "welcome back"
    assert_paired(model, ended.messages)
    (closed,) = results(ended.messages)
    assert closed.status == "error"


def test_lg_1899_a_failed_tool_is_closed_when_the_user_comes_back(entry: EntryPoint, act: Maker) -> None:
    def fail(x: int) -> str:
        raise ValueError("out of order")

    model = ScriptedModel(ai("", tool_call("press")), "welcome back")
    agent = create_agent(model, [act("press", fail).tool], checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="out of order"):
        run(agent, "one", thread("t"), entry=entry)
    ended = run(agent, "two", thread("t"), entry=entry)
    assert ended.text == "welcome back"
    assert_paired(model, ended.messages)
    assert_paired(agent.get_state(thread("t")).values)  # the stored history is mended too


def test_lc_33489_a_new_message_withdraws_what_waits_for_approval(entry: EntryPoint, act: Maker) -> None:
    pay = act("pay")
    model = ScriptedModel(ai("", tool_call("pay", {"x": 9})), "not paid then")
    agent = create_agent(model, [pay.tool], middleware=[approval("pay")], checkpointer=InMemorySaver())
    assert run(agent, "pay 9", thread("t"), entry=entry).interrupts
    ended = run(agent, "wait, what does it cost?", thread("t"), entry=entry)
    assert ended.text == "not paid then"
    assert pay.ran == []
    assert_paired(model, ended.messages)


class ReadsOnly(AgentMiddleware[Any, Any, Any]):
    """Another middleware with an after_model hook."""

    def after_model(self, state: Any, runtime: Any) -> None:
        return None


@pytest.mark.parametrize("approval_first", [True, False])
def test_dajs_150_rejecting_one_of_two_answers_both(entry: EntryPoint, act: Maker, approval_first: bool) -> None:
    danger, free = act("danger"), act("free")
    middleware: list[Any] = [approval("danger"), ReadsOnly()]
    model = ScriptedModel(ai("", tool_call("danger", id="d"), tool_call("free", id="f")), "done")
    agent = create_agent(
        model,
        [danger.tool, free.tool],
        middleware=middleware if approval_first else middleware[::-1],
        checkpointer=InMemorySaver(),
    )
    run(agent, "hi", thread("t"), entry=entry)
    ended = run(agent, REJECT, thread("t"), entry=entry)
    assert (danger.ran, free.ran) == ([], [0])
    assert ended.text == "done"
    assert_paired(model, ended.messages)
    assert {r.tool_call_id: r.status for r in results(ended.messages)} == {"d": "error", "f": "success"}


def test_da_5547_a_made_up_result_says_that_it_is_one_and_blames_nobody(entry: EntryPoint, act: Maker) -> None:
    model = ScriptedModel("ok")
    open_call = [HumanMessage("one"), ai("", tool_call("look", {"x": 1})), HumanMessage("two")]
    run(create_agent(model, [act("look").tool]), open_call, entry=entry)
    made_up = model.requests[0].messages[2]
    assert isinstance(made_up, ToolMessage)
    assert made_up.status == "error"
    assert "no result was recorded" in made_up.text.lower()
    assert "cancel" not in made_up.text.lower() and "user" not in made_up.text.lower()
    assert any(made_up.additional_kwargs.values()), "nothing marks the result as made up"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "tool_use", "id": "c", "name": "look", "input": {}},
    ],
    ids=lambda b: b["type"],
)
def test_da_5781_a_call_that_is_only_a_block_is_not_sent_open(entry: EntryPoint, act: Maker, block: Any) -> None:
    model = ScriptedModel("ok")
    given = [HumanMessage("one"), ai([{"type": "text", "text": "let me see"}, block]), HumanMessage("two")]
    ended = run(create_agent(model, [act("look").tool]), given, entry=entry)
    assert ended.text == "ok"
    assert_paired(model)
    assert "let me see" in str(model.requests[0].messages)


class Parent(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[str], operator.add]


def hand_over(name: str, goto: str, seen: list[Any]) -> Any:
    """A tool that writes a note into the parent graph and goes to a node of it."""

    @tool(name, description="Hand over.")
    def handoff(runtime: ToolRuntime) -> Command[Any]:
        seen.append(name)
        message = ToolMessage(f"{name} done", tool_call_id=str(runtime.tool_call_id))
        update = {"messages": [*runtime.state["messages"], message], "notes": [name]}
        return Command(graph=Command.PARENT, goto=goto, update=update)

    return handoff


def parent_of(agent: Any, received: list[Any]) -> Any:
    """A graph in which the agent is a node that hands over to `desk`."""

    def desk(state: Parent) -> dict[str, Any]:
        received.append(state)
        return {}

    graph = StateGraph(Parent)
    graph.add_node("agent", agent, destinations=("desk",))
    graph.add_node("desk", desk)
    graph.add_edge(START, "agent")
    graph.add_edge("desk", END)
    return graph.compile()


def test_lg_7129_two_hand_overs_of_one_batch_lose_nothing(entry: EntryPoint) -> None:
    ran: list[Any] = []
    received: list[Any] = []
    tools = [hand_over(name, "desk", ran) for name in ("first", "second")]
    model = ScriptedModel(ai("", tool_call("first", id="f"), tool_call("second", id="s")), "not to be asked")
    run(parent_of(create_agent(model, tools), received), {"messages": [("user", "hi")], "notes": []}, entry=entry)
    (state,) = received
    assert sorted(state["notes"]) == ["first", "second"]
    assert model.calls == 1
    assert sorted(r.tool_call_id for r in results(state["messages"])) == ["f", "s"]
    assert pairing_problems(state["messages"]) == []


@pytest.mark.parametrize("handoff_first", [True, False])
def test_lg_5831_siblings_of_a_hand_over_are_answered_first(entry: EntryPoint, act: Maker, handoff_first: bool) -> None:
    ran: list[Any] = []
    received: list[Any] = []
    look = act("look")
    calls = [tool_call("handoff", id="h"), tool_call("look", {"x": 4}, "l")]
    model = ScriptedModel(ai("", *(calls if handoff_first else calls[::-1])), "not to be asked")
    agent = create_agent(model, [hand_over("handoff", "desk", ran), look.tool])
    run(parent_of(agent, received), {"messages": [("user", "hi")], "notes": []}, entry=entry)
    (state,) = received
    assert look.ran == [4]
    assert model.calls == 1
    assert {r.tool_call_id: r.text for r in results(state["messages"])} == {"h": "handoff done", "l": "look 4"}
    assert pairing_problems(state["messages"]) == []


def test_oai_4827_a_resumed_run_stores_what_an_uninterrupted_one_does(entry: EntryPoint, act: Maker) -> None:
    def stored(*middleware: Any) -> Any:
        model = ScriptedModel(ai("", tool_call("pay", {"x": 1}, "p"), tool_call("look", {"x": 2}, "l")), "done")
        tools = [act("pay").tool, act("look").tool]
        agent = create_agent(model, tools, middleware=middleware, checkpointer=InMemorySaver())
        ended: RunResult = run(agent, "hi", thread("t"), entry=entry)
        if middleware:
            assert ended.interrupts
            run(agent, APPROVE, thread("t"), entry=entry)
        return comparable(agent.get_state(thread("t")).values["messages"])

    assert stored(approval("pay")) == stored()


def test_adk_6581_a_delegation_and_an_ordinary_call_are_both_answered(entry: EntryPoint, act: Maker) -> None:
    inner = create_agent(ScriptedModel("the inner answer", repeat=True), [])

    @tool
    def delegate(task: str) -> str:
        """Ask another agent."""
        return str(inner.invoke({"messages": [("user", task)]})["messages"][-1].text)

    note = act("note")
    model = ScriptedModel(ai("", tool_call("delegate", {"task": "t"}, "d"), tool_call("note", {"x": 3}, "n")), "done")
    ended = run(create_agent(model, [delegate, note.tool]), "hi", entry=entry)
    assert note.ran == [3]
    assert {r.tool_call_id: r.text for r in results(ended.messages)} == {"d": "the inner answer", "n": "note 3"}
    assert ended.text == "done"
    assert_paired(model, ended.messages)


def test_deer_4080_a_result_without_its_call_is_not_sent(entry: EntryPoint) -> None:
    orphan = ToolMessage("3 items", tool_call_id="long gone", id="orphan")
    given = [HumanMessage("one"), orphan, HumanMessage("two")]
    model = ScriptedModel("ok")
    agent = create_agent(model, [], checkpointer=InMemorySaver())
    run(agent, given, thread("t"), entry=entry)
    assert_paired(model)
    assert [m.text for m in model.requests[0].messages if isinstance(m, HumanMessage)] == ["one", "two"]
    assert "orphan" in [m.id for m in agent.get_state(thread("t")).values["messages"]]


def test_pyd_3350_a_call_in_a_given_history_does_not_skip_approval(entry: EntryPoint, act: Maker) -> None:
    pay = act("pay")
    model = ScriptedModel("what now?")
    agent = create_agent(model, [pay.tool], middleware=[approval("pay")], checkpointer=InMemorySaver())
    ended = run(agent, [HumanMessage("hi"), ai("", tool_call("pay", {"x": 9}))], thread("t"), entry=entry)
    assert pay.ran == []
    assert_paired(model)
    if not ended.interrupts:  # closed instead of asked about
        assert isinstance(ended.messages[-1], AIMessage)
        assert_paired(ended.messages)
