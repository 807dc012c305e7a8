"""Deleting old checkpoints, without breaking what a thread still needs.

Kept are always: the newest checkpoint of a thread with what was written since (a pending approval, a run that can be
resumed), what its sub-graphs stored for it, and whatever a delta channel is still put together from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import Checkpoint
from langgraph.pregel import Pregel

from agentkit._compat import DeltaSnapshot
from agentkit.checkpoint.saver import Saver
from agentkit.checkpoint.tables import Row, time_of
from agentkit.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["PruneReport", "aprune", "prune"]


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What was deleted, or would be."""

    threads: int = 0
    """Threads of which something was deleted."""
    checkpoints: int = 0
    """Checkpoints that were deleted."""
    bytes: int = 0
    """Bytes that were deleted. A file does not shrink by them; SQLite uses the room again."""
    kept: int = 0
    """Checkpoints that are left."""
    kept_for_deltas: int = 0
    """Those of them that are left only because newer ones are put together from them; `graph` spares them."""

    def __add__(self, other: PruneReport) -> PruneReport:
        """Both together."""
        return PruneReport(
            self.threads + other.threads,
            self.checkpoints + other.checkpoints,
            self.bytes + other.bytes,
            self.kept + other.kept,
            self.kept_for_deltas + other.kept_for_deltas,
        )


def prune(
    saver: Saver,
    *,
    thread: str | None = None,
    keep_last: int | None = None,
    older_than: timedelta | datetime | None = None,
    graph: Any = None,
    dry_run: bool = False,
) -> PruneReport:
    """Delete old checkpoints; each thread in one transaction. Runs may go on meanwhile.

    A checkpoint is deleted if all that is given allows it: with `keep_last=10, older_than=timedelta(days=30)` the last
    ten stay however old they are, and so does whatever is younger than a month.

    Args:
        saver: The store.
        thread: One thread; all by default.
        keep_last: How many checkpoints of a thread stay, at least 1.
        older_than: The age, or the moment, up to which checkpoints stay.
        graph: The agent or graph whose threads they are. With it, the oldest checkpoint that stays is made whole.
            Without it, nobody knows how a history that is stored step by step is put together, so those steps stay too.
        dry_run: Only tell what would be deleted.

    Raises:
        ConfigurationError: If neither `keep_last` nor `older_than` is given, or `keep_last` is less than 1.
    """
    if keep_last is None and older_than is None:
        raise ConfigurationError("prune was told nothing to keep; give keep_last, older_than or both.")
    if keep_last is not None and keep_last < 1:
        raise ConfigurationError(
            f"keep_last is {keep_last}, but a thread without its newest checkpoint is lost; at least 1."
        )
    until = datetime.now(UTC) - older_than if isinstance(older_than, timedelta) else older_than
    names = [thread] if thread is not None else saver.query(saver.tables.threads)
    reports = (_prune_one(saver, name, keep_last, until, graph, dry_run) for name in names)
    return sum(reports, PruneReport())


async def aprune(saver: Saver, **options: Any) -> PruneReport:
    """As `prune`."""
    return await saver.in_thread(partial(prune, saver, **options))


def _prune_one(
    saver: Saver, thread: str, keep_last: int | None, until: datetime | None, graph: Any, dry_run: bool
) -> PruneReport:
    rows = saver.query(lambda connection: saver.tables.rows(connection, thread))
    doomed = _doomed(rows, keep_last, until)
    history = _History(saver, thread, rows, graph)
    whole, needed = history.without(doomed)
    deleted = [row for row in rows if _key(row) in doomed - needed]
    report = PruneReport(
        threads=1 if deleted else 0,
        checkpoints=len(deleted),
        bytes=sum(row.size for row in deleted),
        kept=len(rows) - len(deleted),
        kept_for_deltas=len(needed),
    )
    if dry_run or not deleted:
        return report

    def work(connection: Connection) -> int:
        before = saver.tables.shared_bytes(connection, thread)
        for row, checkpoint, values in whole:
            saver.tables.make_whole(connection, saver.serde, thread, row, checkpoint, values)
        saver.tables.delete(connection, thread, deleted)
        return max(before - saver.tables.shared_bytes(connection, thread), 0)

    return replace(report, bytes=report.bytes + saver.query(work))


Key = tuple[str, str]
Whole = tuple[Row, Checkpoint, dict[str, Any]]
"""A checkpoint, and the values to put into it."""


def _key(row: Row) -> Key:
    return row.namespace, row.id


