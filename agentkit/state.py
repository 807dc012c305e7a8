"""State schemas: how the caller's, the middlewares' and the loop's fields become one, and what plain fields may do."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import or_
from typing import Annotated, Any, Final, NotRequired, Required, get_args, get_origin, get_type_hints

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import OmitFromSchema, PrivateStateAttr
from langgraph.channels import EphemeralValue, LastValue, UntrackedValue
from langgraph.channels.base import BaseChannel
from langgraph.graph.message import add_messages
from langgraph.types import Command
from typing_extensions import TypedDict

from agentkit.errors import ConfigurationWarning, ReservedField
from agentkit.events import emit
from agentkit.messages import merge_messages

__all__ = [
    "EXIT",
    "FAILURE",
    "HANDOVER",
    "INNER",
    "POSITION",
    "SEQUENCED",
    "TALLY",
    "LatestField",
    "PlainField",
    "Schemas",
    "merge",
    "updates_of",
]

EXIT: Final = "exit"
"""Why the run ended, where that cannot be seen from its messages."""
TALLY: Final = "agentkit_tally"
"""What the loop has counted since the last user turn."""
HANDOVER: Final = "agentkit_handover"
"""Commands to a parent graph that tools of the running batch have returned."""

SEQUENCED: Final = "agentkit_sequenced"
"""The call of a sequential tool that the last step answered, whose successor is to be run. For one step."""
POSITION: Final = "agentkit_position"
"""Where a run stands on the plan, at granularity `"turn"`."""
FAILURE: Final = "agentkit_failure"
"""An exception on its way to a node that did nothing else. Never stored."""

ASKED_AGAIN: Final = "agentkit_asked_again"
"""What the replies of the last model step used that do not stand, since the loop or a wrap asked again: a list of
`Used`. A middleware that wants to know declares the field; the loop then writes it."""

INNER: Final = frozenset({TALLY, HANDOVER, SEQUENCED, POSITION, FAILURE})
"""The loop's own bookkeeping, which nobody else is shown."""


class LatestField(LastValue[Any]):
    """A field of the loop's own: the last value of a step counts. A reducer would do; this is cheaper to copy."""

    def update(self, values: Sequence[Any]) -> bool:
        """Take the step's last value."""
        if not values:
            return False
        self.value = values[-1]
        return True


def _collected(old: list[Any] | None, new: list[Any] | None) -> list[Any]:
    """Entries of parallel calls side by side; None starts anew."""
    return [] if new is None else [*(old or []), *new]


class _LoopState(TypedDict, total=False):
    exit: Annotated[dict[str, str] | None, PrivateStateAttr, LatestField]


class _InnerState(TypedDict, total=False):
    agentkit_tally: Annotated[dict[str, Any] | None, PrivateStateAttr, LatestField]
    agentkit_handover: Annotated[list[Any] | None, PrivateStateAttr, _collected]


class _SequenceState(TypedDict, total=False):
    agentkit_sequenced: Annotated[str | None, PrivateStateAttr, EphemeralValue]


class PlainField(LastValue[Any]):
    """A field without a reducer, as LangGraph's `LastValue`, except that parallel tool calls may all write it.

    Dicts are merged key by key; of other values, and of one key, the last call of the batch wins, in the model's
    order, with a warning in the log. LangGraph would end the run.
    """

    def update(self, values: Sequence[Any]) -> bool:
        """Take the step's values, in the order of the calls."""
        if len(values) < 2:
            return super().update(values)
        if all(isinstance(value, dict) for value in values):
            merged: dict[Any, Any] = {}
            for value in values:
                merged = or_(merged, value)
            values = [merged]
        elif any(value != values[-1] for value in values):
            text = f"{len(values)} parallel tool calls wrote the state field {self.key!r}; the last one's value is kept"
            emit("state.conflict", text, level=logging.WARNING, field=self.key, writes=len(values))
        return super().update(values[-1:])


class _TurnState(TypedDict, total=False):
    agentkit_position: Annotated[tuple[str, str] | None, PrivateStateAttr, LatestField]
    agentkit_failure: Annotated[Any, PrivateStateAttr, UntrackedValue]


@dataclass(frozen=True, slots=True)
class Schemas:
    """The schemas of an agent's graph."""

    state: type
    """All fields, the loop's own among them."""
    visible: type
    """What hooks see."""
    input: type
    output: type
    plain: frozenset[str]
    """Fields that take one value a step."""


