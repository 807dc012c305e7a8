"""What the savers of all stores share: both ways of calling, short reads, the fence, opening and closing."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from agentkit.checkpoint.fence import Leases, writing
from agentkit.checkpoint.pages import Pages
from agentkit.checkpoint.serde import UNPLACED, TypedSerializer
from agentkit.errors import StoreUnreachable, UnreadableValue

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from agentkit.checkpoint.tables import Tables

__all__ = ["Held", "Saver"]

T = TypeVar("T")


class Held:
    """What an open store holds: engine, threads, connections. Closed once, at the latest when nobody uses it."""

    def __init__(self, engine: Engine, threads: int, *closers: Callable[[], object]) -> None:
        """Take the engine, how many threads serve async callers, and what closes the rest."""
        self.engine = engine
        self.pid = os.getpid()
        self.threads = ThreadPoolExecutor(threads, thread_name_prefix="agentkit-checkpoint")
        self.close = weakref.finalize(
            self, _close, (partial(self.threads.shutdown, wait=True), engine.dispose, *closers)
        )


def _close(closers: Sequence[Callable[[], object]]) -> None:
    for closer in closers:
        closer()


class Saver(BaseCheckpointSaver[str]):
    """A checkpoint saver on which sync and async methods work, from any thread and any event loop.

    Use it at once, or as a context manager (`with`, `async with`) that closes it.

    Attributes:
        shown: The URL of the store, without its password.
        leases: Leases on threads; a run whose config carries an epoch writes only while it holds its thread.
    """

    shown: str
    held: Held
    leases: Leases
    serde: TypedSerializer
    tables: Tables

    @property
    def engine(self) -> Engine:
        """A SQLAlchemy engine on the same database, for what is stored beside the checkpoints."""
        return self.held.engine

    def attempt(self, work: Callable[[], T]) -> T:
        """Do work on the store; what its driver raises becomes a named error.

        Raises:
            StoreUnreachable: If the store does not answer.
            StoreReadOnly: If it cannot be written.
            StoreFull: If it has no room left.
        """
        raise NotImplementedError

    def query(self, work: Callable[[Connection], T]) -> T:
        """Do work in a transaction of the engine; raises as `attempt` does."""

        def within() -> T:
            with self.engine.begin() as connection:
                return work(connection)

        return self.attempt(within)

    def refuse_if_useless(self) -> None:
        """Raise where the store's connections cannot be used: they are closed, or belong to the process that forked."""
        if not self.held.close.alive:
            raise StoreUnreachable(self.shown, "it was closed")
        if self.held.pid != os.getpid():
            raise StoreUnreachable(self.shown, "it was opened before this process was forked; open it afterwards")

    # ---- which classes values may be of

    def allow(self, *types: Any) -> None:
        """Allow values of more classes.

        Args:
            types: Classes, or annotations that name some (a state schema, `list[Order]`); what their fields hold comes
                with them.
        """
        self.serde.allowed.add(types)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """Allow classes that LangGraph found in a graph's schemas; see LangGraph."""
        self.serde.allowed.add_names(extra_allowlist)
        return self

    # ---- what runs write; checked against the epoch in their config

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, in one transaction.

        Raises:
            LeaseLost: If the config carries an epoch that the thread no longer has.
            UnstorableValue: If a value would not come back as what it is.
        """
        work = partial(super().put, config, checkpoint, metadata, new_versions)
        with writing(config):
            return self.attempt(work)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote, in one transaction; raises as `put` does."""
        packed = [(channel, self.serde.packed(value, channel)) for channel, value in writes]
        work = partial(super().put_writes, config, packed, task_id, task_path)
        with writing(config):
            self.attempt(work)

    def delete_thread(self, thread_id: str, *, epoch: int | None = None) -> None:
        """Delete all that is stored of a thread, but for the epoch of its lease.

        Args:
            thread_id: The thread.
            epoch: Delete only while the thread's lease has this epoch.

        Raises:
            LeaseLost: If it no longer has it.
        """
        work = partial(super().delete_thread, thread_id)
        with writing({"configurable": {"thread_id": thread_id, "agentkit_epoch": epoch}}):
            self.attempt(work)

    # ---- what runs read

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint with what was written since; the newest one unless the config names another."""
        return self._read(partial(super().get_tuple, _addressed(config)), config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first. Nothing is held while the caller looks at one."""
        pages = Pages(before, limit)
        while not pages.done:
            yield from pages.take(self._page(config, filter, pages))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What a delta channel is built from; see LangGraph."""
        return self._read(partial(super().get_delta_channel_history, config=config, channels=channels), config)

    def _page(
        self, config: RunnableConfig | None, filter: dict[str, Any] | None, pages: Pages
    ) -> Sequence[CheckpointTuple]:
        rows = partial(super().list, config, filter=filter, before=pages.before, limit=pages.size)
        return self._read(lambda: [*rows()], config)

    def _read(self, work: Callable[[], T], config: RunnableConfig | None) -> T:
        try:
            return self.attempt(work)
        except UnreadableValue as error:
            raise self._placed(error, config) from error.__cause__

    def _placed(self, error: UnreadableValue, config: RunnableConfig | None) -> UnreadableValue:
        """The error with the name of the state field, which the serializer is not told."""
        from sqlalchemy import text

        if not error.field.startswith(UNPLACED):
            return error
        where, values = "", {}
        if config is not None:
            where, values = " WHERE thread_id = :thread_id", {"thread_id": str(config["configurable"]["thread_id"])}
        sources = [
            (self.tables.writes, self.tables.value),
            *([(self.tables.blobs, "blob")] if self.tables.blobs else []),
        ]
        for table, column in sources:
            with self.engine.begin() as connection:
                rows = connection.execute(text(f"SELECT channel, type, {column} FROM {table}{where}"), values)
                for channel, kind, data in rows:
                    try:
                        self.serde.loads_typed((kind, data))
                    except UnreadableValue as found:
                        return found.within(channel)
        return error

    # ---- the same for async callers

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do work in a thread of the store's own, so that the event loop goes on."""
        self.refuse_if_useless()
        return await asyncio.get_running_loop().run_in_executor(self.held.threads, work)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        return await self.in_thread(partial(self.put, config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`."""
        await self.in_thread(partial(self.put_writes, config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str, *, epoch: int | None = None) -> None:
        """As `delete_thread`."""
        await self.in_thread(partial(self.delete_thread, thread_id, epoch=epoch))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return await self.in_thread(partial(self.get_tuple, config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        pages = Pages(before, limit)
        while not pages.done:
            for row in pages.take(await self.in_thread(partial(self._page, config, filter, pages))):
                yield row

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `get_delta_channel_history`."""
        return await self.in_thread(partial(self.get_delta_channel_history, config=config, channels=channels))

    # ---- opening and closing

    def close(self) -> None:
        """Close the store's connections; nothing works on it afterwards."""
        self.held.threads.shutdown()
        self.held.close()

    async def aclose(self) -> None:
        """As `close`."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<agentkit.checkpoint.Saver on {self.shown}>"


def _addressed(config: RunnableConfig) -> RunnableConfig:
    """The config with its namespace, which users leave out, and LangGraph's SQLite saver needs to write there."""
    return {**config, "configurable": {"checkpoint_ns": "", **config["configurable"]}}
