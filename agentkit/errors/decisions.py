"""Answers to a question for approval that cannot be taken."""

from __future__ import annotations

from agentkit.errors.building import AgentkitError

__all__ = [
    "IncompleteDecision",
    "InvalidDecision",
    "InvalidEdit",
    "NotEntitled",
    "UnknownDecision",
    "WrongCall",
]


class InvalidDecision(AgentkitError, ValueError):
    """A decision on a tool call cannot be taken. Nothing was executed, and the question is still open.

    Attributes:
        tool_call_id: The call that was asked about.
    """

    def __init__(self, tool_call_id: str | None, why: str) -> None:
        """Name the call and what is wrong with the decision."""
        self.tool_call_id = tool_call_id
        super().__init__(f"decision on tool call {tool_call_id!r}: {why}")


class UnknownDecision(InvalidDecision):
    """The decision is none of those that are allowed for the call."""


class IncompleteDecision(InvalidDecision):
    """The decision lacks a field, or a field holds something else than it should."""


class WrongCall(InvalidDecision):
    """The decision is for a call that nobody asks about: another one, or one that was already decided."""


class InvalidEdit(InvalidDecision):
    """The edited call could not be executed: there is no such tool, or its schema refuses the arguments."""


class NotEntitled(InvalidDecision):
    """Whoever decided may not, or not again: not among the approvers, or has approved already."""
