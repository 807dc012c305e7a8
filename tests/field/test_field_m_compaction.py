"""Field reports, family M: context compaction, with LangChain's middleware used unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.exceptions import ModelAuthenticationError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import create_agent, thread
from agentkit.testing import EntryPoint, ScriptedModel, ai, assert_paired, run, tool_call


def long_history(pairs: int) -> list[BaseMessage]:
    """One user message and many calls with their results."""
    messages: list[BaseMessage] = [HumanMessage("collect all of it", id="u")]
    for i in range(pairs):
        messages.append(ai("", tool_call("look", {"x": i}, f"c{i}"), id=f"a{i}"))
        messages.append(ToolMessage(f"result {i}", tool_call_id=f"c{i}", id=f"t{i}"))
    return [*messages, HumanMessage("and now?", id="u2")]


def test_lc_38867_a_failed_summary_removes_nothing(entry: EntryPoint) -> None:
    error = ModelAuthenticationError("no summary today")  # one that the middleware does not retry
    summariser = ScriptedModel(error, repeat=True)
    compaction = SummarizationMiddleware(summariser, trigger=("messages", 6), keep=("messages", 2))
    model = ScriptedModel("fine", repeat=True)
    agent = create_agent(model, [], middleware=[compaction], checkpointer=InMemorySaver())
    given = long_history(5)
    run(agent, given, thread("t"), entry=entry, catch=True)
    assert summariser.calls > 0
    stored: list[BaseMessage] = agent.get_state(thread("t")).values["messages"]
    assert [m.id for m in stored[: len(given)]] == [m.id for m in given]
    assert not any("no summary today" in m.text for m in stored)


def batches() -> list[BaseMessage]:
    """Parallel batches, with a result of an unknown call among their results."""
    messages: list[BaseMessage] = [HumanMessage("start", id="u")]
    for i in range(3):
        calls = [tool_call("look", {"x": j}, f"c{i}-{j}") for j in range(3)]
        messages.append(AIMessage("", tool_calls=calls, id=f"a{i}"))
        results = [ToolMessage(f"result {i}-{j}", tool_call_id=f"c{i}-{j}", id=f"t{i}-{j}") for j in range(3)]
        results.insert(1, ToolMessage("stray", tool_call_id=f"unknown-{i}", id=f"s{i}"))
        messages += results
    return [*messages, HumanMessage("and now?", id="u2")]


@pytest.mark.parametrize("keep", range(1, len(batches())))
def test_lc_38352_what_the_model_sees_after_a_cut_is_well_paired(call: EntryPoint, act: Any, keep: int) -> None:
    compaction: Any = SummarizationMiddleware(
        ScriptedModel("summary", repeat=True), trigger=("messages", 5), keep=("messages", keep)
    )
    model = ScriptedModel("fine")
    run(create_agent(model, [act("look").tool], middleware=[compaction]), batches(), entry=call)
    assert_paired(model)
