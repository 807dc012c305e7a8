"""What a tool promises, beyond its schema: plain data in the tool's metadata, so that any LangChain tool can carry it.

A tool without one promises nothing, and is treated with the most care: not repeated, not reused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints
from uuid import NAMESPACE_URL, uuid5

from langchain.agents.middleware import ToolCallRequest
from langchain_core.tools import InjectedToolArg
from pydantic import BaseModel

from agentkit.errors import InvalidContract
from agentkit.transcript import last_turn

__all__ = [
    "AGENT",
    "CONTRACT",
    "Contract",
    "Effect",
    "IdempotencyKey",
    "OnError",
    "contract_of",
    "idempotency_key",
    "key_parameter",
]

CONTRACT: Final = "agentkit"
"""The key in a tool's metadata under which its contract stands."""

AGENT: Final = "agentkit_agent"
"""The key in a tool's metadata that marks an agent as a tool: it has no effect itself, its own tools have."""

Effect = Literal["read", "write"]
OnError = Literal["raise", "tell"]
_KEYS: Final = uuid5(NAMESPACE_URL, "agentkit:idempotency-key")
_SEPARATOR: Final = "\x1f"


class IdempotencyKey(InjectedToolArg):
    """Marks the parameter that is given the call's idempotency key: `key: Annotated[str, IdempotencyKey]`.

    The key is a UUID as text, the same for every execution of one call: retries, resumes, other processes. The model
    neither sees the parameter nor can it set it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a tool promises. The defaults promise nothing."""

    effect: Effect | None = None
    """`"read"`: changes nothing. `"write"`: changes something. None: unknown, and treated as a write."""
    idempotent: bool = False
    """Repeating the same call with the same idempotency key is harmless."""
    transactional: bool = False
    """The whole effect happens inside of `Ledger.transaction()`, or not at all."""
    timeout: float | None = None
    """Seconds that one execution may take; then the call is answered with an error result."""
    max_concurrency: int | None = None
    """How many executions of this tool object may go on at once in this process, in threads and event loops alike."""
    sequential: bool = False
    """The calls of one answer to such tools run one after the other, in the model's order."""
    writes: Mapping[str, str] = field(default_factory=dict)
    """State fields filled from the result, by key of the result: `{"order_id": "id"}`; a dot goes deeper
    (`"customer.id"`), `"."` alone is the whole result."""
    on_error: OnError = "raise"
    """What becomes of an exception of the tool that is no `ToolException`: `"raise"` ends the run with it, `"tell"`
    makes it an error result for the model. Pauses, cancellations and what a middleware raises are never told."""
    risk: str | None = None
    """A free label, for policies that ask before a call."""

    def __post_init__(self) -> None:
        """Refuse values that cannot be meant.

        Raises:
            InvalidContract: If one is.
        """
        for name, (fits, allowed) in _RULES.items():
            value = getattr(self, name)
            if not fits(value):
                raise InvalidContract(name, value, allowed)

    @property
    def repeatable(self) -> bool:
        """Whether a call may be executed again when it is not known what became of it."""
        return self.effect == "read" or self.idempotent

    def record(self) -> dict[str, Any]:
        """What differs from the defaults, as plain data."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["writes"] = dict(self.writes)
        return {name: value for name, value in plain.items() if value != getattr(_NOTHING, name)}


def _is_positive(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value > 0)


def _is_text_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) and text for pair in value.items() for text in pair)


_RULES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "effect": (lambda value: value in (None, *get_args(Effect)), "'read', 'write' or None"),
    "idempotent": (lambda value: isinstance(value, bool), "True or False"),
    "transactional": (lambda value: isinstance(value, bool), "True or False"),
    "timeout": (_is_positive, "a number of seconds above 0, or None"),
    "max_concurrency": (lambda v: _is_positive(v) and not isinstance(v, float), "a whole number above 0, or None"),
    "sequential": (lambda value: isinstance(value, bool), "True or False"),
    "writes": (_is_text_map, "a mapping from state fields to keys of the result, both texts"),
    "on_error": (lambda value: value in get_args(OnError), "'raise' or 'tell'"),
    "risk": (lambda value: value is None or isinstance(value, str), "a text, or None"),
}
_NOTHING: Final = Contract()
_NAMES: Final = frozenset(f.name for f in fields(Contract))


def contract_of(tool: Any) -> Contract:
    """The contract of any tool; of one that has none, a contract that promises nothing.

    Args:
        tool: A LangChain tool (MCP tools are some), or whatever a request holds in its place, None included.

    Raises:
        InvalidContract: If the tool's metadata holds something else under `"agentkit"`.
    """
    record = (getattr(tool, "metadata", None) or {}).get(CONTRACT)
    if record is None:
        return _NOTHING
    if not isinstance(record, Mapping):
        raise InvalidContract("metadata", record, "the record of a Contract", getattr(tool, "name", None))
    if unknown := record.keys() - _NAMES:
        raise InvalidContract(min(unknown), record[min(unknown)], f"one of {', '.join(sorted(_NAMES))}")
    return Contract(**record)


def idempotency_key(request: ToolCallRequest) -> str:
    """The key of a tool call: equal for every execution of the call, different for every other call.

    Made from the thread's id, the id of the message that asks for the call, the call's place and id there, and the
    tool's name. Not from the arguments: an edited call is still the same call.

    Args:
        request: The call, as a `wrap_tool_call` is given it.
    """
    call = request.tool_call
    state = request.state if isinstance(request.state, Mapping) else {}
    ai, _ = last_turn(state.get("messages") or [])
    asked = [one["id"] for one in ai.tool_calls] if ai is not None else []
    config = getattr(request.runtime, "config", None) or {}
    parts = (
        config.get("configurable", {}).get("thread_id"),
        ai.id if ai is not None else None,
        asked.index(call["id"]) if call["id"] in asked else None,
        call["id"],
        call["name"],
    )
    return str(uuid5(_KEYS, _SEPARATOR.join("" if part is None else str(part) for part in parts)))


def key_parameter(tool: Any) -> str | None:
    """The name of the parameter that takes the idempotency key, if the tool has one."""
    schema = getattr(tool, "args_schema", None)
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        for name, info in schema.model_fields.items():
            if any(_is_marker(part) for part in info.metadata):
                return name
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    hints = get_type_hints(function, include_extras=True) if function is not None else {}
    return next((name for name, hint in hints.items() if _marked(hint)), None)


def _marked(hint: Any) -> bool:
    return get_origin(hint) is not None and any(_is_marker(part) for part in get_args(hint))


def _is_marker(part: Any) -> bool:
    return part is IdempotencyKey or isinstance(part, IdempotencyKey)
