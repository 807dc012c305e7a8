"""What goes wrong between an agent and the place where its threads are kept. No message holds a password."""

from __future__ import annotations

import errno
import re
from typing import Final

from agentkit.errors.building import AgentkitError

__all__ = [
    "InvalidStoreUrl",
    "LeaseLost",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnreachable",
    "ThreadBusy",
    "ThreadExists",
    "UnknownCheckpoint",
    "UnreadableValue",
    "UnstorableValue",
]


# What stands around a state field where it is stored: a checkpoint, the input of a run.
_AROUND: Final = ("a value['channel_values']", "__start__")


def _field(path: str) -> str:
    """A path that begins with the state field."""
    for around in _AROUND:
        if found := re.fullmatch(re.escape(around) + r"\['([^']*)'\](.*)", path):
            path = "".join(found.groups())
    return path


class InvalidStoreUrl(AgentkitError, ValueError):
    """A URL does not say where a store is."""

    def __init__(self, shown: str, why: str) -> None:
        """Show the URL, as far as it can be without a password, and say what is wrong."""
        super().__init__(
            f"{shown!r} is not the URL of a store: {why}. "
            "Write sqlite:///agent.db, sqlite:////absolute/agent.db, postgresql://user:password@host/name or memory:."
        )


class StoreUnreachable(AgentkitError, ConnectionError):
    """A store does not answer, or not in time."""

    def __init__(self, store: str, why: str) -> None:
        """Name the store and what its driver said."""
        super().__init__(f"the store {store} cannot be reached: {why}")


class StoreReadOnly(AgentkitError, PermissionError):
    """A store can be read, but not written."""

    def __init__(self, store: str, why: str) -> None:
        """Name the store and what its driver said."""
        super().__init__(
            f"the store {store} cannot be written: {why}. Let this process write there, or open another store."
        )


class StoreFull(AgentkitError, OSError):
    """There is no room left for what an agent wanted to store; what was stored before is whole."""

    def __init__(self, store: str, why: str) -> None:
        """Name the store and what its driver said."""
        super().__init__(
            f"the store {store} is full: {why}. Make room, then go on with invoke(None, config); "
            "agentkit.checkpoint.prune removes old checkpoints."
        )
        self.errno = errno.ENOSPC


class UnstorableValue(AgentkitError, TypeError):
    """A value would not come back from the store as what it is, so it is not stored.

    Attributes:
        field: Where the value stands, as a path that begins with the state field.
        type_name: The type of the value.
    """

    def __init__(self, field: str, type_name: str, why: str) -> None:
        """Name the place, the type and what to do about it."""
        self.field = _field(field)
        self.type_name = type_name
        super().__init__(f"{self.field} holds a {type_name}, which cannot be stored: {why}")


class UnreadableValue(AgentkitError, ValueError):
    """A stored value cannot be brought back as what it was.

    Attributes:
        field: Where the value stands, as a path that begins with the state field.
        type_name: The class it was stored as.
    """

    def __init__(self, field: str, type_name: str, why: str) -> None:
        """Name the place, the class and what to do about it."""
        self.field = _field(field)
        self.type_name = type_name
        self._why = why
        super().__init__(f"{self.field} was stored as a {type_name}, which cannot be read: {why}")

    def within(self, field: str) -> UnreadableValue:
        """The same error, with the name of the state field in place of the path's first part."""
        first = re.split(r"[.\[]", self.field, maxsplit=1)[0]
        return UnreadableValue(field + self.field.removeprefix(first), self.type_name, self._why)


class ThreadBusy(AgentkitError, RuntimeError):
    """A thread is being worked on by somebody else.

    Attributes:
        thread_id: The thread.
        owner: Who holds its lease.
    """

    def __init__(self, thread_id: str, owner: str, until: str) -> None:
        """Name the thread, who holds it and until when."""
        self.thread_id = thread_id
        self.owner = owner
        super().__init__(f"thread {thread_id!r} is held by {owner!r} until {until}; wait, or try again after that.")


class LeaseLost(AgentkitError, RuntimeError):
    """A thread was taken over by somebody else, so what this process wants to write there is refused.

    Attributes:
        thread_id: The thread.
        epoch: The epoch under which this process wanted to write.
    """

    def __init__(self, thread_id: str, epoch: int) -> None:
        """Name the thread and the epoch."""
        self.thread_id = thread_id
        self.epoch = epoch
        super().__init__(
            f"thread {thread_id!r} was taken over after epoch {epoch}; nothing was written. "
            "Stop working on it here: whoever took it over goes on from the last checkpoint."
        )


class ThreadExists(AgentkitError, ValueError):
    """A new thread was to have the id of one that there is already.

    Attributes:
        thread_id: The id.
    """

    def __init__(self, thread_id: str) -> None:
        """Name the thread."""
        self.thread_id = thread_id
        super().__init__(f"there is a thread {thread_id!r} already; choose another id, or delete that thread first.")


class UnknownCheckpoint(AgentkitError, LookupError):
    """A thread has no such checkpoint.

    Attributes:
        checkpoint_id: The checkpoint that was asked for.
    """

    def __init__(self, thread_id: str, checkpoint_id: str) -> None:
        """Name the thread and the checkpoint."""
        self.checkpoint_id = checkpoint_id
        super().__init__(
            f"thread {thread_id!r} has no checkpoint {checkpoint_id!r}; agentkit.checkpoint.history lists those it has."
        )
