"""Results as they are recorded: back as what they were, or refused with the place and the type."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.types import Command, Overwrite, Send
from pydantic import BaseModel

from agentkit.errors import UnreadableValue, UnrecordableResult
from agentkit.ledger.outcomes import as_result, dumps, loads


def message(**more: Any) -> ToolMessage:
    return ToolMessage(more.pop("content", "paid"), tool_call_id="c", name="pay", **more)


class Colour(Enum):
    RED = 1


class Receipt(BaseModel):
    number: int


VALUES: list[Any] = [
    None,
    "text with a \x00 and a lone \ud800",
    [1, 2.5, True, None, 2**80],
    {"a": {"b": []}, "~": "a key like the tag"},
    {1: "one", ("a", 2): "two"},
    (1, (2, [3])),
    {1, 2},
    frozenset({"x"}),
    b"\x00\xff",
    float("inf"),
    datetime(2026, 3, 1, 12, 30, 1, 5, tzinfo=UTC),
    datetime(2026, 3, 1),
    date(2026, 3, 1),
    time(12, 30),
    timedelta(days=-1, microseconds=7),
    Decimal("10.50"),
    UUID(int=7),
    Path("a/b"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_an_artifact_comes_back_as_what_it_was(value: Any) -> None:
    kept = dumps(message(artifact=value), "pay")
    json.loads(kept, parse_constant=pytest.fail)  # proper JSON, for whoever reads the table
    kept.encode()
    back = loads(kept)
    assert back == message(artifact=value)
    assert type(back.artifact) is type(value)
    assert repr(back.artifact) == repr(value)


@pytest.mark.parametrize(
    "result",
    [
        message(content=[{"type": "text", "text": "a"}, "b"], additional_kwargs={"k": 1}, status="error", id="m1"),
        Command(update={"messages": [message()], "order": Decimal("1")}, goto="end"),
        Command(update=[("messages", [message()])], graph=Command.PARENT, goto=[Send("node", {"x": (1,)})]),
        [message(), Command(update={"notes": Overwrite(["n"])})],
        Command(update={"messages": [HumanMessage("h"), SystemMessage("s"), AIMessage("a"), RemoveMessage(id="m")]}),
    ],
    ids=["message", "command", "to the parent", "several", "all kinds of messages"],
)
def test_a_result_comes_back_as_what_it_was(result: Any) -> None:
    assert loads(dumps(result, "pay")) == result


@pytest.mark.parametrize(
    ("value", "where", "kind"),
    [
        ({"rows": [object()]}, "it.artifact['rows'][0]", "builtins.object"),
        (Receipt(number=1), "it.artifact", "Receipt"),
        (OrderedDict(a=1), "it.artifact", "collections.OrderedDict"),
        (defaultdict(list), "it.artifact", "collections.defaultdict"),
        ((Colour.RED,), "it.artifact[0]", "Colour"),
        (lambda: 1, "it.artifact", "builtins.function"),
    ],
    ids=["object", "model", "ordered dict", "default dict", "enum", "function"],
)
def test_what_could_not_come_back_is_refused_with_its_place(value: Any, where: str, kind: str) -> None:
    with pytest.raises(UnrecordableResult) as caught:
        dumps(message(artifact=value), "pay")
    assert caught.value.where == where
    assert kind in str(caught.value)


def test_reading_builds_nothing_but_known_types() -> None:
    with pytest.raises(UnreadableValue, match=r"subprocess\.Popen"):
        loads('{"~": "subprocess.Popen", "value": ["true"]}')


@pytest.mark.parametrize("value", ["text", {"a": 1}, [1, 2], [{"type": "text", "text": "t"}], 7, None, ["a", "b"]])
def test_a_tools_return_value_becomes_what_the_tools_step_makes_of_it(value: Any) -> None:
    from langchain_core.tools import StructuredTool

    tool = StructuredTool.from_function(lambda: value, name="pay", description="Pay.")
    expected = tool.invoke({"type": "tool_call", "name": "pay", "args": {}, "id": "c"})
    assert as_result(value, "pay", "c").content == expected.content