def _doomed(rows: Sequence[Row], keep_last: int | None, until: datetime | None) -> set[Key]:
    """The checkpoints that nothing but delta channels may still need; `rows` are sorted newest first."""
    roots = [row for row in rows if not row.namespace]
    old = {
        row.id
        for place, row in enumerate(roots)
        if place >= max(keep_last or 0, 1) and (until is None or time_of(row.id) < until)
    }
    known = {row.id for row in roots}
    newest = roots[0].id if roots else ""
    doomed = {("", id) for id in old}
    heads = {row.namespace: row.id for row in reversed(rows)}
    for row in rows:
        # A run may store what a sub-graph did before the checkpoint that it did it in.
        is_over = row.root in old or (row.root is not None and row.root not in known and row.root < newest)
        if row.namespace and is_over and not (_lives_on(row.namespace) and heads[row.namespace] == row.id):
            doomed.add(_key(row))
    return doomed


def _lives_on(namespace: str) -> bool:
    """Whether a sub-graph has a memory of its own, over all its calls; the others store under the id of a call."""
    return ":" not in namespace.rpartition("|")[2]


class _History:
    """What the delta channels of a thread are put together from."""

    def __init__(self, saver: Saver, thread: str, rows: Sequence[Row], graph: Any) -> None:
        self._saver = saver
        self._thread = thread
        self._rows = {_key(row): row for row in rows}
        self._graphs = _graphs(graph)
        self._stepwise: dict[str, set[str]] = {}
        for row in rows:
            counted = row.metadata.get("counters_since_delta_snapshot") or {}
            self._stepwise.setdefault(row.namespace, set()).update(counted)

    def without(self, doomed: set[Key]) -> tuple[list[Whole], set[Key]]:
        """What to put into which checkpoints before others are deleted, and which of those are needed all the same."""
        whole: list[Whole] = []
        needed: set[Key] = set()
        for key, row in self._rows.items():
            if key in doomed or row.parent is None or (row.namespace, row.parent) not in doomed:
                continue
            found = self._saver.get_tuple(self._config(row))
            missing = self._missing(row, found.checkpoint) if found else set()
            channels = self._channels(row.namespace)
            if found and missing and missing <= channels.keys():
                values = self._put_together(row, {name: channels[name] for name in missing})
                whole.append((row, found.checkpoint, values))
            elif missing:
                needed.update(self._ancestors(row, missing))
        return whole, needed & doomed

    def _missing(self, row: Row, checkpoint: Checkpoint) -> set[str]:
        """The delta channels that a checkpoint does not hold itself."""
        stepwise = self._stepwise.get(row.namespace, set()) | self._channels(row.namespace).keys()
        return (stepwise & checkpoint["channel_versions"].keys()) - checkpoint["channel_values"].keys()

    def _channels(self, namespace: str) -> Mapping[str, Any]:
        graph = self._graphs.get("|".join(part.partition(":")[0] for part in namespace.split("|")))
        return {} if graph is None else {n: c for n, c in graph.channels.items() if isinstance(c, DeltaChannel)}

    def _put_together(self, row: Row, channels: Mapping[str, Any]) -> dict[str, Any]:
        histories = self._saver.get_delta_channel_history(config=self._config(row), channels=list(channels))
        values = {}
        for name, channel in channels.items():
            filled = channel.from_checkpoint(histories[name].get("seed"))
            filled.replay_writes(histories[name]["writes"])
            values[name] = DeltaSnapshot(filled.get())
        return values

    def _ancestors(self, row: Row, missing: set[str]) -> Iterable[Key]:
        """The checkpoints from which the missing values are put together: back to those that hold them."""
        left = set(missing)
        parent = row.parent
        while left and parent is not None and (above := self._rows.get((row.namespace, parent))) is not None:
            yield _key(above)
            found = self._saver.get_tuple(self._config(above))
            left -= found.checkpoint["channel_values"].keys() if found else set()
            parent = above.parent

    def _config(self, row: Row) -> Any:
        return {"configurable": {"thread_id": self._thread, "checkpoint_ns": row.namespace, "checkpoint_id": row.id}}


def _graphs(graph: Any) -> dict[str, Any]:
    """A graph and its sub-graphs, by the namespaces they store in."""
    if graph is None:
        return {}
    inner = graph.get_subgraphs(recurse=True) if isinstance(graph, Pregel) else ()
    return {"": graph, **dict(inner)}
