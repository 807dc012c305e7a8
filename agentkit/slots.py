"""A limit on what goes on at once, which threads and event loops can share, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from threading import Lock

__all__ = ["Slots"]


class Slots:
    """So many may be taken at once. Whoever waits in async code holds no thread."""

    def __init__(self, number: int) -> None:
        """Offer this many."""
        self._free = number
        self._waiting: deque[Future[None]] = deque()
        self._lock = Lock()

    def take(self) -> None:
        """Wait for a slot, in this thread."""
        ticket = self._ticket()
        try:
            ticket.result()
        except BaseException:  # the wait was broken off from outside, e.g. by Ctrl-C
            self._give_back(ticket)
            raise

    async def atake(self) -> None:
        """Wait for a slot, in this event loop."""
        ticket = self._ticket()
        try:
            await asyncio.wrap_future(ticket)
        except BaseException:  # cancelled
            self._give_back(ticket)
            raise

    def release(self) -> None:
        """Free a slot; any thread may."""
        with self._lock:
            while self._waiting:
                ticket = self._waiting.popleft()
                if ticket.set_running_or_notify_cancel():
                    ticket.set_result(None)
                    return
            self._free += 1

    def _ticket(self) -> Future[None]:
        ticket: Future[None] = Future()
        with self._lock:
            if self._free:
                self._free -= 1
                ticket.set_result(None)
            else:
                self._waiting.append(ticket)
        return ticket

    def _give_back(self, ticket: Future[None]) -> None:
        """A wait was broken off: the slot that was granted at the same moment is not lost."""
        if not ticket.cancel() and not ticket.cancelled():
            self.release()
