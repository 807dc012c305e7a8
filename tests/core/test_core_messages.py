"""The indexed reducer is `add_messages`, and the delta reducer is the same however its writes are batched."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random
from sqlite3 import connect
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

from agentkit import create_agent
from agentkit.messages import IndexedMessages, merge_deltas, merge_messages, reducer_for
from agentkit.testing import ScriptedModel

CASES = range(int(os.environ.get("AGENTKIT_FUZZ", "0")) or 2000)
IDS = [f"m{number}" for number in range(6)]
_CHUNK_ID = "c"


def _message(random: Random, stored: bool) -> Any:
    text, id = random.choice("ab"), random.choice(IDS)
    forms: list[Callable[[], Any]] = [
        lambda: HumanMessage(text, id=id if stored else None),
        lambda: HumanMessage(text, id=id),
        lambda: AIMessage(text, id=id),
        lambda: AIMessageChunk(content=text, id=random.choice([id, _CHUNK_ID])),
        lambda: ToolMessage(text, tool_call_id="t", id=id),
        lambda: RemoveMessage(id=id),
        lambda: text,
        lambda: ("user", text),
        lambda: {"role": "user", "content": text, "id": id},
    ]
    return RemoveMessage(id=REMOVE_ALL_MESSAGES) if random.random() < 0.03 else random.choice(forms)()


def writes(seed: int, *, stored: bool = False) -> list[Any]:
    """Random writes to a history: lists and single messages in every form.

    Message objects that are stored have an id, which the engine gives them before.
    """
    random = Random(seed)
    some = [[_message(random, stored) for _ in range(random.randrange(5))] for _ in range(random.randrange(1, 8))]
    return [write[0] if len(write) == 1 else write for write in some]


EDITS: dict[str, Callable[[list[Any]], Any]] = {
    "append": lambda given: given.append(HumanMessage("new", id="m2")),
    "extend": lambda given: given.extend([HumanMessage("new")]),
    "insert": lambda given: given.insert(0, HumanMessage("new", id="m3")),
    "replace": lambda given: given.__setitem__(0, HumanMessage("new", id="m4")),
    "a slice": lambda given: given.__setitem__(slice(0, 1), []),
    "delete": lambda given: given.__delitem__(0),
    "remove": lambda given: given.remove(given[0]),
    "pop": lambda given: given.pop(),
    "reverse": lambda given: given.reverse(),
    "sort": lambda given: given.sort(key=lambda m: str(m.content)),
    "clear": lambda given: given.clear(),
    "in-place add": lambda given: given.__iadd__([HumanMessage("new", id="m1")]),
    "in-place times": lambda given: given.__imul__(2),
}


def plain(history: list[Any], new: dict[str, str] | None = None) -> list[Any]:
    """What is compared: ids that were made up by their order, all else as it is."""
    new = {} if new is None else new
    return [
        (type(m), m.content, m.id if m.id in (*IDS, _CHUNK_ID) else new.setdefault(m.id, f"new {len(new)}"))
        for m in history
    ]


def merged(reducer: Any, given: list[Any], edit: Callable[[list[Any]], Any] | None = None, at: int = 0) -> Any:
    """The history after all writes, or the error; with a change in place after one of them."""
    state: Any = []
    for number, write in enumerate(given):
        try:
            state = reducer(state, write)
        except ValueError as error:
            return state, str(error)
        if edit is not None and number == at and state:
            edit(state)
    return state, None


def test_merging_is_add_messages() -> None:
    for seed in CASES:
        theirs, their_error = merged(add_messages, writes(seed))
        ours, our_error = merged(merge_messages, writes(seed))
        assert (plain(ours), our_error) == (plain(theirs), their_error), f"seed {seed}"


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_changes_in_place_are_seen(edit: Callable[[list[Any]], Any]) -> None:
    for seed in CASES[:150]:
        theirs, their_error = merged(add_messages, writes(seed), edit, at=seed % 6)
        ours, our_error = merged(merge_messages, writes(seed), edit, at=seed % 6)
        assert (plain(ours), our_error) == (plain(theirs), their_error), f"seed {seed}"


def test_deltas_are_the_same_however_they_are_batched() -> None:
    """And when they are read a second time: a message that was stored without an id gets the same one."""

    def folded(*batches: list[Any]) -> Any:
        state: Any = []
        try:
            for batch in batches:
                state = merge_deltas(state, batch)
        except ValueError as error:
            return str(error)
        return [(type(m), m.content, m.id) for m in state]

    for seed in CASES:
        given = partial(writes, seed, stored=True)
        once = folded(given())
        for at in range(1, 3):
            assert folded(given()[:at], given()[at:]) == once, f"seed {seed}"
        assert folded(*([write] for write in given())) == once, f"seed {seed}"


def test_deltas_merge_as_add_messages() -> None:
    for seed in CASES:
        theirs, their_error = merged(add_messages, writes(seed))
        ours, our_error = merged(lambda state, write: merge_deltas(state, [write]), writes(seed))
        assert (plain(ours), our_error) == (plain(theirs), their_error), f"seed {seed}"


def test_a_long_history_keeps_its_index() -> None:
    """Also past the point where the tail of the index is folded into the whole."""
    theirs: Any = []
    ours: Any = []
    for number in range(600):
        write: list[Any] = [HumanMessage(str(number), id=f"n{number}"), AIMessage("again", id=f"n{number // 2}")]
        theirs, ours = add_messages(theirs, list(write)), merge_messages(ours, list(write))
    assert ours == theirs
    assert ours.is_indexed


def test_the_history_before_is_not_changed() -> None:
    first = merge_messages([], [HumanMessage("one", id="m1")])
    one = merge_messages(first, [HumanMessage("two", id="m2")])
    other = merge_messages(first, [HumanMessage("three", id="m3")])
    replaced = merge_messages(one, [HumanMessage("ONE", id="m1")])
    assert [[m.text for m in each] for each in (first, one, other, replaced)] == [
        ["one"], ["one", "two"], ["one", "three"], ["ONE", "two"],
    ]  # fmt: skip


def test_an_id_that_was_changed_in_place_is_noticed_where_it_is_used() -> None:
    history = merge_messages([], [HumanMessage("one", id="m1"), HumanMessage("two", id="m2")])
    history[0].id = "m9"
    assert [m.id for m in merge_messages(history, [HumanMessage("new", id="m1")])] == ["m9", "m2", "m1"]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_are_lists_that_can_be_written_to(duplicate: Callable[[Any], Any]) -> None:
    history = merge_messages([], [HumanMessage("one", id="m1")])
    twin = duplicate(history)
    twin.append(HumanMessage("two", id="m2"))
    assert [m.id for m in merge_messages(twin, [HumanMessage("new", id="m2")])] == ["m1", "m2"]
    assert len(history) == 1


@pytest.mark.parametrize(("left", "right"), [(None, []), ([], None), (merge_messages([], ["one"]), None)])
def test_nothing_is_no_history(left: Any, right: Any) -> None:
    with pytest.raises(ValueError, match="non-null"):
        merge_messages(left, right)


# ---- when deltas are stored


class ShallowSaver(InMemorySaver):
    """Named as savers are that keep only the last checkpoint."""


class NewShallow(ShallowSaver):
    pass


class Stepwise(InMemorySaver):
    get_delta_channel_history = InMemorySaver.__mro__[1].get_delta_channel_history  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("checkpointer", "storage", "incremental"),
    [
        (SqliteSaver(connect(":memory:", check_same_thread=False)), "auto", True),
        (SqliteSaver(connect(":memory:", check_same_thread=False)), "full", False),
        (InMemorySaver(), "auto", False),
        (InMemorySaver(), "incremental", True),
        (NewShallow(), "auto", False),
        (NewShallow(), "incremental", True),
        (None, "auto", False),
        (True, "auto", False),
        (False, "auto", False),
        (True, "incremental", True),
        (None, "incremental", True),
    ],
)
@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_which_savers_are_given_deltas(checkpointer: Any, storage: Any, incremental: bool, granularity: Any) -> None:
    agent = create_agent(
        ScriptedModel("x"), checkpointer=checkpointer, message_storage=storage, granularity=granularity
    )
    assert isinstance(agent.channels["messages"], DeltaChannel) is incremental


def snapshots(checkpointer: Any, length: int) -> list[int]:
    """At which updates a history that grows by one message each is stored whole."""
    channel, since = reducer_for(checkpointer, "incremental").from_checkpoint([]), 0
    found: list[int] = []
    for number in range(length):
        channel.update([[HumanMessage("x", id=str(number))]])
        since += 1
        if since >= channel.copy().snapshot_frequency:
            since, found = 0, [*found, number]
    return found


def test_a_history_is_stored_whole_whenever_it_grew_by_half() -> None:
    found = snapshots(InMemorySaver(), 2000)
    assert found[:16] == list(range(16))
    assert all(after / before > 1.4 for before, after in pairwise(found) if 20 < after < 800)
    assert max(after - before for before, after in pairwise(found)) == 400


@pytest.mark.parametrize("length", [200, 1600])
def test_whole_histories_are_together_no_more_than_a_few_times_the_thread(length: int) -> None:
    assert sum(number + 1 for number in snapshots(InMemorySaver(), length)) <= 4 * length


def test_snapshots_are_more_frequent_where_each_step_back_is_a_query() -> None:
    found = snapshots(Stepwise(), 2000)
    assert max(b - a for a, b in pairwise(found)) == 30


def test_results_hold_plain_looking_lists() -> None:
    result = create_agent(ScriptedModel("x")).invoke({"messages": "hi"})["messages"]
    assert isinstance(result, IndexedMessages)
    assert result == list(result)
    assert type(result[1:]) is list
    assert type([*result, result[0]]) is list
