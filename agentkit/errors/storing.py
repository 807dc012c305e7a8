"""What goes wrong while threads are kept."""

from __future__ import annotations

from agentkit.errors.building import AgentkitError

__all__ = ["LeaseLost", "ThreadBusy"]


class ThreadBusy(AgentkitError, BlockingIOError):
    """Somebody else holds the thread."""

    def __init__(self, thread_id: str, owner: str) -> None:
        """Name the thread and its holder."""
        self.thread_id = thread_id
        self.owner = owner
        super().__init__(f"thread {thread_id!r} is held by {owner!r}.")


class LeaseLost(AgentkitError, PermissionError):
    """Somebody else has taken the thread over."""
