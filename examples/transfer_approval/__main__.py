"""`python -m examples.transfer_approval`: each command is a process of its own, so every pause survives a restart."""

from __future__ import annotations

import sqlite3
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from agentkit import AgentGraph, thread
from agentkit.errors import AgentkitError
from agentkit.middleware import Decision, PendingApproval, decide, pending_approvals
from agentkit.middleware.approval_decisions import EditedAction
from examples.transfer_approval.teller import opened

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)

Folder = Annotated[
    Path,
    typer.Option("--db", metavar="FOLDER", file_okay=False, help="Where the bank and the conversations are kept."),
]
Thread = Annotated[str, typer.Option("--thread", metavar="NAME", help="The conversation.")]


class Mistake(SystemExit):
    """A user's mistake: one line, and the exit code 1."""

    def __init__(self, what: str) -> None:
        super().__init__(f"error: {what}")


class Kind(StrEnum):
    """What may be decided."""

    approve = "approve"
    edit = "edit"
    reject = "reject"


@app.command()
def ask(
    order: Annotated[str, typer.Argument(help='For instance "transfer 1500 to Ann".')],
    db: Folder = Path("transfers"),
    name: Thread = "main",
    here: Annotated[bool, typer.Option("--here", help="Decide here, if it has to be decided.")] = False,
) -> None:
    """Ask the teller for a transfer. Above 1,000 it waits until a person has decided."""
    with opened(db) as (agent, _):
        if before := pending_approvals(agent.get_state(thread(name))):
            # A new message would put an end to the run that waits, and with it to its transfer.
            raise Mistake(f"decide first about what waits in the conversation {name!r}: {_transfer(before[0])}")
        result = agent.invoke({"messages": order}, thread(name))
        while here and (waiting := pending_approvals(result)):
            print(_told(waiting[0]), flush=True)
            result = _asked(agent, name)
        _say(result)


@app.command(name="decide")
def decide_command(
    kind: Annotated[Kind, typer.Argument(help="What is decided.")],
    amount: Annotated[float | None, typer.Option(help="The amount it becomes, for edit.")] = None,
    by: Annotated[str, typer.Option(help="Who decides.")] = "the supervisor",
    db: Folder = Path("transfers"),
    name: Thread = "main",
) -> None:
    """Decide about a transfer that waits; the conversation then goes on."""
    with opened(db) as (agent, _):
        if not pending_approvals(agent.get_state(thread(name))):
            raise Mistake(f"nothing waits in the conversation {name!r}")
        _say(_decided(agent, name, kind, amount, by))


@app.command()
def show(db: Folder = Path("transfers"), name: Thread = "main") -> None:
    """Show the accounts, and what waits."""
    with opened(db) as (agent, bank):
        for account, balance in bank.balances().items():
            print(f"{account:8}{balance:>12,.2f}")
        for waiting in pending_approvals(agent.get_state(thread(name))):
            print(_told(waiting))


def _asked(agent: AgentGraph, name: str) -> Any:
    """Ask here until there is an answer that can be carried out."""
    while True:
        answer = input("approve, edit AMOUNT, or reject: ")
        try:
            word, *rest = answer.split() or [""]
            return _decided(agent, name, Kind(word), float(rest[0]) if rest else None)
        except Mistake as mistake:
            print(mistake)
        except ValueError:
            print(f"error: {answer!r} is none of these")


def _decided(agent: AgentGraph, name: str, kind: Kind, amount: float | None, by: str = "the supervisor") -> Any:
    paused = agent.get_state(thread(name))
    waiting = pending_approvals(paused)[0]
    return agent.invoke(decide(paused, {waiting.id: _decision(waiting, kind, amount, by)}), thread(name))


def _decision(waiting: PendingApproval, kind: Kind, amount: float | None, by: str) -> Decision:
    if (kind is Kind.edit) != (amount is not None):
        raise Mistake("an edit needs an amount" if kind is Kind.edit else f"{kind.value} takes no amount; edit does")
    if amount is None:
        return {"type": kind.value, "by": by}
    edited: EditedAction = {"name": waiting.name, "args": {**waiting.args, "amount": amount}}
    return {"type": "edit", "edited_action": edited, "by": by}


def _say(result: Any) -> None:
    for waiting in pending_approvals(result):
        print(_told(waiting))
        return
    print(result["messages"][-1].text)


def _told(waiting: PendingApproval) -> str:
    return f"waits for a person: {_transfer(waiting)}"


def _transfer(waiting: PendingApproval) -> str:
    return f"transfer {waiting.args['amount']:,.2f} to {waiting.args['to']}"


def main() -> None:
    """Run a command; a mistake is one line."""
    try:
        app(prog_name="python -m examples.transfer_approval")
    except (AgentkitError, OSError, sqlite3.Error) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