def merge(
    middleware: Sequence[tuple[str, type]],
    own: type | None,
    *,
    turns: bool = False,
    sequential: bool = True,
    messages: Any = merge_messages,
) -> Schemas:
    """Merge state schemas: later middlewares win over earlier ones, the caller's own over all.

    Args:
        middleware: Name and state schema of each middleware, in list order.
        own: The caller's `state_schema`; None means LangChain's `AgentState`.
        turns: Whether nodes hold whole turns, so that a position on the plan has to be kept.
        sequential: Whether some tools' calls run one after the other. LangGraph asks every field at every step.
        messages: The reducer or channel of the history, in the place of `add_messages`; a reducer of the caller's or a
            middleware's own stays.

    Raises:
        ReservedField: If a schema declares a field that the loop keeps for itself.
    """
    sources = [*middleware, ("state_schema", own or AgentState)]
    fields: dict[str, Any] = {}
    declared: dict[str, tuple[str, Any]] = {}
    own_fields = _hints(own) if own else {}
    for name, schema in _last_of_each(sources):
        for field, annotation in _hints(schema).items():
            if field in (EXIT, *INNER):
                raise ReservedField(field, f"{schema.__name__} (of {name})")
            if field in declared and field not in own_fields:
                _warn_of_conflict(field, declared[field], (name, annotation))
            declared[field] = (name, annotation)
            fields[field] = annotation
    if _metadata(fields["messages"])[-1:] == (add_messages,):
        fields["messages"] = _with_metadata(fields["messages"], messages)
    plain = frozenset(field for field, annotation in fields.items() if _is_plain(annotation))
    fields |= {field: _shared(fields[field]) for field in plain if field != "structured_response"}
    visible = {**fields, **_hints(_LoopState)}
    kept = [_InnerState, *([_SequenceState] if sequential else []), *([_TurnState] if turns else [])]
    inner = {field: hint for schema in kept for field, hint in _hints(schema).items()}
    return Schemas(
        state=_typed("State", {**visible, **inner}),
        visible=_typed("VisibleState", visible),
        input=_typed("Input", {**_without(fields, "input"), **inner}),
        output=_typed("Output", _without(fields, "output")),
        plain=plain,
    )


def updates_of(result: Any) -> Iterator[tuple[str, Any]]:
    """The writes that a step's result stands for, in order: an update, a command, or a list of them."""
    if isinstance(result, dict | Mapping):  # a dict first: asking for a Mapping takes longer
        yield from result.items()
    elif isinstance(result, Command):
        update = result.update
        yield from update.items() if isinstance(update, Mapping) else (update or ())
    elif isinstance(result, list | tuple):
        for part in result:
            yield from updates_of(part)


def _last_of_each(sources: Sequence[tuple[str, type]]) -> Iterator[tuple[str, type]]:
    """Each schema once, at its last position."""
    last = {schema: index for index, (_, schema) in enumerate(sources)}
    return (source for index, source in enumerate(sources) if last[source[1]] == index)


def _hints(schema: type) -> dict[str, Any]:
    return get_type_hints(schema, include_extras=True)


def _typed(name: str, fields: Mapping[str, Any]) -> type:
    make: Any = TypedDict  # a schema made at run time; type checkers know only literal ones
    made: type = make(name, dict(fields))
    return made


def _without(fields: Mapping[str, Any], flag: str) -> dict[str, Any]:
    """The fields that are not marked as omitted from `input` or `output`."""
    return {
        field: annotation
        for field, annotation in fields.items()
        if not any(isinstance(meta, OmitFromSchema) and getattr(meta, flag) for meta in _metadata(annotation))
    }


def _bare(annotation: Any) -> Any:
    """The annotation without Required and NotRequired."""
    return get_args(annotation)[0] if get_origin(annotation) in (Required, NotRequired) else annotation


def _metadata(annotation: Any) -> tuple[Any, ...]:
    bare = _bare(annotation)
    return get_args(bare)[1:] if get_origin(bare) is Annotated else ()


def _shared(annotation: Any) -> Any:
    """The annotation with its channel made one that parallel tool calls may write."""
    return _with_metadata(annotation, PlainField, *_metadata(annotation))


def _with_metadata(annotation: Any, *metadata: Any) -> Any:
    """The annotation with other metadata."""
    bare = _bare(annotation)
    kind: Any = get_args(bare)[0] if get_origin(bare) is Annotated else bare
    form: Any = Annotated  # indexed at run time; type checkers know only literal arguments
    marked: Any = form[(kind, *metadata)]
    return NotRequired[marked] if get_origin(annotation) is NotRequired else marked


def _is_channel(meta: Any) -> bool:
    return isinstance(meta, BaseChannel) or (isinstance(meta, type) and issubclass(meta, BaseChannel))


def _is_plain(annotation: Any) -> bool:
    """Whether LangGraph would make a `LastValue` of it: no channel, no reducer, no managed value."""
    metadata = _metadata(annotation)
    if not metadata:
        return True
    return not callable(metadata[-1]) and not any(_is_channel(meta) for meta in metadata)


def _warn_of_conflict(field: str, first: tuple[str, Any], second: tuple[str, Any]) -> None:
    if _core(first[1]) != _core(second[1]):
        warnings.warn(
            f"{first[0]} and {second[0]} declare the state field {field!r} differently ({_core(first[1])} and "
            f"{_core(second[1])}); the latter is used. Declare it in `state_schema` to settle it.",
            ConfigurationWarning,
            stacklevel=4,
        )


def _core(annotation: Any) -> tuple[Any, Any]:
    """What makes two declarations of one field differ: its type, and its channel or reducer."""
    metadata = _metadata(annotation)
    bare = _bare(annotation)
    kind = get_args(bare)[0] if get_origin(bare) is Annotated else bare
    channels = [meta for meta in metadata if _is_channel(meta)]
    reducer = channels[0] if channels else (metadata[-1] if metadata and callable(metadata[-1]) else None)
    return _bare(kind), reducer
