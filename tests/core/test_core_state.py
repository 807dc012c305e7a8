"""State: whose declaration of a field counts, what goes in and out, and what parallel calls may write."""

from __future__ import annotations

import logging
from operator import add
from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import OmitFromInput, OmitFromOutput, PrivateStateAttr
from langchain.tools import ToolRuntime, tool
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agentkit import create_agent, thread
from agentkit.errors import ConfigurationWarning, ReservedField
from agentkit.testing import ENTRY_POINTS, EntryPoint, ScriptedModel, ai, run, tool_call


def latest(old: Any, new: Any) -> Any:
    return new


def appended(old: str | None, new: str) -> str:
    return (old or "") + new


class Adds(AgentState[Any]):
    log: NotRequired[Annotated[str, appended]]


class Replaces(AgentState[Any]):
    log: NotRequired[Annotated[str, latest]]


def writes(text: str, schema: type, phase: str = "before_model") -> Any:
    def hook(self: Any, state: Any, runtime: Any) -> Any:
        return {"log": text}

    return type(f"Writes_{text}", (AgentMiddleware,), {phase: hook, "state_schema": schema})()


# ---- precedence


@pytest.mark.filterwarnings("ignore::agentkit.errors.ConfigurationWarning")
@pytest.mark.parametrize(
    ("schemas", "own", "expected"),
    [
        ((Adds, Adds), None, "ab"),
        ((Adds, Replaces), None, "b"),
        ((Replaces, Adds), None, "ab"),
        ((Adds, Replaces), Adds, "ab"),
        ((Adds, Adds), Replaces, "b"),
        ((Adds, Replaces, Adds), None, "abc"),
    ],
)
def test_the_last_declaration_wins_and_the_callers_over_all(
    schemas: tuple[type, ...], own: type | None, expected: str
) -> None:
    middleware = [writes("abc"[i], schema) for i, schema in enumerate(schemas)]
    agent = create_agent(ScriptedModel("done"), middleware=middleware, state_schema=own)
    assert agent.invoke({"messages": "hi"})["log"] == expected


def test_two_middlewares_that_disagree_are_told_by_name() -> None:
    with pytest.warns(ConfigurationWarning, match=r"Writes_a and Writes_b declare the state field 'log' differently"):
        create_agent(ScriptedModel("done"), middleware=[writes("a", Adds), writes("b", Replaces)])


def test_the_caller_settles_a_disagreement_without_a_warning() -> None:
    middleware = [writes("a", Adds), writes("b", Replaces)]
    create_agent(ScriptedModel("done"), middleware=middleware, state_schema=Adds)  # warnings are errors


@pytest.mark.parametrize(
    "field", ["exit", "agentkit_tally", "agentkit_handover", "agentkit_position", "agentkit_failure"]
)
def test_the_loops_own_fields_are_reserved(field: str) -> None:
    schema: Any = type("Mine", (AgentState,), {"__annotations__": {field: str}})

    class Claims(AgentMiddleware[Any, Any, Any]):
        state_schema = schema

    with pytest.raises(ReservedField, match=rf"Mine \(of Claims\) declares the state field '{field}'") as caught:
        create_agent(ScriptedModel("done"), middleware=[Claims()])
    assert caught.value.field == field


# ---- in and out


class Filtered(AgentState[Any]):
    shown: NotRequired[str]
    inside: NotRequired[Annotated[str, OmitFromInput]]
    outside: NotRequired[Annotated[str, OmitFromOutput]]
    private: NotRequired[Annotated[str, PrivateStateAttr]]


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_fields_are_kept_out_of_input_and_output_as_declared(entry: EntryPoint, granularity: Any) -> None:
    seen: dict[str, Any] = {}

    class Looks(AgentMiddleware[Any, Any, Any]):
        state_schema = Filtered

        def before_model(self, state: Any, runtime: Any) -> Any:
            seen.update(state)
            return {"inside": "set", "outside": "set", "private": "set"}

    given = {"messages": [HumanMessage("hi")], "shown": "in", "inside": "in", "outside": "in", "private": "in"}
    agent = create_agent(ScriptedModel("done"), middleware=[Looks()], granularity=granularity)
    values = run(agent, given, entry=entry).values
    assert {key: seen.get(key) for key in ("shown", "inside", "outside", "private")} == {
        "shown": "in",
        "inside": None,
        "outside": "in",
        "private": None,
    }
    assert {key for key in values if key != "messages"} == {"shown", "inside"}


