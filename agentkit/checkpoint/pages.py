"""Reading a long list of checkpoints page by page, so that a slow reader holds nothing between two pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, get_checkpoint_id

__all__ = ["Pages"]

_SIZE: Final = 50


class Pages:
    """Where a reader is in a list that is sorted by checkpoint id, newest first."""

    def __init__(self, before: RunnableConfig | None, limit: int | None) -> None:
        """Begin before a checkpoint; read `limit` of them, or all."""
        self.before = before
        self.size = _SIZE
        self.left = limit
        self.done = limit is not None and limit <= 0

    def take(self, page: Sequence[CheckpointTuple]) -> Sequence[CheckpointTuple]:
        """What to hand out of a page of at most `size` rows, and go on behind it."""
        whole = len(page) < self.size
        # Threads that were copied share ids: those that stand at the page's end are read again with their like.
        last = None if whole else _id(page[-1])
        taken = [row for row in page if _id(row) != last]
        if self.left is not None:
            taken = taken[: self.left]
            self.left -= len(taken)
        if whole or self.left == 0:
            self.done = True
        elif taken:
            self.before = {"configurable": {"checkpoint_id": _id(taken[-1])}}
        else:
            self.size *= 2
        return taken


def _id(row: CheckpointTuple) -> str | None:
    return get_checkpoint_id(row.config)
