"""`Facts`: what the model is shown of the state, where, and that it is stored nowhere."""

from __future__ import annotations

import operator
from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents.middleware import AgentState
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from agentkit import create_agent, thread
from agentkit.errors import ConfigurationError
from agentkit.middleware import Facts
from agentkit.testing import EntryPoint, ScriptedModel, ai, assert_paired, run, tool_call


class Order(AgentState[Any]):
    user_id: NotRequired[str]
    order_id: NotRequired[str]
    items: NotRequired[Any]
    seen: NotRequired[Annotated[list[str], operator.add]]


@tool
def note(field: str, value: str, runtime: ToolRuntime) -> Command[Any]:
    """Store a fact."""
    done = ToolMessage(f"{field} noted", tool_call_id=str(runtime.tool_call_id))
    return Command(update={field: value, "messages": [done]})


def noting(*facts: tuple[str, str]) -> Any:
    return ai("", *[tool_call("note", {"field": f, "value": v}, f"c{i}") for i, (f, v) in enumerate(facts)])


def agent(model: Any, *facts: Any, **kwargs: Any) -> Any:
    return create_agent(model, [note], middleware=[*facts], state_schema=Order, system_prompt="Be kind.", **kwargs)


def shown(request: Any) -> list[str]:
    """The facts of a request: what follows their heading in its last message."""
    text = str(request.messages[-1].text)
    return text.split("not said by the user):\n", 1)[1].splitlines() if "Known facts" in text else []


def test_fields_with_a_value_are_shown_in_the_order_named(entry: EntryPoint) -> None:
    model = ScriptedModel(noting(("order_id", "o-1"), ("user_id", "u-1")), "done")
    run(agent(model, Facts(["user_id", "items", "order_id"])), "hi", entry=entry)
    assert shown(model.requests[0]) == []
    assert shown(model.requests[1]) == ['user_id: "u-1"', 'order_id: "o-1"']


def test_they_stand_behind_everything_and_what_comes_before_is_as_it_was(entry: EntryPoint) -> None:
    script = [noting(("order_id", "o-1")), noting(("order_id", "o-2")), "done"]
    plain, with_facts = ScriptedModel(*script), ScriptedModel(*script)
    run(agent(plain), "hi", entry=entry)
    run(agent(with_facts, Facts(["order_id"])), "hi", entry=entry)
    for bare, full in zip(plain.requests[1:], with_facts.requests[1:], strict=True):
        assert [(m.type, m.text) for m in full.messages[:-1]] == [(m.type, m.text) for m in bare.messages]
        assert isinstance(full.messages[-1], HumanMessage)
    assert shown(with_facts.requests[1]) == ['order_id: "o-1"']
    assert shown(with_facts.requests[2]) == ['order_id: "o-2"']
    assert_paired(with_facts)


def test_they_are_never_stored(entry: EntryPoint) -> None:
    model = ScriptedModel(noting(("order_id", "o-1")), "done", "again")
    built = agent(model, Facts(["order_id"]), checkpointer=InMemorySaver())
    run(built, "hi", thread("t"), entry=entry)
    ended = run(built, "more", thread("t"), entry=entry)
    assert not [m for m in built.get_state(thread("t")).values["messages"] if "Known facts" in m.text]
    assert [m.type for m in ended.messages] == ["human", "ai", "tool", "ai", "human", "ai"]
    assert [m.type for m in model.requests[2].messages] == [
        "system", "human", "ai", "tool", "ai", "human", "human"
    ]  # fmt: skip


def test_in_the_last_message_for_models_that_want_roles_to_alternate() -> None:
    model = ScriptedModel(noting(("order_id", "o-1")), "done", "again")
    built = agent(model, Facts(["order_id"], place="last"), checkpointer=InMemorySaver())
    run(built, "hi", thread("t"))
    run(built, "more", thread("t"))
    _, after_tools, next_turn = model.requests
    assert after_tools.messages[-1].type == "tool"
    assert after_tools.messages[-1].text.startswith("order_id noted\n\nKnown facts")
    assert next_turn.messages[-1].text.startswith("more\n\nKnown facts")
    assert [m.text for m in next_turn.messages[:4]] == ["Be kind.", "hi", "", "order_id noted"]
    assert_paired(model)


