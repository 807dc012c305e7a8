"""Values come back from a store as what they were, or are refused with the field's and the type's name."""

from __future__ import annotations

import collections
import dataclasses
import enum
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Optional, TypeVar

import pytest
from langchain.agents.middleware import AgentState
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, StateSnapshot, interrupt
from typing_extensions import TypedDict

from agentkit import checkpoint, create_agent, thread
from agentkit.checkpoint import Saver
from agentkit.checkpoint.allowed import classes_in, declare
from agentkit.checkpoint.serde import TypedSerializer
from agentkit.errors import UnreadableValue, UnstorableValue
from agentkit.testing import ScriptedModel, ai, tool_call
from tests.checkpoint.keeping import differences, keep, kept
from tests.checkpoint.typed_values import (
    TYPES,
    VALUES,
    Address,
    Fact,
    Label,
    Level,
    Money,
    Order,
    Place,
    Point,
    Rights,
    Shop,
    Size,
)


def test_every_value_comes_back_in_a_new_process(tmp_path: Path, postgres_url: str, root: Path) -> None:
    urls = [f"sqlite:///{tmp_path / 'agent.db'}", postgres_url]
    for url in urls:
        with checkpoint.open(url, types=TYPES) as saver:
            keep(saver, VALUES)
    command = [sys.executable, "-m", "tests.checkpoint.keeping", *urls]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout


def test_every_value_comes_back_alone(saver: Saver) -> None:
    """A scalar field goes another way through PostgreSQL than one within a container."""
    saver.allow(*TYPES)
    found = {}
    for name, value in VALUES.items():
        keep(saver, value, name)
        found[name] = kept(saver, name)
    assert differences(found, VALUES) == []


def test_what_a_value_can_do_comes_back(saver: Saver) -> None:
    keep(saver, {name: VALUES[name] for name in ("defaultdict", "counter", "bounded deque", "ordered")})
    found = kept(saver)
    found["defaultdict"]["new"].append(1)
    assert found["counter"]["missing"] == 0
    assert [*found["bounded deque"], found["bounded deque"].append(4), *found["bounded deque"]] == [
        1,
        2,
        3,
        None,
        2,
        3,
        4,
    ]
    found["ordered"].move_to_end("b")
    assert [*found["ordered"]] == ["a", "b"]


def test_a_private_attribute_comes_back(saver: Saver) -> None:
    saver.allow(Order)
    keep(saver, VALUES["model"])
    assert kept(saver)._seen == 7


class Unknown:
    pass


@pytest.mark.parametrize(
    ("value", "field", "type_name"),
    [
        (Unknown(), "kept", "Unknown"),
        ({"a": [1, Unknown()]}, "kept['a'][1]", "Unknown"),
        (Fact("not allowed"), "kept", "Fact"),
        ([ToolMessage("x", tool_call_id="c", artifact={"price": Money(1)})], "kept[0].artifact['price']", "Money"),
        (collections.defaultdict(lambda: 0), "kept", "defaultdict"),
        ({1: {Size.LARGE: 1}}, "kept[1][a key]", "Size"),
        (ValueError, "kept", "type"),
        ([ValueError("an error, but not of a task")], "kept[0]", "ValueError"),
        (1j, "kept", "complex"),
    ],
)
def test_what_would_not_come_back_is_refused(saver: Saver, value: Any, field: str, type_name: str) -> None:
    with pytest.raises(UnstorableValue) as caught:
        keep(saver, value)
    assert caught.value.field == field
    assert caught.value.type_name.rpartition(".")[2] == type_name
    assert field in str(caught.value)


def test_a_value_that_holds_itself_is_refused(saver: Saver) -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(UnstorableValue, match="holds itself"):
        keep(saver, value)


def test_what_is_refused_leaves_the_thread_as_it_was(saver: Saver) -> None:
    keep(saver, "before")
    with pytest.raises(UnstorableValue):
        keep(saver, Unknown())
    assert kept(saver) == "before"


# ---- reading


