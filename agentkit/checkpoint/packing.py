"""From values to bytes: in LangGraph's form where that brings a value back as it was, else in ours, else refused."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import ipaddress
import pathlib
import re
import sys
import uuid
import zoneinfo
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.store.base import Item
from langgraph.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy
from pydantic import BaseModel, SecretBytes, SecretStr

from agentkit._compat import DeltaSnapshot
from agentkit.checkpoint.allowed import Allowed, name_of
from agentkit.checkpoint.places import walk
from agentkit.errors import UnstorableValue

__all__ = ["FACTORIES", "Code", "Packer"]


class Code:
    """What the bytes of an extension hold. Up to 7: LangGraph's."""

    SINGLE, POSITIONAL, KEYWORDS, METHOD = 0, 1, 2, 3
    PYDANTIC, ARRAY, SNAPSHOT = 5, 6, 7
    FIELDS, MODEL, MEMBER, TUPLE, RECORD, MAPPING, QUEUE, MOMENT, INTEGER, TEXT = range(16, 26)


FACTORIES: Final[dict[str, Any]] = {kind.__name__: kind for kind in (list, dict, set, tuple, str, int, float, bool)}
"""The default factories of a defaultdict that can be stored, by name."""

_OPTIONS: Final = (
    ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
)
_NATIVE: Final = (type(None), bool, int, float, str, bytes, bytearray, memoryview)
_INT64: Final = range(-(2**63), 2**64)

Parts = tuple[int, list[Any]]


class _Refused(Exception):
    """Where the refused value stands is not known inside the packer."""


class Packer:
    """Packs one value.

    Attributes:
        is_own: Whether anything was packed in our own form, which LangGraph's serializer cannot read.
    """

    def __init__(self, allowed: Allowed) -> None:
        """Take the classes that may be stored."""
        self._allowed = allowed
        self.is_own = False
        self._is_refused = False

    def pack(self, value: Any, name: str) -> bytes:
        """Pack a value.

        Raises:
            UnstorableValue: If a part of it would not come back as what it is; names the place, from `name` on.
        """
        try:
            return self._pack(value)
        except (_Refused, RecursionError) as refused:
            for place, part in walk(value, name, self._parts):
                if why := self._why_not(part):
                    raise UnstorableValue(place, name_of(type(part)), why) from None
            raise UnstorableValue(name, name_of(type(value)), "it is nested too deep, or holds itself") from refused

    def _pack(self, value: Any) -> bytes:
        try:
            return ormsgpack.packb(value, default=self._extension, option=_OPTIONS)
        except TypeError:
            if self._is_refused:  # msgpack does not say why its hook failed
                raise _Refused from None
        # Only values that msgpack has no form for get here: keys that are no text, great integers, half characters.
        return ormsgpack.packb(self._rewritten(value), default=self._extension, option=_OPTIONS)

    def _extension(self, value: Any) -> Any:
        if _is_plain(value):
            return list(value)
        try:
            code, parts = self._taken_apart(value)
        except _Refused:
            self._is_refused = True
            raise
        self.is_own = self.is_own or code >= Code.FIELDS
        return ormsgpack.Ext(code, self._pack(parts[0] if code == Code.SNAPSHOT else parts))

    def _taken_apart(self, value: Any) -> Parts:
        if self._why_not(value):
            raise _Refused
        kind = type(value)
        if apart := _APART.get(kind):
            return apart(value)
        if numpy := _numpy(value):
            return Code.ARRAY, [value.dtype.str, list(value.shape), numpy, value.tobytes(order="A")]
        return _object(value)

    def _parts(self, value: Any) -> list[Any]:
        """What a value consists of, as far as it can be taken apart."""
        if type(value) in _NATIVE or self._why_not(value):
            return []
        return self._taken_apart(value)[1]

    def _why_not(self, value: Any) -> str:
        """Why a value cannot be stored, itself and not for its parts; empty if it can."""
        kind = type(value)
        if kind in _NATIVE or kind in (dict, list) or kind in _APART:
            return _odd(value)
        if kind in self._allowed or _numpy(value) or _is_plain(value):
            return ""
        if isinstance(value, (BaseModel, Enum, tuple)) or dataclasses.is_dataclass(value):
            return f"its class is not among the allowed ones. Open the store with types=[{kind.__name__}]."
        return "store it as plain data, or as a dataclass or pydantic model whose class is in the store's `types`."

    def _rewritten(self, value: Any) -> Any:
        kind = type(value)
        if kind is list:
            return [self._rewritten(part) for part in value]
        if kind is int and value not in _INT64:
            return self._own(Code.INTEGER, str(value))
        if kind is str and not _is_text(value):
            return self._own(Code.TEXT, value.encode("utf-8", "surrogatepass"))
        if kind is not dict:
            return value
        if all(type(key) is str and _is_text(key) for key in value):
            return {key: self._rewritten(part) for key, part in value.items()}
        return self._own(Code.MAPPING, ["dict", *([key, part] for key, part in value.items())])

    def _own(self, code: int, part: Any) -> ormsgpack.Ext:
        self.is_own = True
        return ormsgpack.Ext(code, self._pack(part))


