"""Field reports, family E: structured output and return_direct."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ProviderStrategy, StructuredOutputError, ToolStrategy
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from agentkit import Limits, create_agent, thread
from agentkit.testing import EntryPoint, ScriptedModel, ai, assert_paired, run, tool_call


class Answer(BaseModel):
    value: int


class Other(BaseModel):
    text: str


def gives(value: Any, id: str = "s", name: str = "Answer") -> Any:
    return ai("", tool_call(name, {"value" if name == "Answer" else "text": value}, id))


def test_lc_36349_plain_text_is_asked_again(entry: EntryPoint) -> None:
    model = ScriptedModel("the value is four", gives(4))
    ended = run(create_agent(model, [], response_format=ToolStrategy(Answer)), "hi", entry=entry)
    assert ended.values["structured_response"] == Answer(value=4)
    assert model.calls == 2
    assert "Answer" in model.requests[1].messages[-1].text
    assert_paired(model, ended.messages)


def test_lc_36349_plain_text_for_ever_is_a_typed_error_and_never_none(entry: EntryPoint) -> None:
    model = ScriptedModel("just text", repeat=True)
    agent = create_agent(model, [], response_format=ToolStrategy(Answer), limits=Limits(structured_retries=2))
    with pytest.raises(StructuredOutputError):
        run(agent, "hi", entry=entry)
    assert model.calls == 2


def test_lc_36957_an_earlier_turns_answer_is_not_this_ones(entry: EntryPoint) -> None:
    model = ScriptedModel(gives(1), gives("two"), gives(2), "just text", repeat=True)
    agent = create_agent(model, [], response_format=ToolStrategy(Answer), checkpointer=InMemorySaver())
    first = run(agent, "one", thread("t"), entry=entry)
    second = run(agent, "two", thread("t"), entry=entry)
    assert first.values["structured_response"] == Answer(value=1)
    assert second.values["structured_response"] == Answer(value=2)
    third = run(agent, "three", thread("t"), entry=entry, catch=True)
    assert isinstance(third.error, StructuredOutputError)
    assert_paired(model)


def test_lcjs_11020_two_structured_calls_are_both_answered(entry: EntryPoint) -> None:
    twice = ai("", tool_call("Answer", {"value": 1}, "s1"), tool_call("Answer", {"value": 2}, "s2"))
    model = ScriptedModel(twice, gives(3))
    ended = run(create_agent(model, [], response_format=ToolStrategy(Answer)), "hi", entry=entry)
    assert {m.tool_call_id for m in ended.messages if isinstance(m, ToolMessage)} >= {"s1", "s2"}
    assert isinstance(ended.values["structured_response"], Answer)
    assert_paired(model, ended.messages)


class ChoosesFormat(AgentMiddleware[Any, Any, Any]):
    """Sets the response format of each request."""

    def __init__(self, strategy: Any) -> None:
        super().__init__()
        self.strategy = strategy

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(response_format=self.strategy))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(response_format=self.strategy))


@pytest.mark.parametrize("built_with", [None, ToolStrategy(Answer)], ids=["none", "another"])
@pytest.mark.parametrize("with_tools", [True, False])
def test_lc_35008_a_tool_strategy_chosen_per_request_works(
    entry: EntryPoint, add: Any, built_with: Any, with_tools: bool
) -> None:
    model = ScriptedModel(gives("b", name="Other"))
    chooses = ChoosesFormat(ToolStrategy(Other))
    tools = [add.tool] if with_tools else []
    ended = run(create_agent(model, tools, middleware=[chooses], response_format=built_with), "hi", entry=entry)
    assert ended.values["structured_response"] == Other(text="b")
    assert "Other" in model.requests[0].tools
    assert "Answer" not in model.requests[0].tools
    assert_paired(model, ended.messages)


@pytest.mark.parametrize("built_with", [None, ToolStrategy(Answer)], ids=["none", "another"])
def test_lc_35008_a_provider_strategy_chosen_per_request_works(entry: EntryPoint, built_with: Any) -> None:
    model = ScriptedModel(json.dumps({"text": "b"}))
    chooses = ChoosesFormat(ProviderStrategy(Other))
    ended = run(create_agent(model, [], middleware=[chooses], response_format=built_with), "hi", entry=entry)
    assert ended.values["structured_response"] == Other(text="b")
    assert "response_format" in model.requests[0].kwargs


def test_oai_1689_a_call_beside_text_that_would_validate_runs_first(entry: EntryPoint, add: Any) -> None:
    preamble = ai(json.dumps({"value": 1}), tool_call("add", {"a": 1, "b": 2}))
    model = ScriptedModel(preamble, json.dumps({"value": 3}))
    agent = create_agent(model, [add.tool], response_format=ProviderStrategy(Answer))
    ended = run(agent, [HumanMessage("hi")], entry=entry)
    assert add.ran == [(1, 2)]
    assert ended.values["structured_response"] == Answer(value=3)
    assert_paired(model, ended.messages)