def test_a_class_that_is_not_allowed_is_not_made(saver: Saver, url: str) -> None:
    saver.allow(Order)
    keep(saver, {"orders": [VALUES["model"]]})
    saver.serde = TypedSerializer()
    with pytest.raises(UnreadableValue) as caught:
        kept(saver)
    assert caught.value.field == "kept['orders'][0].address.kind"
    assert caught.value.type_name.endswith("Shop.Kind")


def stored(value: Any, *types: Any) -> tuple[str, bytes]:
    return TypedSerializer(types).dumps_typed(value)


def changed(name: str, *fields: Any) -> Any:
    """A dataclass that claims to be another one, of an older or newer release."""
    made = dataclasses.make_dataclass(name, fields)
    made.__module__ = Fact.__module__
    return made


def test_a_renamed_class_is_found_by_its_alias() -> None:
    new = changed("Statement", ("text", str), ("words", int), ("sources", list))
    read = TypedSerializer(aliases={f"{Fact.__module__}.Fact": new}).loads_typed(stored(Fact("two words"), Fact))
    assert (type(read), read.words) == (new, 2)


def test_a_new_field_takes_its_default_and_a_lost_one_is_told(caplog: pytest.LogCaptureFixture) -> None:
    new = changed("Fact", ("text", str), ("words", int), ("sure", bool, dataclasses.field(default=True)))
    read = TypedSerializer([new]).loads_typed(stored(Fact("two words"), Fact))
    assert (read.sure, read.words) == (True, 2)
    assert "has a field 'sources' that the class has no more" in caplog.text


def test_a_new_field_without_default_is_an_error_that_names_it() -> None:
    new = changed("Fact", ("text", str), ("words", int), ("sources", list), ("must", int))
    with pytest.raises(UnreadableValue, match="field 'must' is new and has no default"):
        TypedSerializer([new]).loads_typed(stored(Fact("two words"), Fact))


def test_a_model_that_has_changed_is_validated() -> None:
    class New(Address):
        number: int

    New.__module__, New.__qualname__ = Address.__module__, "Address"
    with pytest.raises(UnreadableValue, match="does not fit it"):
        TypedSerializer([New]).loads_typed(stored(Address(street="Main"), Address))


def test_a_lost_member_of_an_enum_is_an_error() -> None:
    make: Any = enum.Enum
    new = make("Size", "SMALL", module=Size.__module__, qualname="Size")
    with pytest.raises(UnreadableValue, match="no member 'LARGE' any more"):
        TypedSerializer([new]).loads_typed(stored(Size.LARGE, Size))


def test_pickled_values_are_refused() -> None:
    import pickle

    with pytest.raises(UnreadableValue, match="nothing is unpickled"):
        TypedSerializer().loads_typed(("pickle", pickle.dumps(1)))


@pytest.mark.parametrize(
    "name", ["tuple", "keys", "list of models", "messages", "zoned", "nested dataclass", "command"]
)
def test_damaged_bytes_are_an_error_or_another_value(name: str) -> None:
    serializer = TypedSerializer(TYPES)
    kind, data = serializer.dumps_typed(VALUES[name])
    refused = 0
    for place in range(len(data)):
        damaged = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
        try:
            serializer.loads_typed((kind, damaged))
        except UnreadableValue:
            refused += 1
    assert refused > 3


# ---- which classes an agent allows


class Reply(TypedDict):
    order: Order


class Agenda(TypedDict, total=False):
    messages: list[Any]
    place: Annotated[Optional[Place], "a note"]  # noqa: UP045  (the old spelling is what is tested)
    label: Literal[Label.RED] | None


def test_the_classes_of_annotations_are_found_however_they_are_named() -> None:
    Id = NewType("Id", Level)
    Right = TypeVar("Right", bound=Rights)
    found = classes_in(dict[str, list[Agenda | Id | Right | tuple[Shop.Shelf, ...]]])  # type: ignore[valid-type]
    assert found == {Place, Point, Label, Level, Rights, Shop.Shelf, Shop.Kind}


def test_hints_that_cannot_be_evaluated_keep_no_store_from_working(saver: Saver) -> None:
    odd = dataclasses.make_dataclass("Odd", [("broken", "1 + None")])
    declare(odd)
    with pytest.raises(UnstorableValue, match="Unknown"):
        keep(saver, Unknown())


