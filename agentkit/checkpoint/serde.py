"""The serializer of agentkit's stores: typed values come back as what they were, or are refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agentkit.checkpoint.allowed import Allowed
from agentkit.checkpoint.packing import Packer
from agentkit.checkpoint.unpacking import Unpacker
from agentkit.errors import UnreadableValue

__all__ = ["UNPLACED", "Packed", "TypedSerializer"]

_OWN: Final = "agentkit"
UNPLACED: Final = "a value"
"""What a value is called in an error where nobody says which state field it is of."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A value that is packed already."""

    type: str
    data: bytes


class TypedSerializer(SerializerProtocol):
    """Packs values with a strict list of allowed classes.

    What consists of messages and plain data is written exactly as LangGraph's serializer does, so that its savers can
    read it; they refuse the rest. Both are read. Nothing is ever unpickled.
    """

    def __init__(self, types: Iterable[Any] = (), aliases: Mapping[str, type] | None = None) -> None:
        """Allow classes; see `Allowed`."""
        self.allowed = Allowed(types, aliases)
        self._unpacker = Unpacker(self.allowed)
        self._old = JsonPlusSerializer(allowed_msgpack_modules=None)

    def packed(self, value: Any, name: str = UNPLACED) -> Packed:
        """Pack a value.

        Args:
            value: Any value.
            name: What to call it in an error.

        Raises:
            UnstorableValue: If it would not come back as what it is.
        """
        if isinstance(value, Packed):
            return value
        if value is None:
            return Packed("null", b"")
        if type(value) in (bytes, bytearray):
            return Packed(type(value).__name__, bytes(value))
        packer = Packer(self.allowed)
        # LangGraph stores why a task failed; only the text of it is ever shown.
        data = packer.pack(repr(value) if isinstance(value, BaseException) else value, name)
        return Packed(_OWN if packer.is_own else "msgpack", data)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Pack a value; see `packed`."""
        packed = self.packed(obj)
        return packed.type, packed.data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read a value.

        Raises:
            UnreadableValue: If it cannot be brought back as what it was.
        """
        kind, packed = data
        if kind in ("msgpack", _OWN):
            return self._unpacker.unpack(packed, UNPLACED)
        if kind == "pickle":
            raise UnreadableValue(UNPLACED, kind, "nothing is unpickled. Store the thread again with another saver.")
        return self._old.loads_typed(data)
