"""What is in a store, as data: its threads, the steps of one, and a thread that goes on from another's step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from agentkit._compat import INTERRUPT, is_hidden_channel, waiting_nodes
from agentkit.checkpoint.saver import Saver
from agentkit.checkpoint.tables import Row, time_of
from agentkit.errors import ConfigurationError, ThreadExists, UnknownCheckpoint, UnreadableValue
from agentkit.state import INNER

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Status", "Step", "ThreadInfo", "fork", "history", "list_threads"]

Status = Literal["done", "waiting", "resumable", "running", "unreadable"]
"""Whether a thread is at its end, waits for an answer, stopped on the way (`invoke(None)` goes on), is held by a lease
that is alive, or holds a value that cannot be read."""


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """A thread."""

    id: str
    checkpoints: int
    first: datetime
    """When its oldest checkpoint was made."""
    last: datetime
    """When its newest one was made."""
    bytes: int
    status: Status


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a thread: the checkpoint that it ended with."""

    checkpoint_id: str
    at: datetime
    nodes: tuple[str, ...]
    """The nodes that ran; none where a run began or somebody changed the state from outside."""
    source: str
    """`input`, `loop`, `update` or `fork`."""
    changed: dict[str, list[Any]] = field(default_factory=dict)
    """What was written, by state field; empty lists where a run stored its steps only at its end."""
    parent_id: str | None = None


def list_threads(saver: Saver, *, limit: int | None = None) -> list[ThreadInfo]:
    """The threads of a store, those with the newest checkpoint first.

    Args:
        saver: The store.
        limit: How many at most.
    """
    tables = saver.tables
    found = saver.query(lambda at: [(name, tables.rows(at, name)) for name in tables.threads(at)])
    shared = saver.query(lambda at: {name: tables.shared_bytes(at, name) for name, _ in found})
    found.sort(key=lambda entry: entry[1][0].id, reverse=True)
    held = saver.leases.held()
    return [
        ThreadInfo(
            id=name,
            checkpoints=len(rows),
            first=time_of(rows[-1].id),
            last=time_of(rows[0].id),
            bytes=sum(row.size for row in rows) + shared[name],
            status="running" if name in held else _status(saver, name),
        )
        for name, rows in found[:limit]
    ]


def _status(saver: Saver, thread: str) -> Status:
    try:
        found = saver.get_tuple({"configurable": {"thread_id": thread}})
    except UnreadableValue:
        return "unreadable"
    if found is None:
        return "done"
    if any(channel == INTERRUPT for _, channel, _ in found.pending_writes or ()):
        return "waiting"
    return "resumable" if waiting_nodes(found.checkpoint) else "done"


def history(agent: Any, thread: str) -> list[Step]:
    """The steps of a thread, oldest first, read at a cost that grows with the thread's length.

    Args:
        agent: An agent or graph on a store, or the store.
        thread: The thread.
    """
    saver = _saver_of(agent)
    found = list(saver.list({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}))
    by_id = {row.checkpoint["id"]: row for row in found}
    return [_step(row, by_id.get(_parent(row) or "")) for row in reversed(found)]


def _step(row: CheckpointTuple, before: CheckpointTuple | None) -> Step:
    source = row.metadata.get("source", "loop")
    versions = before.checkpoint["channel_versions"] if before else {}
    changed: dict[str, list[Any]] = {
        channel: []
        for channel, version in row.checkpoint["channel_versions"].items()
        if version != versions.get(channel) and not is_hidden_channel(channel) and channel not in INNER
    }
    for _, channel, value in (before.pending_writes if before else None) or ():
        if channel in changed:
            changed[channel].append(value)
    seen, seen_before = row.checkpoint["versions_seen"], before.checkpoint["versions_seen"] if before else {}
    nodes = [node for node in seen if not node.startswith("__") and seen[node] != seen_before.get(node)]
    return Step(
        checkpoint_id=row.checkpoint["id"],
        at=time_of(row.checkpoint["id"]),
        nodes=tuple(nodes) if source == "loop" else (),
        source=source,
        changed=changed,
        parent_id=_parent(row),
    )


def _parent(row: CheckpointTuple) -> str | None:
    return row.parent_config["configurable"]["checkpoint_id"] if row.parent_config else None


def fork(agent: Any, thread: str, checkpoint_id: str, new_thread: str) -> RunnableConfig:
    """Copy a thread, up to one of its checkpoints, to a new thread that goes on by itself.

    From the newest checkpoint all is copied, a pending approval too. From an older one, what was done after it is not.

    Args:
        agent: An agent or graph on a store, or the store.
        thread: The thread.
        checkpoint_id: Its checkpoint.
        new_thread: The id of the new thread.

    Returns:
        The config of the new thread.

    Raises:
        UnknownCheckpoint: If the thread has no such checkpoint.
        ThreadExists: If the new thread exists.
    """
    saver = _saver_of(agent)

    def work(connection: Connection) -> None:
        rows = saver.tables.rows(connection, thread)
        if saver.tables.rows(connection, new_thread):
            raise ThreadExists(new_thread)
        chain = _chain(rows, checkpoint_id)
        if not chain:
            raise UnknownCheckpoint(thread, checkpoint_id)
        is_newest = checkpoint_id == next(row.id for row in rows if not row.namespace)
        over = chain if is_newest else chain[1:]
        ids = {row.id for row in over}
        inner = [row for row in rows if row.namespace and row.root in ids]
        saver.tables.copy(connection, thread, [*chain, *inner], [*over, *inner], new_thread)

    saver.query(work)
    return {"configurable": {"thread_id": new_thread}}


def _chain(rows: Sequence[Row], checkpoint_id: str) -> list[Row]:
    """A checkpoint of the whole graph and those it came from, newest first."""
    roots = {row.id: row for row in rows if not row.namespace}
    chain = []
    at: str | None = checkpoint_id
    while at is not None and at in roots:
        row = roots.pop(at)
        chain.append(row)
        at = row.parent
    return chain


def _saver_of(agent: Any) -> Saver:
    saver = getattr(agent, "checkpointer", agent)
    if not isinstance(saver, Saver):
        raise ConfigurationError(
            f"its threads are kept by {type(saver).__name__}; open the store with agentkit.checkpoint.open."
        )
    return saver
