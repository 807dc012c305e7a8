"""The tables of LangGraph's savers, and the SQL that reads and changes them beside the savers themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from langgraph.checkpoint.base import Checkpoint

from agentkit.checkpoint.serde import TypedSerializer
from agentkit.errors import MissingDependency

try:
    from sqlalchemy import Connection, bindparam, text
except ModuleNotFoundError as missing:
    raise MissingDependency("sqlalchemy", "sqlite", "looking into a store") from missing

__all__ = ["Row", "Tables", "time_of"]

_GREGORIAN: Final = 0x01B21DD213814000  # 100 ns from 1582, where a UUID's time begins, to 1970
_MANY: Final = 500  # SQLite binds a limited number of values


def time_of(checkpoint_id: str) -> datetime:
    """When a checkpoint was made, which its id tells."""
    number = UUID(checkpoint_id).int
    ticks = (number >> 80) << 12 | (number >> 64) & 0xFFF
    return datetime.fromtimestamp((ticks - _GREGORIAN) / 1e7, UTC)


@dataclass(frozen=True, slots=True)
class Row:
    """A checkpoint without its values."""

    namespace: str
    id: str
    parent: str | None
    metadata: dict[str, Any]
    size: int
    """Bytes, with what was written since; where values are stored once for several checkpoints, without those."""

    @property
    def root(self) -> str | None:
        """The checkpoint of the whole graph in which a sub-graph made this one."""
        parents: dict[str, str] = self.metadata.get("parents") or {}
        return parents.get("")


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one kind of store."""

    writes: str
    """The table of what tasks wrote."""
    value: str
    """Its column that holds the value."""
    blobs: str | None = None
    """The table of values that several checkpoints share, if they do not hold them themselves."""

    def values(self) -> list[tuple[str, str]]:
        """The tables that hold single values beside a `channel`, and the column they are in."""
        return [(self.writes, self.value), *([(self.blobs, "blob")] if self.blobs else [])]

    def threads(self, connection: Connection) -> list[str]:
        """The ids of all threads."""
        return [row[0] for row in connection.execute(text("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1"))]

    def rows(self, connection: Connection, thread: str) -> list[Row]:
        """The checkpoints of a thread, newest first."""
        size = "length(checkpoint) + length(metadata)" if self.blobs is None else "pg_column_size(checkpoints.*)"
        query = f"""
            SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, metadata, {size}, coalesce(written, 0)
            FROM checkpoints LEFT JOIN (
                SELECT checkpoint_ns AS ns, checkpoint_id AS id, sum(length({self.value})) AS written
                FROM {self.writes} WHERE thread_id = :thread GROUP BY 1, 2
            ) AS w ON ns = checkpoint_ns AND id = checkpoint_id
            WHERE thread_id = :thread ORDER BY checkpoint_id DESC"""
        found = connection.execute(text(query), {"thread": thread})
        return [
            Row(
                ns,
                id,
                parent,
                metadata if isinstance(metadata, dict) else json.loads(metadata or "{}"),
                own + int(more),
            )
            for ns, id, parent, metadata, own, more in found
        ]

    def shared_bytes(self, connection: Connection, thread: str) -> int:
        """The bytes of values that several checkpoints share."""
        if self.blobs is None:
            return 0
        query = f"SELECT coalesce(sum(length(blob)), 0) FROM {self.blobs} WHERE thread_id = :thread"
        return int(connection.execute(text(query), {"thread": thread}).scalar_one())

    def delete(self, connection: Connection, thread: str, rows: Sequence[Row]) -> None:
        """Delete checkpoints with what was written since, and cut the others off from them."""
        values = {"thread": thread}
        for ns, ids in _by_namespace(rows):
            given = {**values, "ns": ns, "ids": ids}
            for table in (self.writes, "checkpoints"):
                connection.execute(_among(f"DELETE FROM {table} WHERE {_OURS} AND checkpoint_id IN :ids"), given)
            connection.execute(
                _among(
                    f"UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE {_OURS} AND parent_checkpoint_id IN :ids"
                ),
                given,
            )
        if self.blobs is not None:
            unused = f"DELETE FROM {self.blobs} WHERE thread_id = :thread AND (checkpoint_ns, channel, version) NOT IN"
            connection.execute(text(f"{unused} ({_REFERENCED})"), values)

    def copy(self, connection: Connection, thread: str, rows: Sequence[Row], written: Sequence[Row], to: str) -> None:
        """Copy checkpoints to another thread.

        Args:
            connection: In a transaction.
            thread: Where they are.
            rows: The checkpoints.
            written: Those of them of which what was written since is copied too.
            to: The other thread.
        """
        for table, chosen in (("checkpoints", rows), (self.writes, written)):
            columns = _columns(connection, table)
            for ns, ids in _by_namespace(chosen):
                given = {"thread": thread, "ns": ns, "ids": ids, "to": to}
                connection.execute(_among(_copied(table, columns, f"{_OURS} AND checkpoint_id IN :ids")), given)
        if self.blobs is not None:
            copied = _REFERENCED.replace(":thread", ":to")
            where = f"thread_id = :thread AND (checkpoint_ns, channel, version) IN ({copied})"
            columns = _columns(connection, self.blobs)
            connection.execute(text(_copied(self.blobs, columns, where)), {"thread": thread, "to": to})

    def make_whole(
        self,
        connection: Connection,
        serde: TypedSerializer,
        thread: str,
        row: Row,
        checkpoint: Checkpoint,
        values: dict[str, Any],
    ) -> None:
        """Put values into a checkpoint, so that it needs no older ones."""
        given = {"thread": thread, "ns": row.namespace, "id": row.id}
        if self.blobs is None:
            kind, data = serde.dumps_typed({**checkpoint, "channel_values": {**checkpoint["channel_values"], **values}})
            query = f"UPDATE checkpoints SET type = :kind, checkpoint = :data WHERE {_OURS} AND checkpoint_id = :id"
            connection.execute(text(query), {**given, "kind": kind, "data": data})
            return
        versions = checkpoint["channel_versions"]
        for channel, value in values.items():
            kind, data = serde.dumps_typed(value)
            stored = {**given, "channel": channel, "version": versions[channel], "kind": kind, "data": data}
            connection.execute(text(_PUT_BLOB), stored)
            connection.execute(text(_MARK), stored)


