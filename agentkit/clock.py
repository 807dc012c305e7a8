"""Time, as agentkit measures and spends it: one place, so that a test can put a clock of its own there."""

from __future__ import annotations

import asyncio
import time

__all__ = ["asleep", "monotonic", "sleep", "wall"]


def monotonic() -> float:
    """Seconds on a clock that never goes back."""
    return time.monotonic()


def wall() -> float:
    """Seconds since 1970."""
    return time.time()


def sleep(seconds: float) -> None:
    """Wait in this thread."""
    time.sleep(seconds)


async def asleep(seconds: float) -> None:
    """Wait without holding a thread."""
    await asyncio.sleep(seconds)
