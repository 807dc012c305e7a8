"""Records of family I on what becomes of typed values in a store."""

from __future__ import annotations

import collections
import enum
import sys
from pathlib import Path
from typing import Any

import pytest

from agentkit import checkpoint
from agentkit.errors import UnreadableValue
from tests.checkpoint.keeping import keep, kept
from tests.checkpoint.typed_values import Fact, Shop


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'agent.db'}"


def again(url: str, value: Any, *types: Any) -> Any:
    """The value as a store gives it back that is opened anew."""
    with checkpoint.open(url, types=types) as saver:
        keep(saver, value)
    with checkpoint.open(url, types=types) as saver:
        return kept(saver)


def test_lg_9021_a_field_that_the_constructor_does_not_take_comes_back(url: str) -> None:
    fact = Fact("two words")
    fact.words = 17
    found = again(url, fact, Fact)
    assert type(found) is Fact
    assert found.words == 17


def test_lg_6718_a_nested_enum_comes_back_alone_in_a_model_and_in_a_list(url: str) -> None:
    kind, shelf = Shop.Kind.FOOD, Shop.Shelf(Shop.Kind.FOOD)
    found = again(url, {"alone": kind, "held": shelf, "listed": [kind]}, Shop.Shelf)
    assert found["alone"] is found["held"].kind is found["listed"][0] is kind


def test_lg_6970_a_class_that_is_gone_is_an_error_that_names_field_and_class(url: str) -> None:
    make: Any = enum.Enum
    colour = make("Colour", "RED", module=__name__)
    setattr(sys.modules[__name__], "Colour", colour)  # noqa: B010  (put there and taken away again)
    with checkpoint.open(url, types=[colour]) as saver:
        keep(saver, {"paint": [colour["RED"]]})
    delattr(sys.modules[__name__], "Colour")
    with checkpoint.open(url) as saver, pytest.raises(UnreadableValue) as caught:
        kept(saver)
    assert caught.value.field == "kept['paint'][0]"
    assert caught.value.type_name == f"{__name__}.Colour"
    renamed = make("Paint", "RED", module=__name__)
    with checkpoint.open(url, aliases={f"{__name__}.Colour": renamed}) as saver:
        assert kept(saver) == {"paint": [renamed["RED"]]}


def test_lg_8184_containers_keep_what_they_can_do(url: str) -> None:
    value = {
        "default": collections.defaultdict(list, {"a": [1]}),
        "counter": collections.Counter("aab"),
        "ordered": collections.OrderedDict(b=1, a=2),
        "bounded": collections.deque([1, 2], maxlen=2),
    }
    found = again(url, value)
    assert {name: type(part) for name, part in found.items()} == {name: type(part) for name, part in value.items()}
    found["default"]["new"].append(5)
    found["bounded"].append(3)
    assert found["default"] == {"a": [1], "new": [5]}
    assert found["counter"].most_common(1) == [("a", 2)]
    assert found["ordered"].popitem(last=False) == ("b", 1)
    assert [*found["bounded"]] == [2, 3]