_OURS: Final = "thread_id = :thread AND checkpoint_ns = :ns"
_REFERENCED: Final = """
SELECT checkpoint_ns, v.key, v.value FROM checkpoints, jsonb_each_text(checkpoint -> 'channel_versions') AS v
WHERE thread_id = :thread"""
_CUT_OFF: Final = f"UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE {_OURS} AND parent_checkpoint_id IN :ids"
_PUT_BLOB: Final = """
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
VALUES (:thread, :ns, :channel, :version, :kind, :data)
ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO UPDATE SET type = excluded.type, blob = excluded.blob"""
# LangGraph's saver marks a delta channel's whole value by `true` among the values of the checkpoint.
_MARK: Final = f"""
UPDATE checkpoints SET checkpoint = jsonb_set(checkpoint, ARRAY['channel_values', CAST(:channel AS text)], 'true')
WHERE {_OURS} AND checkpoint_id = :id"""


def _read(metadata: Any) -> dict[str, Any]:
    read: dict[str, Any] = metadata if isinstance(metadata, dict) else json.loads(metadata or "{}")
    return read


def _among(query: str) -> Any:
    return text(query).bindparams(bindparam("ids", expanding=True))


def _by_namespace(rows: Sequence[Row]) -> Iterator[tuple[str, list[str]]]:
    """Ids, in portions, with their namespace."""
    for ns in dict.fromkeys(row.namespace for row in rows):
        ids = [row.id for row in rows if row.namespace == ns]
        yield from ((ns, ids[start : start + _MANY]) for start in range(0, len(ids), _MANY))


def _columns(connection: Connection, table: str) -> list[str]:
    return list(connection.execute(text(f"SELECT * FROM {table} LIMIT 0")).keys())


def _copied(table: str, columns: Sequence[str], where: str) -> str:
    names = ", ".join(columns)
    sources = ", ".join(":to" if name == "thread_id" else name for name in columns)
    return f"INSERT INTO {table} ({names}) SELECT {sources} FROM {table} WHERE {where}"
