"""A decision as the options of `agentkit threads approve` say it, or as somebody at the terminal does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import typer

from agentkit.cli.screen import Mistake, note, out

__all__ = ["Verdict", "asked", "decision", "refuse_unused", "which"]


class Verdict(StrEnum):
    """A decision on a call."""

    approve = "approve"
    reject = "reject"
    edit = "edit"
    respond = "respond"


def refuse_unused(verdict: Verdict | None, args: str | None, message: str | None) -> None:
    """Refuse what this decision would not heed: whoever gives it counts on it.

    Raises:
        Mistake: If an option belongs to another decision.
    """
    if args is not None and verdict is not Verdict.edit:
        raise Mistake("--args changes a call only with --decision edit")
    if message is not None and verdict not in (Verdict.reject, Verdict.respond):
        raise Mistake("--message is told only with --decision reject or respond")


def asked(interrupts: Sequence[Any], by: str) -> dict[str, Any]:
    """The answers of whoever sits at the terminal, by question.

    Raises:
        Mistake: If nobody does.
    """
    from agentkit.cli.asking import Asker, Later

    if not sys.stdin.isatty():
        raise Mistake("nobody can be asked without a terminal; say --decision approve, reject, edit or respond")
    try:
        return Asker(out(), input, by).answers(interrupts)
    except Later:
        note("left open")
        raise typer.Exit from None


def decision(verdict: Verdict, args: Any, message: str | None, by: str) -> dict[str, Any]:
    """A decision as the options say it.

    Raises:
        Mistake: If it lacks what it needs.
    """
    decided: dict[str, Any] = {"type": verdict.value, "by": by}
    if verdict is Verdict.edit:
        if not isinstance(args, dict):
            raise Mistake("edit needs --args with all arguments of the call, as in --args '{\"amount\": 50}'")
        decided["edited_action"] = {"args": args}
    if verdict is Verdict.respond and message is None:
        raise Mistake("respond needs --message with the result to tell the agent")
    if message is not None:
        decided["message"] = message
    return decided


def which(pending: Sequence[Any], waiting: Sequence[str], call: str | None) -> str:
    """Why no one call is meant, and what to say instead."""
    if not waiting:
        return "the thread waits for an answer, not for an approval; leave --decision out to be asked"
    if call is not None and not pending:
        return f"no call {call!r} waits; waiting: {', '.join(waiting)}"
    return f"several calls wait; name one with --call: {', '.join(waiting)}"
