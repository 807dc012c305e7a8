"""The history in state: how messages are added to it, and how a saver stores it.

`add_messages` looks at the whole history at each write. Here an index of the ids travels with the list: a write costs
what it adds. A saver that keeps every step can store each step's messages alone (a delta) in place of the whole history
again, so that a thread's size grows with its length and not with its square.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any, Final, Literal, Self, TypeAlias, cast
from uuid import NAMESPACE_OID, uuid4, uuid5

from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    BaseMessageChunk,
    RemoveMessage,
    convert_to_messages,
    message_chunk_to_message,
)
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages

__all__ = [
    "IndexedMessages",
    "MessageStorage",
    "MessagesChannel",
    "as_objects",
    "merge_deltas",
    "merge_messages",
    "reducer_for",
]

MessageStorage: TypeAlias = Literal["auto", "incremental", "full"]

_TAIL: Final = 256  # entries; a write copies the tail, and rarely the whole index
_SHORT: Final = 16  # messages; up to here the history is stored whole, and read back at once
_SNAPSHOT_EVERY: Final = 400  # updates at most, from which the history is put together when it is read back
_SNAPSHOT_EVERY_STEPWISE: Final = 30  # the same where reading back takes one query per step


class IndexedMessages(list[AnyMessage]):
    """A history that knows where each id stands; otherwise a list, and stored and copied as one.

    Every message in it is whole (no chunk) and has an id. A change in place drops the index. What it cannot see is an
    id that is changed in a message itself.
    """

    __slots__ = ("_base", "_tail")

    def __init__(
        self,
        messages: Sequence[Any],
        base: Mapping[str | None, int] | None = None,
        tail: Mapping[str | None, int] | None = None,
    ) -> None:
        """Take the messages, and the index where it is known."""
        super().__init__(messages)
        self._base = base if base is not None else {message.id: place for place, message in enumerate(self)}
        self._tail: Mapping[str | None, int] | None = tail or {}

    @property
    def is_indexed(self) -> bool:
        """Whether nothing was changed in place since the index was made."""
        return self._tail is not None

    def with_added(self, added: Sequence[AnyMessage]) -> IndexedMessages | None:
        """The history with messages put in the place of their id's, or at the end.

        Args:
            added: Whole messages with ids, and no removals.

        Returns:
            A new history; None if the index is wrong.
        """
        if self._tail is None:
            return None
        merged: list[Any] = list(self)
        base, tail = self._base, dict(self._tail)
        for message in added:
            place = tail.get(message.id)
            if place is None:
                place = base.get(message.id)
            if place is None:
                tail[message.id] = len(merged)
                merged.append(message)
            elif merged[place].id != message.id:
                return None
            else:
                merged[place] = message
        if len(tail) > _TAIL:
            base, tail = {**base, **tail}, {}
        return IndexedMessages(merged, base, tail)

    def __copy__(self) -> IndexedMessages:
        return IndexedMessages(self, self._base, self._tail) if self._tail is not None else IndexedMessages(self)

    def __reduce__(self) -> Any:
        return list, (list(self),)


def _dropping(name: str) -> Callable[..., Any]:
    change = getattr(list, name)

    def changed(self: IndexedMessages, *args: Any, **kwargs: Any) -> Any:
        self._tail = None
        return change(self, *args, **kwargs)

    changed.__name__, changed.__doc__ = name, change.__doc__
    return changed


for _name in (
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse",
    "__setitem__", "__delitem__", "__iadd__", "__imul__",
):  # fmt: skip
    setattr(IndexedMessages, _name, _dropping(_name))


def merge_messages(left: Any, right: Any) -> Any:
    """Exactly `add_messages`, at the cost of what is added.

    Args:
        left: The history.
        right: A message, or a list of messages, in any of LangChain's forms.

    Raises:
        ValueError: If a message is to be removed that is not there.
    """
    if isinstance(left, list) and not left:
        left = IndexedMessages(())
    if isinstance(left, IndexedMessages) and left.is_indexed and right is not None:
        added = _whole(right if isinstance(right, list) else [right])
        if not any(map(_removes, map(type, added))):
            for message in added:
                if message.id is None:
                    message.id = str(uuid4())
            if (merged := left.with_added(added)) is not None:
                return merged
        right = added
    return IndexedMessages(cast(list[AnyMessage], add_messages(left, right)))


def merge_deltas(state: Any, writes: Sequence[Any]) -> Any:
    """The writes one after the other, each as `merge_messages`: the same however they are batched.

    A write is stored before it is merged. The engine gives ids to message objects before it does so. A message in
    another form (text, a tuple) is given one that follows from the history: the same each time it is read back.
    """
    if writes and not isinstance(state, IndexedMessages):
        state = _named(state, ())
    for write in writes:
        state = merge_messages(state, _named(write, state))
    return state


class MessagesChannel(DeltaChannel[Any]):
    """A channel that stores the whole history whenever it has grown by half, or by the bound.

    All the whole histories of a thread together are then about three times its length: its size grows in step with it.
    The bound keeps reading quick, and is felt in threads of thousands of messages. A short history is stored whole at
    each write, which is as cheap and can be read at once.
    """

    __slots__ = ("_at_most",)

    @property
    def snapshot_frequency(self) -> int:
        """After how many updates the whole history is stored again."""
        if not isinstance(self.value, list):  # in the schema, of which LangGraph makes channels with the same bound
            return self._at_most
        return 1 if len(self.value) <= _SHORT else min(len(self.value) // 2, self._at_most)

    @snapshot_frequency.setter
    def snapshot_frequency(self, at_most: int) -> None:
        self._at_most = at_most

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessagesChannel) and self._at_most == other._at_most

    def copy(self) -> Self:
        """A copy that starts from the same history."""
        return self._like(super().copy())

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """The channel with a stored history."""
        return self._like(super().from_checkpoint(checkpoint))

    def _like(self, new: Self) -> Self:
        new._at_most = self._at_most
        return new


def as_objects(messages: Any) -> Any:
    """Messages given as text or tuples as objects, which are stored with an id of their own; all else as it is."""
    given = messages if isinstance(messages, list) else [messages]
    if not any(isinstance(message, str | tuple) for message in given):
        return messages
    try:
        return convert_to_messages(given)
    except (ValueError, NotImplementedError, TypeError):
        return messages  # refused where it is merged, as always


def reducer_for(checkpointer: Any, storage: MessageStorage) -> Any:
    """What stands in the state schema behind the type of the messages: a reducer, or a channel that stores deltas.

    Args:
        checkpointer: The agent's; only a saver that is known here can be known to keep each step.
        storage: What the caller of `create_agent` wants.
    """
    if storage == "full" or (storage == "auto" and not _keeps_history(checkpointer)):
        return merge_messages
    return MessagesChannel(merge_deltas, list, snapshot_frequency=_snapshot_every(checkpointer))


def _keeps_history(checkpointer: Any) -> bool:
    """Whether it is a saver that stores every step: those that keep only the last one are named so.

    LangGraph's memory saver does, but shows a step with more than was stored of it; tests that compare would fail, and
    there is nothing on a disk to save.
    """
    return isinstance(checkpointer, BaseCheckpointSaver) and not any(
        kind is InMemorySaver or "shallow" in kind.__name__.lower() for kind in type(checkpointer).__mro__
    )


def _snapshot_every(checkpointer: Any) -> int:
    kind = type(checkpointer)
    stepwise = (
        not isinstance(checkpointer, BaseCheckpointSaver)
        or kind.get_delta_channel_history is BaseCheckpointSaver.get_delta_channel_history
    )
    return _SNAPSHOT_EVERY_STEPWISE if stepwise else _SNAPSHOT_EVERY


def _whole(messages: list[Any]) -> list[Any]:
    """The messages as objects, chunks made whole."""
    if all(map(_is_whole, map(type, messages))):
        return messages
    return [message_chunk_to_message(cast(BaseMessageChunk, m)) for m in convert_to_messages(messages)]


@cache
def _is_whole(kind: type) -> bool:
    """Whether objects of a class are whole messages; pydantic takes long to say so of each."""
    return issubclass(kind, BaseMessage) and not issubclass(kind, BaseMessageChunk)


@cache
def _removes(kind: type) -> bool:
    return issubclass(kind, RemoveMessage)


def _named(given: Any, history: Sequence[Any]) -> Any:
    """Messages, those that are no objects as such, with ids that follow from what stands before them."""
    messages = given if isinstance(given, list) else [given]
    if given is None or all(isinstance(message, BaseMessage) for message in messages):
        return given
    taken = {message.id for message in history}
    before = history[-1].id if history else ""
    named: list[Any] = []
    for place, message in enumerate(messages):
        if not isinstance(message, BaseMessage):
            (message,) = convert_to_messages([message])
            if message.id is None:
                text = f"{before} {place} {message.type} {message.content}"
                message.id = next(id for id in _ids(text) if id not in taken)
            taken.add(message.id)
        named.append(message)
        before = message.id
    return named


def _ids(text: str) -> Iterator[str]:
    return (str(uuid5(NAMESPACE_OID, f"{text} {number}")) for number in count())