def test_a_message_of_blocks_gets_a_block() -> None:
    model = ScriptedModel("done")
    content: Any = [{"type": "text", "text": "hi"}]
    agent(model, Facts(["order_id"], place="last")).invoke({"messages": [HumanMessage(content)], "order_id": "o-1"})
    sent: Any = model.requests[0].messages[-1].content
    assert [block["type"] for block in sent] == ["text", "text"]


def test_the_last_message_sent_is_never_the_models() -> None:
    for place in ("tail", "last"):
        model = ScriptedModel("done")
        facts = Facts(["order_id"], place=place)
        agent(model, facts).invoke({"messages": [HumanMessage("hi"), AIMessage("hello")], "order_id": "o-1"})
        assert model.requests[0].messages[-1].type == "human"


class Item(BaseModel):
    name: str
    price: float


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"b": 1, "a": [2, None]}, 'items: {"a": [2, null], "b": 1}'),
        ([Item(name="Tee", price=2.5)], 'items: [{"name": "Tee", "price": 2.5}]'),
        ({"c", "a", "b"}, 'items: ["a", "b", "c"]'),
        ("Grüße", 'items: "Grüße"'),
        ("two\nlines: 1", 'items: "two\\nlines: 1"'),
        (0, "items: 0"),
        (False, "items: false"),
        ("x" * 20, 'items: "xxxxxxxxx… (12 more characters)'),
        ({(1, 2): 3}, 'items: "{(1, 2): …'),
    ],
)
def test_a_value_is_shown_as_json_on_one_line(value: Any, line: str) -> None:
    model = ScriptedModel("done")
    limit = 10 if "…" in line else 500
    agent(model, Facts(["items"], limit=limit)).invoke({"messages": "hi", "items": value})
    assert len(shown(model.requests[0])) == 1
    assert shown(model.requests[0])[0].startswith(line)


@pytest.mark.parametrize("value", [None, "", [], {}])
def test_without_a_value_nothing_is_shown(value: Any) -> None:
    model = ScriptedModel("done")
    agent(model, Facts(["items"])).invoke({"messages": "hi", "items": value})
    assert [m.text for m in model.requests[0].messages] == ["Be kind.", "hi"]


def test_a_value_that_cannot_be_compared_is_shown() -> None:
    class Table:
        def __eq__(self, other: object) -> bool:
            raise ValueError("compare the cells")

        def __str__(self) -> str:
            return "2 x 3"

    model = ScriptedModel("done")
    agent(model, Facts(["items"])).invoke({"messages": "hi", "items": Table()})
    assert shown(model.requests[0]) == ['items: "2 x 3"']


def test_fields_can_be_shown_under_other_names() -> None:
    model = ScriptedModel("done")
    agent(model, Facts({"order_id": "order"})).invoke({"messages": "hi", "order_id": "o-1"})
    assert shown(model.requests[0]) == ['order: "o-1"']


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("order_id",), "list of state fields"),
        (([],), "list of state fields"),
        ((["a"], "top"), "place is 'tail' or 'last'"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(arguments: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Facts(*arguments)
    with pytest.raises(ConfigurationError, match="at least 1"):
        Facts(["a"], limit=0)


def test_da_527_facts_of_parallel_calls_are_all_shown(entry: EntryPoint) -> None:
    model = ScriptedModel(noting(("user_id", "u-1"), ("order_id", "o-1"), ("user_id", "u-2")), "done")
    run(agent(model, Facts(["user_id", "order_id"])), "hi", entry=entry)
    assert shown(model.requests[1]) == ['user_id: "u-2"', 'order_id: "o-1"']  # of one field the last call wins
