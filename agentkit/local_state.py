"""State as it stands in the middle of a super-step: what one stop writes, the next one of the same node sees.

Updates are applied through the state's own channels, so reducers mean the same as between super-steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final

from langchain_core.messages import BaseMessage, RemoveMessage, convert_to_messages
from langgraph.channels import BinaryOperatorAggregate, DeltaChannel, EphemeralValue, LastValue, UntrackedValue
from langgraph.channels.base import BaseChannel
from langgraph.types import Command, Overwrite

from agentkit.state import LatestField, PlainField, updates_of

__all__ = ["LocalState", "after", "can_fold", "is_plain"]

_REDUCED: Final = (BinaryOperatorAggregate, DeltaChannel)
_FOLDED: Final = (LastValue, EphemeralValue, UntrackedValue, *_REDUCED)
_REPLACED: Final = frozenset({LastValue, LatestField, PlainField, EphemeralValue, UntrackedValue})
"""Channels that take a step's one value as it is."""
_MESSAGES: Final = "messages"


def can_fold(channels: Mapping[str, BaseChannel[Any, Any, Any]]) -> bool:
    """Whether every channel is of a kind whose value can be carried from stop to stop inside a node."""
    return all(isinstance(channel, _FOLDED) for channel in channels.values())


def is_plain(result: Any) -> bool:
    """Whether a step's result is an update as such, with no state object in it that LangGraph makes one of."""
    if isinstance(result, list | tuple):
        return all(map(is_plain, result))
    if isinstance(result, Command):
        return result.graph is None and isinstance(result.update, dict | list | tuple | None)
    return result is None or isinstance(result, dict)


def after(channels: Mapping[str, BaseChannel[Any, Any, Any]], state: dict[str, Any], result: Any) -> dict[str, Any]:
    """A state without its ephemeral fields after a step: those of these channels, with the result applied."""
    written: dict[str, list[Any]] = {}
    for key, value in updates_of(result):
        if key in channels:
            written.setdefault(key, []).append(value)
    for key, values in written.items():
        channel = channels[key]
        if not isinstance(channel, _REDUCED):
            state[key] = values[-1]
            continue
        channel = channel.from_checkpoint(state[key]) if key in state else channel.copy()
        channel.update(values)
        state[key] = channel.get()
    return state


class LocalState:
    """The state that a node started with, and what was written to it since."""

    def __init__(self, channels: Mapping[str, BaseChannel[Any, Any, Any]], values: Mapping[str, Any]) -> None:
        """Start from the values that a node was given."""
        self._channels = channels
        self._given = frozenset(values)
        self._writes: dict[str, list[Any]] = {}
        self._passing = {key for key in values if isinstance(channels.get(key), EphemeralValue)}
        self.values: dict[str, Any] = dict(values)
        """The state as the next stop sees it."""

    def apply(self, result: Any) -> None:
        """Apply what a step returned; ephemeral fields live until the next step has seen them."""
        if result is None and not self._passing:
            return
        written: dict[str, list[Any]] = {}
        for key, value in updates_of(result):
            if key in self._channels:
                written.setdefault(key, []).append(_stable(key, value))
        kept = {key: value for key, value in self.values.items() if key not in self._passing}
        folded: dict[str, Any] = {}
        for key, values in written.items():  # all of it, or nothing
            channel = self._channels[key]
            if len(values) == 1 and type(channel) in _REPLACED:
                folded[key] = values[0]
            elif type(channel) is BinaryOperatorAggregate and key in kept and _are_lists(values):
                folded[key] = reduce(channel.operator, values, kept[key])
            elif (channel := self._folded(key, kept, values)).is_available():
                folded[key] = channel.get()
        for key in self._passing:
            self._writes.pop(key, None)
        for key, values in written.items():
            self._writes.setdefault(key, []).extend(values)
        self._passing = {key for key in written if isinstance(self._channels[key], EphemeralValue)}
        self.values = kept | folded

    def read(self, select: str | Sequence[str], fresh: bool = False) -> Any:
        """What the engine's own reader would give a task: one field, or those of some that have a value."""
        if isinstance(select, str):
            return self.values[select]
        return {key: self.values[key] for key in select if key in self.values}

    def writes(self) -> list[tuple[str, Any]]:
        """All that was written, as one step would write it: reducers get every value, other fields the last."""
        return [(key, value) for key, values in self._writes.items() for value in self._combined(key, values)]

    def outcome(self) -> list[tuple[str, Any]]:
        """What became of all that was written, where nobody sees how: no reducer runs again."""
        written = [key for key in self._writes if key in self.values]
        return [(key, Overwrite(self.values[key]) if self._is_reduced(key) else self.values[key]) for key in written]

    def _is_reduced(self, key: str) -> bool:
        """Whether a write would be added to what the node was given."""
        return key in self._given and isinstance(self._channels[key], _REDUCED)

    def _folded(self, key: str, state: Mapping[str, Any], values: list[Any]) -> BaseChannel[Any, Any, Any]:
        """The field's channel with the values applied."""
        channel = self._channels[key]
        channel = channel.from_checkpoint(state[key]) if key in state else channel.copy()
        channel.update(values)
        return channel

    def _combined(self, key: str, values: list[Any]) -> Sequence[Any]:
        if not isinstance(self._channels[key], _REDUCED):
            return values[-1:]
        if any(isinstance(value, Overwrite) for value in values):
            return [Overwrite(self.values[key])]  # beside an overwrite the engine ignores the step's other values
        if key == _MESSAGES and not any(isinstance(m, RemoveMessage) for value in values[1:] for m in value):
            return [[message for value in values for message in value]]
        return values


def _are_lists(values: list[Any]) -> bool:
    """Whether they are lists, of which none is an `Overwrite` in either of its forms: the usual write of a reducer."""
    return all(type(value) is list for value in values)


def _stable(key: str, value: Any) -> Any:
    """The value in a form that gives the same result when it is reduced again: messages as objects, in a list."""
    if key != _MESSAGES or isinstance(value, Overwrite):
        return value
    messages = value if isinstance(value, list) else [value]
    return messages if all(isinstance(m, BaseMessage) for m in messages) else convert_to_messages(messages)