@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_the_loops_own_fields_are_shown_to_nobody(granularity: Any) -> None:
    seen: set[str] = set()

    class Looks(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> None:
            seen.update(state)

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.update(request.state)
            return handler(request)

    @tool
    def look(runtime: ToolRuntime) -> str:
        """Look."""
        seen.update(runtime.state)
        return "found"

    model = ScriptedModel(ai("", tool_call("look")), "done")
    agent = create_agent(model, [look], middleware=[Looks()], checkpointer=InMemorySaver(), granularity=granularity)
    for chunk in agent.stream({"messages": "hi"}, thread("t"), stream_mode="values"):
        seen.update(chunk)
    seen.update(agent.get_state(thread("t")).values)
    assert not [key for key in seen if key.startswith("agentkit")]
    assert not [key for key in agent.get_input_jsonschema()["properties"] if key.startswith("agentkit")]
    assert not [key for key in agent.get_output_jsonschema()["properties"] if key.startswith("agentkit")]


def test_a_turn_keeps_what_it_was_not_told_to_change() -> None:
    agent = create_agent(
        ScriptedModel("one", "two"), middleware=[writes("x", Adds, "before_agent")], checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": "hi", "log": "given "}, thread("t"))
    assert agent.invoke({"messages": "again"}, thread("t"))["log"] == "given xx"


# ---- parallel writes of a plain field


class Plain(AgentState[Any]):
    place: NotRequired[str]
    facts: NotRequired[dict[str, int]]
    every: NotRequired[Annotated[list[int], add]]


@tool
def note(x: int, runtime: ToolRuntime) -> Command[Any]:
    """Note a number in three fields."""
    answer = ToolMessage("noted", tool_call_id=runtime.tool_call_id)
    return Command(update={"messages": [answer], "place": f"p{x}", "facts": {f"f{x}": x}, "every": [x]})


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_parallel_calls_may_write_one_field(
    entry: EntryPoint, granularity: Any, caplog: pytest.LogCaptureFixture
) -> None:
    calls = [tool_call("note", {"x": x}, f"c{x}") for x in (3, 1, 2)]
    agent = create_agent(ScriptedModel(ai("", *calls), "done"), [note], state_schema=Plain, granularity=granularity)
    with caplog.at_level(logging.WARNING, "agentkit"):
        values = run(agent, "hi", entry=entry).values
    assert values["place"] == "p2", "the last call in the model's order"
    assert values["facts"] == {"f3": 3, "f1": 1, "f2": 2}
    assert values["every"] == [3, 1, 2]
    assert ["'place'" in record.getMessage() for record in caplog.records] == [True]


def test_one_value_written_twice_is_no_conflict(caplog: pytest.LogCaptureFixture) -> None:
    calls = [tool_call("note", {"x": 1}, id) for id in ("c1", "c2")]
    agent = create_agent(ScriptedModel(ai("", *calls), "done"), [note], state_schema=Plain)
    assert agent.invoke({"messages": "hi"})["place"] == "p1"
    assert not caplog.records


# ---- messages


def test_messages_are_added_replaced_by_id_and_removed() -> None:
    """`add_messages`, as everywhere in LangGraph."""
    from langchain_core.messages import RemoveMessage

    class Edits(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> Any:
            first, second = state["messages"][:2]
            return {"messages": [RemoveMessage(id=first.id), HumanMessage("changed", id=second.id), ("user", "added")]}

    agent = create_agent(ScriptedModel("done"), middleware=[Edits()])
    result = agent.invoke({"messages": [HumanMessage("one"), HumanMessage("two")]})
    assert [m.text for m in result["messages"]] == ["changed", "added", "done"]
