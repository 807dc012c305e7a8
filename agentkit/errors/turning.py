"""What goes wrong when a message or a decision is delivered to a thread."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.errors.building import AgentkitError

__all__ = ["InvalidTurn", "UnknownInterrupt"]


class InvalidTurn(AgentkitError, ValueError):
    """What was delivered cannot be a turn: no checkpointer, no thread, no id, no input. Nothing was executed."""


class UnknownInterrupt(AgentkitError, LookupError):
    """An answer to a question that does not wait, and that was not answered here before.

    Attributes:
        interrupt_id: The question's id, as it was given.
        waiting: The ids of the questions that do wait.
    """

    def __init__(self, interrupt_id: str, waiting: Sequence[str]) -> None:
        """Name the question, and those that wait."""
        self.interrupt_id = interrupt_id
        self.waiting = tuple(waiting)
        super().__init__(
            f"no question {interrupt_id!r} waits in this thread: a new message has withdrawn it, or it was never asked "
            f"here. Waiting: {', '.join(map(repr, waiting)) or 'nothing'}. Read the open questions anew from "
            "`agent.get_state(...).interrupts`, or with `pending_approvals`. Nothing was executed."
        )
