"""From bytes back to values: of allowed classes only, as they were, or a named error; nothing is imported by name."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import ipaddress
import logging
import pathlib
import re
import uuid
import zoneinfo
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

import ormsgpack
from pydantic import BaseModel, SecretBytes, SecretStr, ValidationError

from agentkit._compat import DeltaSnapshot
from agentkit.checkpoint.allowed import Allowed
from agentkit.checkpoint.packing import FACTORIES, Code
from agentkit.errors import UnreadableValue
from agentkit.events import emit

__all__ = ["Unpacker"]


_PATHS: Final = {
    f"{module}.{name}": pathlib.Path
    for module in ("pathlib", "pathlib._local")  # where it is from Python 3.13 on
    for name in ("Path", "PosixPath", "WindowsPath")
}
_CALLED: Final[dict[str, Callable[..., Any]]] = {
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "collections.deque": collections.deque,
    "datetime.date": datetime.date,
    "datetime.time": datetime.time,
    "datetime.timedelta": datetime.timedelta,
    "datetime.timezone": datetime.timezone,
    "decimal.Decimal": decimal.Decimal,
    "pydantic.types.SecretStr": SecretStr,
    "pydantic.types.SecretBytes": SecretBytes,
    "re.compile": re.compile,
    "uuid.UUID": uuid.UUID,
    "zoneinfo.ZoneInfo": zoneinfo.ZoneInfo,
    **_PATHS,
    **{
        f"ipaddress.IPv{version}{what}": getattr(ipaddress, f"IPv{version}{what}")
        for version in (4, 6)
        for what in ("Address", "Interface", "Network")
    },
}
_MAPPINGS: Final[dict[str, Callable[[], Any]]] = {
    "dict": dict,
    "OrderedDict": collections.OrderedDict,
    "Counter": collections.Counter,
    "defaultdict": collections.defaultdict,
}
_DAMAGED: Final = "its bytes are damaged."
_KEYS: Final = ormsgpack.OPT_NON_STR_KEYS


class _Unreadable(Exception):
    """Where the value stands is not known while bytes are read."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why


@dataclasses.dataclass(slots=True)
class _Stored:
    """A value that has not been made yet."""

    code: int
    parts: Any


class Unpacker:
    """Reads what `Packer` or LangGraph's serializer wrote."""

    def __init__(self, allowed: Allowed) -> None:
        """Take the classes that may be read."""
        self._allowed = allowed

    def unpack(self, data: bytes, name: str) -> Any:
        """Read a value.

        Raises:
            UnreadableValue: If a part of it cannot be brought back as what it was; names the place, from `name` on.
        """
        try:
            return ormsgpack.unpackb(data, ext_hook=self._hook, option=_KEYS)
        except ValueError as error:  # all that a hook raises
            try:
                stored = ormsgpack.unpackb(data, ext_hook=_kept, option=_KEYS)
            except ValueError:
                raise UnreadableValue(name, "value", _DAMAGED) from error
        return self._made(stored, name)  # slowly, to find the place

    def _hook(self, code: int, data: bytes) -> Any:
        return self._revive(code, ormsgpack.unpackb(data, ext_hook=self._hook, option=_KEYS))

    def _made(self, stored: Any, place: str) -> Any:
        if isinstance(stored, dict):
            return {key: self._made(part, f"{place}[{key!r}]") for key, part in stored.items()}
        if isinstance(stored, list):
            return [self._made(part, f"{place}[{index}]") for index, part in enumerate(stored)]
        if not isinstance(stored, _Stored):
            return stored
        parts = stored.parts
        if stored.code == Code.TUPLE or not isinstance(parts, list):
            parts = self._made(parts, place)
        else:
            parts = [self._fields(part, place) for part in parts]
        try:
            return self._revive(stored.code, parts)
        except _Unreadable as error:
            raise UnreadableValue(place, error.name, error.why) from error.__cause__
        except Exception as error:
            raise UnreadableValue(place, "value", _DAMAGED) from error

    def _fields(self, stored: Any, place: str) -> Any:
        if isinstance(stored, dict):
            return {name: self._made(part, f"{place}.{name}") for name, part in stored.items()}
        return self._made(stored, place)

    def _revive(self, code: int, parts: Any) -> Any:
        revive = _REVIVE.get(code)
        if revive is None:
            raise _Unreadable("value", f"its form ({code}) is not known; a newer agentkit may have written it.")
        return revive(self._allowed, parts)


def _kept(code: int, data: bytes) -> _Stored:
    return _Stored(code, ormsgpack.unpackb(data, ext_hook=_kept, option=_KEYS))


def _class(allowed: Allowed, name: str) -> type:
    cls = allowed.get(name)
    if cls is None:
        raise _Unreadable(
            name,
            "no class of that name is among the allowed ones. Open the store with the class in `types`; if it was "
            f"renamed or moved, with aliases={{{name!r}: TheClass}}.",
        )
    return cls


def _called(allowed: Allowed, parts: Any) -> Any:
    """What LangGraph stores as a call of a class with its arguments."""
    name, arguments = f"{parts[0]}.{parts[1]}", parts[2]
    make: Callable[..., Any] = _CALLED.get(name) or _class(allowed, name)
    if dataclasses.is_dataclass(make) and isinstance(arguments, dict):
        return _filled(make, name, arguments)
    if isinstance(arguments, dict):
        return _tried(name, lambda: make(**arguments))
    if isinstance(arguments, list) and name not in ("builtins.set", "builtins.frozenset", "collections.deque"):
        if name == "langgraph.types.Send" and len(arguments) == 3:
            return _tried(name, lambda: make(*arguments[:2], timeout=arguments[2]))
        return _tried(name, lambda: make(*arguments))
    return _tried(name, lambda: make(arguments))