def _is_plain(value: Any) -> bool:
    """Whether it is a list of another kind that says itself, by how it is pickled, that it is kept as a plain one."""
    return isinstance(value, list) and value.__reduce_ex__(4)[0] is list


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def _odd(value: Any) -> str:
    if type(value) is collections.defaultdict and value.default_factory is not None:
        factory = value.default_factory
        if FACTORIES.get(getattr(factory, "__name__", "")) is not factory:
            return f"its default factory cannot be stored; these can: {', '.join(FACTORIES)}."
    zone = getattr(value, "tzinfo", None)
    if zone is not None and type(zone) not in (datetime.timezone, zoneinfo.ZoneInfo):
        return f"its time zone is a {name_of(type(zone))}; use datetime.timezone or zoneinfo.ZoneInfo."
    return ""


def _numpy(value: Any) -> str:
    """The memory order of a numpy array of plain numbers or texts; empty for anything else."""
    numpy = sys.modules.get("numpy")
    if numpy is None or type(value) is not numpy.ndarray or value.dtype.hasobject or value.dtype.names:
        return ""
    return "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"


# ---- how values are taken apart: [module, name, ...] in LangGraph's forms, whatever is needed in ours


def _single(text: Callable[[Any], Any]) -> Callable[[Any], Parts]:
    return lambda value: (Code.SINGLE, [type(value).__module__, type(value).__name__, text(value)])


def _positional(arguments: Callable[[Any], list[Any]]) -> Callable[[Any], Parts]:
    return lambda value: (Code.POSITIONAL, [type(value).__module__, type(value).__name__, arguments(value)])


def _keywords(value: Any, names: Any = None) -> Parts:
    kind = type(value)
    names = names or [field.name for field in dataclasses.fields(value)]
    return Code.KEYWORDS, [kind.__module__, kind.__name__, {name: getattr(value, name) for name in names}]


def _moment(value: datetime.datetime) -> Parts:
    if value.fold or type(value.tzinfo) is zoneinfo.ZoneInfo:
        return Code.MOMENT, [value.replace(tzinfo=None, fold=0).isoformat(), value.fold, value.tzinfo]
    return Code.METHOD, ["datetime", "datetime", value.isoformat(), "fromisoformat"]


def _queue(value: collections.deque[Any]) -> Parts:
    if value.maxlen is not None:
        return Code.QUEUE, [list(value), value.maxlen]
    return Code.SINGLE, ["collections", "deque", list(value)]


def _mapping(value: dict[Any, Any]) -> Parts:
    kind = type(value).__name__
    factory = value.default_factory if isinstance(value, collections.defaultdict) else None
    name = f"{kind}:{factory.__name__}" if factory else kind
    return Code.MAPPING, [name, *([key, part] for key, part in value.items())]


def _send(value: Send) -> Parts:
    timeout = getattr(value, "timeout", None)
    return Code.POSITIONAL, ["langgraph.types", "Send", [value.node, value.arg, *([timeout] if timeout else [])]]


def _model(value: BaseModel) -> Parts:
    kind = type(value)
    extra = value.__pydantic_extra__
    if isinstance(value, BaseMessage) and kind.__qualname__ == kind.__name__:
        fields = {**value.__dict__, **(extra or {})}
        return Code.PYDANTIC, [kind.__module__, kind.__name__, fields, "model_validate_json"]
    private = value.__pydantic_private__
    return Code.MODEL, [name_of(kind), value.__dict__, extra, sorted(value.model_fields_set), private]


def _object(value: Any) -> Parts:
    """An instance of an allowed class."""
    kind = type(value)
    if isinstance(value, Enum):
        is_member = kind.__members__.get(value.name or "") is value
        return Code.MEMBER, [name_of(kind), value.name if is_member else None, None if is_member else value.value]
    if isinstance(value, BaseModel):
        return _model(value)
    if isinstance(value, tuple):
        return Code.RECORD, [name_of(kind), dict(zip(kind._fields, value, strict=True))]
    set_fields = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
    return Code.FIELDS, [name_of(kind), {name: getattr(value, name) for name in set_fields}]


_APART: Final[dict[type, Callable[[Any], Parts]]] = {
    tuple: lambda value: (Code.TUPLE, list(value)),
    DeltaSnapshot: lambda value: (Code.SNAPSHOT, [value.value]),
    datetime.datetime: _moment,
    datetime.date: _positional(lambda value: [value.year, value.month, value.day]),
    datetime.time: lambda value: _keywords(value, ("hour", "minute", "second", "microsecond", "tzinfo", "fold")),
    datetime.timedelta: _positional(lambda value: [value.days, value.seconds, value.microseconds]),
    datetime.timezone: _positional(lambda value: list(value.__getinitargs__())),
    zoneinfo.ZoneInfo: _single(lambda value: value.key),
    uuid.UUID: _single(lambda value: value.hex),
    decimal.Decimal: _single(str),
    re.Pattern: lambda value: (Code.POSITIONAL, ["re", "compile", [value.pattern, value.flags]]),
    collections.deque: _queue,
    collections.OrderedDict: _mapping,
    collections.Counter: _mapping,
    collections.defaultdict: _mapping,
    SecretStr: _single(lambda value: value.get_secret_value()),
    SecretBytes: _single(lambda value: value.get_secret_value()),
    Send: _send,
    Item: lambda value: _keywords(value, Item.__slots__),
    set: _single(list),
    frozenset: _single(list),
    **{kind: _keywords for kind in (Command, Interrupt, Overwrite, TimeoutPolicy)},
    type(pathlib.Path()): _positional(lambda value: list(value.parts)),
    **{
        getattr(ipaddress, f"IPv{version}{what}"): _single(str)
        for version in (4, 6)
        for what in ("Address", "Interface", "Network")
    },
}