def test_an_agent_allows_its_state_and_its_answers(saver: Saver) -> None:
    class State(AgentState[Any], total=False):
        facts: list[Fact]

    answer = tool_call("Address", {"street": "Main"})
    agent = create_agent(
        ScriptedModel(ai("", answer)), state_schema=State, response_format=ToolStrategy(Address), checkpointer=saver
    )
    agent.invoke({"messages": "hi", "facts": [Fact("two words")]}, thread("t"))
    values = agent.get_state(thread("t")).values
    assert values["facts"] == [Fact("two words")]
    assert values["structured_response"] == Address(street="Main")


def test_a_sub_agents_classes_are_allowed_where_its_parent_is_stored(saver: Saver) -> None:
    class State(AgentState[Any], total=False):
        facts: list[Fact]

    def note(runtime: ToolRuntime) -> Command[Any]:
        """Note a fact."""
        said = ToolMessage("noted", tool_call_id=runtime.tool_call_id)
        return Command(update={"facts": [Fact("two words")], "messages": [said]})

    def ask() -> str:
        """Ask a person."""
        return str(interrupt("go on?"))

    model = ScriptedModel(ai("", tool_call("note")), ai("", tool_call("ask", id="c2")), "done")
    inner = create_agent(model, [note, ask], state_schema=State)
    builder = StateGraph(State)
    builder.add_node("inner", inner)
    builder.add_edge(START, "inner")
    outer = builder.compile(checkpointer=saver)
    outer.invoke({"messages": [HumanMessage("hi")]}, thread("t"))
    (task,) = outer.get_state(thread("t"), subgraphs=True).tasks
    assert isinstance(task.state, StateSnapshot)
    assert task.state.values["facts"] == [Fact("two words")]
    assert outer.invoke(Command(resume="yes"), thread("t"))["facts"] == [Fact("two words")]


def test_a_graph_that_is_compiled_strictly_names_its_classes(saver: Saver) -> None:
    """LangGraph does so under LANGGRAPH_STRICT_MSGPACK, by module and simple name."""
    assert saver.with_allowlist({(Fact.__module__, "Fact"), ("nowhere", "Nothing")}) is saver
    keep(saver, Fact("two words"))
    assert kept(saver) == Fact("two words")


# ---- LangGraph's own serializer


def test_messages_and_plain_data_are_written_as_langgraph_does() -> None:
    value = {"messages": [HumanMessage("hi", id="1"), AIMessage("yes", id="2")], "n": [1, 2.5, None, "x"]}
    assert JsonPlusSerializer(allowed_msgpack_modules=None).loads_typed(stored(value)) == value


def test_langgraph_refuses_what_it_cannot_read() -> None:
    with pytest.raises(NotImplementedError):
        JsonPlusSerializer().loads_typed(stored((1, 2)))


def test_a_file_of_langgraphs_saver_is_read_and_gone_on_with(tmp_path: Path) -> None:
    agent: dict[str, Any] = {"model": ScriptedModel("one", repeat=True)}
    with SqliteSaver.from_conn_string(str(tmp_path / "agent.db")) as theirs:
        create_agent(**agent, checkpointer=theirs).invoke({"messages": "hi"}, thread("t"))
    with checkpoint.open(f"sqlite:///{tmp_path / 'agent.db'}") as ours:
        create_agent(**agent, checkpointer=ours).invoke({"messages": "again"}, thread("t"))
    with SqliteSaver.from_conn_string(str(tmp_path / "agent.db")) as theirs:
        values = create_agent(**agent, checkpointer=theirs).get_state(thread("t")).values
    assert [message.text for message in values["messages"]] == ["hi", "one", "again", "one"]


def test_typed_values_that_langgraph_wrote_are_read_where_they_are_whole() -> None:
    for value in (Fact("two words"), Size.LARGE, Shop.Kind.FOOD, VALUES["model"].address, VALUES["uuid"], Label.RED):
        written = JsonPlusSerializer().dumps_typed(value)
        assert TypedSerializer(TYPES).loads_typed(written) == value
