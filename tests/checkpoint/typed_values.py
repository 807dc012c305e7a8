"""Classes of all kinds, as users keep them in an agent's state, and a value of each."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import ipaddress
import pathlib
import re
import uuid
import zoneinfo
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.types import Command, Interrupt, Overwrite, Send
from pydantic import BaseModel, PrivateAttr, SecretStr


class Size(enum.Enum):
    SMALL = 1
    LARGE = 2


class Label(str, enum.Enum):  # noqa: UP042  (the old spelling is what users have)
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Shop:
    class Kind(enum.Enum):
        FOOD = "food"

    @dataclass
    class Shelf:
        kind: Shop.Kind
        rows: tuple[int, ...] = ()


@dataclass
class Fact:
    """The class of LG-9021: a field that the constructor does not take."""

    text: str
    words: int = field(init=False)
    sources: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.words = len(self.text.split())


@dataclass(frozen=True, slots=True)
class Point:
    x: decimal.Decimal
    y: float = 0.5


class Place(NamedTuple):
    name: str
    at: Point


class Address(BaseModel):
    street: str
    kind: Shop.Kind = Shop.Kind.FOOD


class Order(BaseModel):
    id: uuid.UUID
    placed: datetime.datetime
    total: decimal.Decimal
    address: Address
    tags: set[str] = set()
    point: Point | None = None
    _seen: int = PrivateAttr(default=0)


class Loose(BaseModel, extra="allow"):
    known: int


class Money(decimal.Decimal):
    """A subclass that nobody can bring back without its class."""


def seen(order: Order) -> Order:
    order._seen = 7
    return order


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
ORDER = seen(
    Order(
        id=uuid.UUID(int=5),
        placed=datetime.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
        total=decimal.Decimal("12.30"),
        address=Address(street="Main"),
        tags={"a"},  # one: what is compared as text must not depend on the order of a set of strings
        point=Point(decimal.Decimal("1.0")),
    )
)

TYPES: list[Any] = [Size, Label, Level, Rights, Shop.Kind, Shop.Shelf, Fact, Place, Order, Loose]

VALUES: dict[str, Any] = {
    "none": None,
    "text": "grün\n\x00",
    "half character": "cut \ud83d",
    "great integer": 2**80,
    "not a number": float("inf"),
    "whole float": 1e300,
    "bytes": b"\x00\xff",
    "tuple": (1, ("a", [2, (3,)])),
    "set of tuples": {(1, 2), (3, 4)},
    "frozenset": frozenset({"a"}),
    "keys": {1: "a", None: "b", 2.5: "c", (1, 2): "d", Size.SMALL: "e", "f": {True: "g"}},
    "enum": Size.LARGE,
    "text enum": Label.RED,
    "int enum": Level.HIGH,
    "flags": Rights.READ | Rights.WRITE,
    "nested enum": Shop.Kind.FOOD,
    "nested dataclass": Shop.Shelf(Shop.Kind.FOOD, (1, 2)),
    "dataclass": Fact("two words"),
    "frozen": Point(decimal.Decimal("1.10")),
    "named tuple": Place("x", Point(decimal.Decimal(1))),
    "model": ORDER,
    "loose model": Loose(known=1, other=Point(decimal.Decimal(2))),  # type: ignore[call-arg]
    "list of models": [ORDER, {"again": ORDER}],
    "decimal": decimal.Decimal("0.10"),
    "date": datetime.date(2026, 1, 2),
    "time": datetime.time(1, 2, 3, 4, tzinfo=datetime.UTC),
    "naive": datetime.datetime(2026, 1, 2, 3),
    "utc": datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC),
    "zoned": datetime.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
    "duration": datetime.timedelta(days=-1, microseconds=5),
    "zone": BERLIN,
    "uuid": uuid.UUID(int=9),
    "path": pathlib.Path("/a/b.txt"),
    "pattern": re.compile("a+", re.IGNORECASE),
    "address": ipaddress.ip_network("10.0.0.0/8"),
    "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
    "counter": collections.Counter("abca"),
    "defaultdict": collections.defaultdict(list, {"a": [1]}),
    "deque": collections.deque([1, 2, 3]),
    "bounded deque": collections.deque([1, 2, 3], maxlen=3),
    "secret": SecretStr("hush"),
    "document": Document("text", metadata={"page": 1}),
    "messages": [
        HumanMessage("hi", id="1", name="Ann", additional_kwargs={"at": (1, 2)}),
        AIMessage("", tool_calls=[{"name": "look", "args": {"x": 1}, "id": "c", "type": "tool_call"}]),
        ToolMessage("found", tool_call_id="c", artifact=Fact("kept whole")),
        RemoveMessage(id="1"),
    ],
    "send": Send("node", {"fact": Fact("sent")}),
    "interrupt": Interrupt(value=Shop.Kind.FOOD, id="i"),
    "command": Command(update={"x": (1,)}, goto="node"),
    "overwrite": Overwrite([Fact("new")]),
}