def _tried(name: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except Exception as error:
        raise _Unreadable(name, f"the class refuses what was stored ({type(error).__name__}).") from error


def _method(allowed: Allowed, parts: Any) -> Any:
    if parts[:2] != ["datetime", "datetime"] or parts[3] != "fromisoformat":
        raise _Unreadable(f"{parts[0]}.{parts[1]}", "only moments are read this way.")
    return datetime.datetime.fromisoformat(parts[2])


def _filled(cls: Any, name: str, stored: Mapping[str, Any]) -> Any:
    """An instance of a dataclass with its fields as they were; its constructor is not asked."""
    made = object.__new__(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    _tell_of_lost(name, stored.keys() - fields.keys())
    for field in fields.values():
        if field.name in stored:
            value = stored[field.name]
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        elif field.init:
            raise _Unreadable(name, f"its field {field.name!r} is new and has no default; give it one.")
        else:
            continue
        object.__setattr__(made, field.name, value)
    return made


def _tell_of_lost(name: str, lost: Any) -> None:
    for field in sorted(lost):
        text = f"a stored {name} has a field {field!r} that the class has no more; it is left out"
        emit("store.field_lost", text, level=logging.WARNING, stored=name, field=field)


def _fields(allowed: Allowed, parts: Any) -> Any:
    return _filled(_class(allowed, parts[0]), parts[0], parts[1])


def _model(allowed: Allowed, parts: Any) -> Any:
    name, fields, extra, were_set, private = parts
    cls: Any = _class(allowed, name)
    if fields.keys() != cls.model_fields.keys():
        _tell_of_lost(name, fields.keys() - cls.model_fields.keys())
        return _validated(cls, name, {**fields, **(extra or {})})
    return _restored(cls, fields, extra, set(were_set), private)


def _pydantic(allowed: Allowed, parts: Any) -> Any:
    """A model in LangGraph's form, as which messages are always written."""
    name, fields = f"{parts[0]}.{parts[1]}", parts[2]
    cls: Any = _class(allowed, name)
    known = cls.model_fields.keys()
    if known <= fields.keys() and getattr(cls, "lc_id", None):
        extra = {key: value for key, value in fields.items() if key not in known}
        declared = {key: fields[key] for key in known}
        return _restored(cls, declared, extra if cls.model_config.get("extra") == "allow" else None, set(fields), None)
    return _validated(cls, name, fields)


def _restored(cls: type[BaseModel], fields: Any, extra: Any, were_set: set[str], private: Any) -> Any:
    made = cls.__new__(cls)
    made.__setstate__(
        {
            "__dict__": fields,
            "__pydantic_extra__": extra,
            "__pydantic_fields_set__": were_set,
            "__pydantic_private__": private,
        }
    )
    return made


def _validated(cls: type[BaseModel], name: str, fields: dict[str, Any]) -> Any:
    try:
        return cls.model_validate(fields, by_name=True)
    except ValidationError as error:
        places = ", ".join(".".join(map(str, one["loc"])) or "itself" for one in error.errors())
        raise _Unreadable(name, f"the class has changed, and what was stored does not fit it (at {places}).") from None


def _member(allowed: Allowed, parts: Any) -> Any:
    name, member, value = parts
    cls: Any = _class(allowed, name)
    if member is None:
        return _tried(name, lambda: cls(value))
    if member not in cls.__members__:
        raise _Unreadable(name, f"the class has no member {member!r} any more.")
    return cls[member]


def _record(allowed: Allowed, parts: Any) -> Any:
    cls: Any = _class(allowed, parts[0])
    return _tried(parts[0], lambda: cls(**parts[1]))


def _mapping(allowed: Allowed, parts: Any) -> Any:
    kind, _, factory = parts[0].partition(":")
    made = _MAPPINGS[kind]()
    if factory:
        made.default_factory = FACTORIES[factory]
    for key, value in parts[1:]:
        made[key] = value
    return made


def _moment(allowed: Allowed, parts: Any) -> Any:
    return datetime.datetime.fromisoformat(parts[0]).replace(fold=parts[1], tzinfo=parts[2])


def _array(allowed: Allowed, parts: Any) -> Any:
    numpy = import_module("numpy")  # which whoever stores arrays has
    dtype, shape, order, data = parts
    return numpy.frombuffer(data, dtype=numpy.dtype(dtype)).reshape(shape, order=order).copy(order="K")


_REVIVE: Final[dict[int, Callable[[Allowed, Any], Any]]] = {
    Code.SINGLE: _called,
    Code.POSITIONAL: _called,
    Code.KEYWORDS: _called,
    Code.METHOD: _method,
    Code.PYDANTIC: _pydantic,
    Code.ARRAY: _array,
    Code.SNAPSHOT: lambda allowed, value: DeltaSnapshot(value),
    Code.FIELDS: _fields,
    Code.MODEL: _model,
    Code.MEMBER: _member,
    Code.TUPLE: lambda allowed, parts: tuple(parts),
    Code.RECORD: _record,
    Code.MAPPING: _mapping,
    Code.QUEUE: lambda allowed, parts: collections.deque(parts[0], parts[1]),
    Code.MOMENT: _moment,
    Code.INTEGER: lambda allowed, text: int(text),
    Code.TEXT: lambda allowed, data: data.decode("utf-8", "surrogatepass"),
}
