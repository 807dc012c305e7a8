"""Structured answers: which strategy, what is parsed, and what the model is told when it is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents.structured_output import (
    AutoStrategy,
    MultipleStructuredOutputsError,
    ProviderStrategy,
    StructuredOutputValidationError,
    ToolStrategy,
)
from langchain.tools import tool
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel
from typing_extensions import TypedDict

from agentkit import Limits, create_agent, exit_of, thread
from agentkit.errors import MissingStructuredOutput
from agentkit.structured import effective, normalise, parse, takes_schema, tools_of
from agentkit.testing import ENTRY_POINTS, EntryPoint, ScriptedModel, ai, assert_paired, run, tool_call


class Answer(BaseModel):
    value: int


class Other(BaseModel):
    text: str


@dataclass
class Point:
    x: int


class Pair(TypedDict):
    left: int


JSON = {"title": "Thing", "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def named(name: str, **profile: Any) -> Any:
    """A model that goes by a name, and perhaps has a profile."""

    class Named(ScriptedModel):
        model_name: str = name

    made: Any = Named
    return made("x", profile=profile or None)


# ---- which strategy


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-5.5", True),
        ("openai/gpt-5.5", True),
        ("gpt-4o-mini", True),
        ("gpt-4o-2024-11-20", True),
        ("ft:gpt-4.1:org", True),
        ("claude-sonnet-4-5", True),
        ("claude-sonnet-4-5-20250929", True),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", True),
        ("grok-4", True),
        ("grok-4.1-fast", True),
        ("gpt-3.5-turbo", False),
        ("gpt-5.2-pro", False),
        ("my-gpt-4o-like", False),
        ("claude-3-5-sonnet", False),
        ("llama-3.1-8b", False),
        ("", False),
    ],
)
def test_names_that_take_a_schema(name: str, expected: bool) -> None:
    assert takes_schema(named(name), has_tools=False) is expected


@pytest.mark.parametrize(
    ("name", "has_tools", "expected"),
    [
        ("anything", True, True),
        ("gemini-2.5-pro", False, True),
        ("gemini-2.5-pro", True, False),
        ("gemini-3-pro", True, True),
    ],
)
def test_a_profile_says_so(name: str, has_tools: bool, expected: bool) -> None:
    assert takes_schema(named(name, structured_output=True), has_tools) is expected


@pytest.mark.parametrize("schema", [Answer, Point, Pair, JSON])
def test_a_raw_schema_is_decided_at_the_call(schema: Any) -> None:
    given = normalise(schema)
    assert isinstance(given, AutoStrategy)
    assert isinstance(effective(given, named("gpt-5.5"), False), ProviderStrategy)
    assert isinstance(effective(given, named("llama"), False), ToolStrategy)


@pytest.mark.parametrize("given", [None, ToolStrategy(Answer), ProviderStrategy(Answer), AutoStrategy(Answer)])
def test_a_strategy_is_left_as_it_is(given: Any) -> None:
    assert normalise(given) is given


def test_a_union_is_one_tool_per_schema() -> None:
    assert set(tools_of(ToolStrategy(Answer | Other))) == {"Answer", "Other"}
    assert tools_of(ProviderStrategy(Answer)) == {}


# ---- what a reply says


def parsed(reply: AIMessage, **options: Any) -> Any:
    strategy: Any = ToolStrategy(Answer | Other, **options)
    offered = tools_of(strategy)
    return parse(reply, strategy, offered, set(offered))


def test_a_good_answer_is_a_value_and_a_result_for_the_history() -> None:
    found = parsed(ai("", tool_call("Answer", {"value": 3}, "s1")))
    assert found.value == Answer(value=3)
    assert [(m.type, getattr(m, "tool_call_id", None)) for m in found.messages] == [("ai", None), ("tool", "s1")]
    assert "value=3" in found.messages[1].text


def test_the_result_says_what_the_caller_wants_it_to_say() -> None:
    found = parsed(ai("", tool_call("Answer", {"value": 3}, "s1")), tool_message_content="thanks")
    assert found.messages[1].text == "thanks"


def test_real_calls_beside_it_are_left_to_run() -> None:
    found = parsed(ai("", tool_call("look", {}, "c1"), tool_call("Answer", {"value": 3}, "s1")))
    assert [m.tool_call_id for m in found.messages if isinstance(m, ToolMessage)] == ["s1"]


BAD = ai("", tool_call("Answer", {"value": "many"}, "s1"))
TWO = ai("", tool_call("Answer", {"value": 1}, "s1"), tool_call("Other", {"text": "t"}, "s2"))


@pytest.mark.parametrize(("reply", "ids"), [(BAD, ["s1"]), (TWO, ["s1", "s2"])], ids=["invalid", "several"])
def test_a_wrong_answer_is_answered_for_the_model(reply: AIMessage, ids: list[str]) -> None:
    found = parsed(reply)
    assert found.failed
    assert found.value is None
    assert [m.tool_call_id for m in found.messages[1:]] == ids


@pytest.mark.parametrize(
    ("handle", "told"),
    [
        (True, "fix your mistakes"),
        ("try harder", "try harder"),
        (StructuredOutputValidationError, "fix your mistakes"),
        ((KeyError, StructuredOutputValidationError), "fix your mistakes"),
        (lambda error: f"seen {type(error).__name__}", "seen StructuredOutputValidationError"),
    ],
    ids=["bool", "str", "type", "tuple", "callable"],
)
def test_what_the_model_is_told(handle: Any, told: str) -> None:
    assert told in parsed(BAD, handle_errors=handle).messages[1].text


@pytest.mark.parametrize("handle", [False, KeyError, (KeyError, TimeoutError), MultipleStructuredOutputsError])
def test_what_is_not_handled_leaves(handle: Any) -> None:
    with pytest.raises(StructuredOutputValidationError):
        parsed(BAD, handle_errors=handle)


def test_several_answers_leave_as_their_own_error() -> None:
    with pytest.raises(MultipleStructuredOutputsError, match=r"Answer.*Other"):
        parsed(TWO, handle_errors=False)


def test_a_native_answer_is_parsed_from_the_text_once_no_calls_are_left() -> None:
    strategy: Any = ProviderStrategy(Answer)
    assert parse(ai('{"value": 3}'), strategy, {}, ()).value == Answer(value=3)
    assert parse(ai("", tool_call("look")), strategy, {}, ()).value is None
    with pytest.raises(StructuredOutputValidationError, match="Answer"):
        parse(ai("no json"), strategy, {}, ())


# ---- in a run


@tool
def look(x: int) -> str:
    """Look."""
    return f"found {x}"


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("granularity", ["hook", "turn"])
@pytest.mark.parametrize(
    ("schema", "name", "args", "value"),
    [
        (Answer, "Answer", {"value": 1}, Answer(value=1)),
        (Point, "Point", {"x": 1}, Point(1)),
        (Pair, "Pair", {"left": 1}, {"left": 1}),
        (JSON, "Thing", {"n": 1}, {"n": 1}),
    ],
    ids=["pydantic", "dataclass", "TypedDict", "json"],
)
def test_every_kind_of_schema(
    schema: Any, name: str, args: dict[str, Any], value: Any, entry: EntryPoint, granularity: Any
) -> None:
    model = ScriptedModel(ai("", tool_call(name, args, "s1")))
    agent = create_agent(model, response_format=ToolStrategy(schema), granularity=granularity)
    assert run(agent, "hi", entry=entry).values["structured_response"] == value
    assert model.requests[0].tool_choice == "any"
    assert_paired(model)


def test_an_anonymous_schema_keeps_its_name_over_all_calls() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    def answer(request: Any) -> AIMessage:
        (name,) = request.tools
        return ai("", tool_call(name, {"n": 1}, "s1"))

    model = ScriptedModel("just text", answer)
    assert create_agent(model, response_format=schema).invoke({"messages": "hi"})["structured_response"] == {"n": 1}
    assert model.requests[0].tools == model.requests[1].tools


def test_real_calls_run_first_and_then_the_run_ends() -> None:
    model = ScriptedModel(ai("", tool_call("look", {"x": 1}, "c1"), tool_call("Answer", {"value": 3}, "s1")))
    result = create_agent(model, [look], response_format=ToolStrategy(Answer)).invoke({"messages": "hi"})
    assert {m.tool_call_id: m.text for m in result["messages"] if isinstance(m, ToolMessage)}["c1"] == "found 1"
    assert result["structured_response"] == Answer(value=3)
    assert model.calls == 1


@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_an_earlier_turns_answer_never_ends_a_later_one(granularity: Any) -> None:
    good = ai("", tool_call("Answer", {"value": 1}, "s1"))
    steps = [good, ai("", tool_call("look", {"x": 1}, "c1")), ai("", tool_call("Answer", {"value": 2}, "s2"))]
    agent = create_agent(
        ScriptedModel(*steps),
        [look],
        response_format=ToolStrategy(Answer),
        checkpointer=InMemorySaver(),
        granularity=granularity,
    )
    values = [agent.invoke({"messages": "hi"}, thread("t"))["structured_response"].value for _ in range(2)]
    assert values == [1, 2]


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("step", ["plain text", BAD], ids=["text", "invalid"])
def test_a_required_answer_that_never_comes_is_an_error(step: Any, entry: EntryPoint) -> None:
    model = ScriptedModel(step, repeat=True)
    agent = create_agent(model, response_format=ToolStrategy(Answer), limits=Limits(structured_retries=2))
    error = run(agent, "hi", entry=entry, catch=True).error
    assert isinstance(error, MissingStructuredOutput)
    assert error.tries == 2
    assert model.calls == 2
    assert "Limits.structured_retries" in str(error)


def test_a_text_is_asked_again_and_leaves_no_trace_in_the_history() -> None:
    model = ScriptedModel("just text", ai("", tool_call("Answer", {"value": 1}, "s1")))
    result = create_agent(model, response_format=ToolStrategy(Answer)).invoke({"messages": "hi"})
    assert [m.type for m in result["messages"]] == ["human", "ai", "tool"]
    assert "Answer" in model.requests[1].messages[-1].text
    ended = exit_of(result)
    assert ended is not None
    assert ended.reason == "structured"
