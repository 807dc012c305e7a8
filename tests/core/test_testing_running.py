"""One scenario over four entry points."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agentkit import create_agent, exit_of
from agentkit.testing import ENTRY_POINTS, EntryPoint, ScriptedModel, ai, comparable, run, tool_call

entries = pytest.mark.parametrize("entry", ENTRY_POINTS)


@tool
def ask(question: str) -> str:
    """Ask a person."""
    return str(interrupt(question))


@entries
@pytest.mark.parametrize("given", ["hi", [HumanMessage("hi")], {"messages": [("user", "hi")]}])
def test_every_form_of_input_gives_the_final_values(entry: EntryPoint, given: Any) -> None:
    outcome = run(create_agent(ScriptedModel("hello you"), []), given, entry=entry)
    assert outcome.text == "hello you"
    assert [m.type for m in outcome.messages] == ["human", "ai"]
    assert set(outcome.values) == {"messages"}
    assert not outcome.interrupts and outcome.error is None
    assert bool(outcome.streamed) == (entry in ("stream", "astream"))


@pytest.mark.parametrize("entry", ["stream", "astream"])
def test_streamed_chunks_are_kept(entry: EntryPoint) -> None:
    outcome = run(create_agent(ScriptedModel("hello you"), []), "hi", entry=entry)
    tokens = [part[0].text for mode, part in outcome.streamed if mode == "messages"]
    assert [t for t in tokens if t] == ["hello", " you"]


@entries
def test_a_pause_shows_its_questions_and_can_be_resumed(entry: EntryPoint) -> None:
    both = ai("", tool_call("ask", {"question": "a?"}), tool_call("ask", {"question": "b?"}, "c2"))
    model = ScriptedModel(both, "ok")
    agent = create_agent(model, [ask], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    paused = run(agent, "hi", config, entry=entry)
    assert sorted(i.value for i in paused.interrupts) == ["a?", "b?"]
    assert paused.messages[-1].type == "ai"
    done = run(agent, Command(resume={i.id: i.value.upper() for i in paused.interrupts}), config, entry=entry)
    assert sorted(m.text for m in done.messages if m.type == "tool") == ["A?", "B?"]
    assert done.text == "ok" and not done.interrupts


@entries
def test_an_exception_is_raised_or_kept(entry: EntryPoint) -> None:
    agent = create_agent(ScriptedModel(ValueError("broken"), repeat=True), [])
    with pytest.raises(ValueError, match="broken"):
        run(agent, "hi", entry=entry)
    outcome = run(agent, "hi", entry=entry, catch=True)
    assert isinstance(outcome.error, ValueError)
    assert (outcome.values, outcome.text) == ({}, "")


@entries
def test_the_raw_result_tells_why_the_run_ended(entry: EntryPoint) -> None:
    ending = exit_of(run(create_agent(ScriptedModel("hello"), []), "hi", entry=entry).raw)
    assert ending is not None and ending.reason == "answer"


def test_comparable_leaves_out_ids_and_nothing_else() -> None:
    def view(message: AIMessage) -> Any:
        return comparable({"messages": [message], "n": 1, "error": ValueError("x")})

    one = view(AIMessage("a", id="1", response_metadata={"model": "m"}))
    assert one == view(AIMessage("a", id="2"))
    for other in (AIMessage("b"), AIMessage("a", name="n"), ai("a", tool_call("x")), ai("a", usage=(1, 1))):
        assert one != view(other)
    assert comparable(ValueError("x")) != comparable(KeyError("x"))
