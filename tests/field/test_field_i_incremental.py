"""Field reports, family I: histories stored step by step, and what reads them back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain_core.messages import HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Overwrite, interrupt

from agentkit import create_agent, thread
from agentkit.testing import ScriptedModel, ai, tool_call

T = thread("t")
granularities = pytest.mark.parametrize("granularity", ["hook", "turn"])


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    if request.param == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "agent.db")) as opened:
            yield opened


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return f"nothing at {place}"


@tool
def ask(question: str) -> str:
    """Ask the user."""
    return str(interrupt(question))


def made(saver: Any, *script: Any, granularity: Any = "hook", **more: Any) -> Any:
    model = ScriptedModel(*(script or ("answer",)), repeat=True)
    more.setdefault("message_storage", "incremental" if isinstance(saver, InMemorySaver) else "auto")
    return create_agent(model, [look, ask], checkpointer=saver, granularity=granularity, **more)


def texts(values: Any) -> list[str]:
    return [m.text for m in values["messages"]]


def reloaded(saver: Any, **config: Any) -> list[tuple[str | None, str]]:
    """The history as another process reads it."""
    return live(made(saver).get_state(thread("t", configurable=config) if config else T).values)


def live(result: Any) -> list[tuple[str | None, str]]:
    return [(m.id, m.text) for m in result["messages"]]


# ---- LG-8653


@granularities
@pytest.mark.parametrize("storage", ["auto", "incremental"])
def test_lg_8653_updating_a_paused_thread_keeps_its_history(saver: Any, granularity: Any, storage: Any) -> None:
    """The saver comes with the config, as in a node of a graph that has one."""
    script = ["first", ai("", tool_call("ask", {"question": "which?"})), "done"]
    agent = made(None, *script, granularity=granularity, message_storage=storage)
    given = thread("t", configurable={"__pregel_checkpointer": saver})
    agent.invoke({"messages": "one"}, given)
    paused = agent.invoke({"messages": "two"}, given)
    assert paused["__interrupt__"][0].value == "which?"
    before = texts(agent.get_state(given).values)
    agent.update_state(given, {"messages": [HumanMessage("by the way")]})
    assert texts(agent.get_state(given).values) == [*before, "by the way"]
    assert before == ["one", "first", "two", ""]


def test_lg_8653_an_unrelated_update_does_not_touch_the_history(saver: Any) -> None:
    agent = made(saver)
    agent.invoke({"messages": "one"}, T)
    agent.invoke({"messages": "two"}, T)
    agent.update_state(T, {"jump_to": None}, as_node="model")
    assert texts(agent.get_state(T).values) == ["one", "answer", "two", "answer"]


# ---- LG-8443


@granularities
def test_lg_8443_a_fork_does_not_bring_the_abandoned_branch_back(saver: Any, granularity: Any) -> None:
    agent = made(saver, granularity=granularity)
    agent.invoke({"messages": "one"}, T)
    after_one = agent.get_state(T).config
    second = agent.invoke({"messages": "two"}, T)
    left = agent.get_state(T).config
    forked = agent.invoke({"messages": "another"}, after_one)
    assert texts(forked) == ["one", "answer", "another", "answer"]
    assert reloaded(saver) == live(forked)
    went_on = agent.invoke({"messages": "more"}, T)
    assert texts(went_on) == [*texts(forked), "more", "answer"]
    assert reloaded(saver) == live(went_on)
    assert reloaded(saver, **left["configurable"]) == live(second)


@granularities
def test_lg_8443_from_every_step_of_a_run(saver: Any, granularity: Any) -> None:
    """Each checkpoint of a turn with tools is gone on from; both branches stay readable."""
    script = [ai("", tool_call("look", {"place": "a"}, "c1")), "first", "second"]
    agent, reader = made(saver, *script, granularity=granularity), made(saver)
    agent.invoke({"messages": "one"}, T)
    steps = [step for step in agent.get_state_history(T) if step.values.get("messages")]
    for step in steps:
        result = made(saver, "forked", granularity=granularity).invoke({"messages": "from here"}, step.config)
        assert live(reader.get_state(T).values) == live(result)
        assert texts(reader.get_state(step.config).values) == texts(step.values)


# ---- LG-8382


@granularities
@pytest.mark.parametrize(("entry", "repetitions"), [("invoke", 20), ("ainvoke", 5)])
def test_lg_8382_parallel_writers_keep_their_order(granularity: Any, entry: str, repetitions: int, saver: Any) -> None:
    if entry == "ainvoke" and isinstance(saver, SqliteSaver):
        saver = InMemorySaver()  # SqliteSaver has no async methods
    calls = [tool_call("look", {"place": str(n)}, f"c{n}") for n in range(6)]
    agent, reader = made(saver, *[ai("", *calls), "done"] * repetitions, granularity=granularity), made(saver)
    for _ in range(repetitions):
        given: Any = {"messages": "look around"}
        result = agent.invoke(given, T) if entry == "invoke" else asyncio.run(agent.ainvoke(given, T))
        assert texts(result)[-8:-1] == ["", *(f"nothing at {n}" for n in range(6))]
        assert live(reader.get_state(T).values) == live(result)


# ---- LG-8384


def langchain(saver: Any) -> Any:
    return langchain_create_agent(ScriptedModel("answer", repeat=True), [look], checkpointer=saver)


@granularities
def test_lg_8384_threads_go_to_and_from_langchains_factory(saver: Any, granularity: Any) -> None:
    """Stored whole, then step by step, then whole again: nobody loses a message."""
    said = []
    for number, agent in enumerate([langchain(saver), made(saver, granularity=granularity)] * 2):
        result = agent.invoke({"messages": f"turn {number}"}, T)
        said += [f"turn {number}", "answer"]
        assert texts(result) == said
        for reader in (langchain(saver), made(saver), made(saver, message_storage="full")):
            assert live(reader.get_state(T).values) == live(result)


@granularities
def test_lg_8384_the_first_write_after_a_switch_is_kept(saver: Any, granularity: Any) -> None:
    made(saver, message_storage="full").invoke({"messages": "one"}, T)
    agent = made(saver, granularity=granularity)
    agent.update_state(T, {"messages": [HumanMessage("two", id="h2")]})
    assert texts(agent.get_state(T).values) == ["one", "answer", "two"]
    assert [text for _, text in reloaded(saver)] == ["one", "answer", "two"]
    made(saver, message_storage="full").update_state(T, {"messages": [RemoveMessage(id="h2")]})
    assert [text for _, text in reloaded(saver)] == ["one", "answer"]


# ---- what else is read back


@granularities
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_what_is_read_back_is_what_was_live(saver: Any, granularity: Any, durability: Any) -> None:
    """Through every kind of change to a history."""
    agent, reader = made(saver, granularity=granularity), made(saver)
    changes: list[Any] = [
        {"messages": "plain text"},
        {"messages": [("user", "a tuple"), {"role": "user", "content": "a dict"}]},
        {"messages": [HumanMessage("one", id="h1")]},
        {"messages": [HumanMessage("ONE", id="h1")]},
        {"messages": [RemoveMessage(id="h1"), HumanMessage("after it")]},
        {"messages": Overwrite([HumanMessage("overwritten", id="o1")])},
        {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("anew")]},
        *({"messages": f"more {number}"} for number in range(20)),
    ]
    for change in changes:
        result = agent.invoke(change, T, durability=durability)
        assert live(reader.get_state(T).values) == live(result)
    assert texts(result)[:2] == ["anew", "answer"]


def test_a_sub_graph_with_its_parents_saver_keeps_its_history(saver: Any) -> None:
    """`checkpointer=True`: stored whole, since nobody knows yet where."""
    inner = made(True)
    parent = StateGraph(MessagesState)
    parent.add_node("inner", inner)
    parent.add_edge(START, "inner")
    parent.add_edge("inner", END)
    outer: Any = parent.compile(checkpointer=saver)
    outer.invoke({"messages": "one"}, T)
    result = outer.invoke({"messages": "two"}, T)
    assert texts(result) == ["one", "answer", "two", "answer"]


def test_an_agent_with_a_saver_of_its_own_as_a_node(saver: Any) -> None:
    """The parent's saver is used; nothing is lost in either graph."""
    parent = StateGraph(MessagesState)
    parent.add_node("inner", made(InMemorySaver(), ai("", tool_call("ask", {"question": "ok?"})), "done"))
    parent.add_edge(START, "inner")
    outer: Any = parent.compile(checkpointer=saver)
    outer.invoke({"messages": "one"}, T)
    result = outer.invoke(Command(resume="yes"), T)
    assert texts(result) == ["one", "", "yes", "done"]
    assert texts(outer.get_state(T).values) == texts(result)
