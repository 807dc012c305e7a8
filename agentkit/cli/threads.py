"""`agentkit threads`: what a store holds, step by step; going on from any of its steps; deciding; making room."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from agentkit.cli.conversation import ByOption, ContextOption, StoreOption, SyncOption, store_words
from agentkit.cli.deciding import Verdict, asked, decision, refuse_unused, which
from agentkit.cli.screen import Code, Mistake, note, out, printable, write_json
from agentkit.cli.target import Target
from agentkit.cli.telling import age, changes, counted, question, size, table, when

if TYPE_CHECKING:
    from agentkit.checkpoint import Saver
    from agentkit.checkpoint.threads import Step
    from agentkit.cli.conversation import Conversation

__all__ = ["threads"]

threads = typer.Typer(no_args_is_help=True, help="Look after the threads (conversations) of a store.")

Store = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar="AGENTKIT_STORE",
        help="The store: sqlite:///agent.db, postgresql://user:password@host/name.",
        show_default=False,
    ),
]
Thread = Annotated[str, typer.Argument(help="The thread's id.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Write one JSON document.")]
Agent = Annotated[
    str | None,
    typer.Option("--agent", metavar="MODULE:AGENT", help="The agent that the threads are of: it knows their types."),
]

_STYLES: Final = {"done": "green", "waiting": "yellow", "resumable": "cyan", "running": "blue", "unreadable": "red"}
_SHORT: Final = 8  # characters of an id that are shown


@threads.command("list")
def list_(
    store: Store,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="How many at most.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the threads of a store, those that changed last first.

    Status: done; waiting for a decision; resumable, cut off on the way; running, held by a process; unreadable, with
    values that this version of the code cannot read.
    """
    from agentkit.checkpoint.threads import list_threads

    with _opened(store) as saver:
        found = list_threads(saver, limit=limit)
    if as_json:
        write_json([asdict(one) for one in found])
        return
    if not found:
        note("the store has no threads")
        return
    rows = table("thread", "status", "steps", "size", "first", "last")
    for one in found:
        status = Text(one.status, style=_STYLES[one.status])
        rows.add_row(
            Text(printable(one.id)), status, str(one.checkpoints), size(one.bytes), when(one.first), when(one.last)
        )
    out().print(rows)


@threads.command()
def show(thread: Thread, store: Store, agent: Agent = None, as_json: AsJson = False) -> None:
    """Show a thread step by step: its checkpoints, what ran and what changed.

    The number or the id of a step is what `agentkit threads fork` takes.
    """
    with _opened(store, agent) as saver:
        steps = _steps(saver, thread)
        waiting = _waiting(saver, thread)
    if as_json:
        write_json({"thread": thread, "steps": [asdict(step) for step in steps], "waiting": waiting})
        return
    rows = table("step", "checkpoint", "time", "ran", "changed")
    for number, step in enumerate(steps, 1):
        ran = ", ".join(step.nodes) or ("(start)" if step.source == "loop" else f"({step.source})")
        where = (str(number), f"…{step.checkpoint_id[-_SHORT:]}", f"{step.at:%H:%M:%S}")
        rows.add_row(*where, Text(printable(ran)), changes(step))
    out().print(rows)
    for value in waiting:
        note(f"waits for {question(value)}", style="yellow")


@threads.command()
def fork(
    thread: Thread,
    step: Annotated[str, typer.Argument(help="A step's number, or its checkpoint's id or the end of it.")],
    store: Store,
    name: Annotated[str | None, typer.Option("--as", metavar="ID", help="The new thread. Default: a new id.")] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="MODULE:AGENT", help="Go on at once with this agent.")
    ] = None,
    context: ContextOption = None,
    sync: SyncOption = False,
    as_json: AsJson = False,
) -> None:
    """Go on from one of a thread's steps, in a new thread; the old one stays as it is."""
    from agentkit.checkpoint.threads import fork as copied
    from agentkit.errors import ThreadExists

    new = name or f"{thread}-{uuid.uuid4().hex[:4]}"
    with _opened(store, agent) as saver:
        checkpoint = _named(_steps(saver, thread), step)
        try:
            copied(saver, thread, checkpoint.checkpoint_id, new)
        except ThreadExists as error:
            raise Mistake(str(error)) from None
    if agent is None:
        if as_json:
            write_json({"thread": new, "forked_from": {"thread": thread, "checkpoint": checkpoint.checkpoint_id}})
        else:
            typer.echo(new)
            words = ["agentkit", "chat", "MODULE:AGENT", "--thread", new, *store_words(store)]
        note(f"go on with: {shlex.join(words)}")
        return
    from agentkit.cli.conversation import opened
    from agentkit.cli.run import one_turn

    note(f"thread {new}")
    with opened(agent, store=store, thread=new, context=context, sync=sync) as talk:
        before = talk.state()
        if before.interrupts:
            raise typer.Exit(_waits(agent, talk, before, store, as_json))
        if before.next:
            raise typer.Exit(one_turn(agent, talk, None, store, as_json))
        note("the step was the last of its turn; say something to it with agentkit chat or run")


@threads.command()
def approve(
    target: Target,
    thread: Thread,
    store: StoreOption = None,
    verdict: Annotated[
        Verdict | None,
        typer.Option(
            "--decision", "-d", metavar="WHAT", help="approve, reject, edit or respond. Default: ask, for each call."
        ),
    ] = None,
    call: Annotated[
        str | None, typer.Option(metavar="ID", help="The tool call that is meant, if several wait.")
    ] = None,
    args: Annotated[str | None, typer.Option(metavar="JSON", help="For edit: all arguments of the call.")] = None,
    message: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For reject: why. For respond: the result to tell the agent.")
    ] = None,
    by: ByOption = None,
    context: ContextOption = None,
    sync: SyncOption = False,
    as_json: AsJson = False,
) -> None:
    """Decide on the calls that a thread waits for, and let it go on.

    Exit codes as of `agentkit run`.
    """
    from langgraph.types import Command

    from agentkit.cli.asking import going_on
    from agentkit.cli.conversation import opened, parsed, somebody
    from agentkit.cli.run import one_turn
    from agentkit.errors import InvalidDecision
    from agentkit.middleware import decide, pending_approvals

    if store is not None:
        _refuse_missing(store)
    with opened(target, store=store, thread=thread, context=context, sync=sync) as talk:
        snapshot = talk.state()
        if not snapshot.interrupts:
            unknown = snapshot.created_at is None
            told = "there is no thread {!r}" if unknown else "thread {!r} waits for nothing"
            raise Mistake(f"{told.format(thread)}; `agentkit threads list` shows what there is")
        refuse_unused(verdict, args, message)
        if verdict is None:
            answers = asked(snapshot.interrupts, somebody(by))
            given: Any = Command(resume=answers)
        else:
            pending = [one for one in pending_approvals(snapshot) if call in (None, one.tool_call_id, one.id)]
            if len(pending) != 1:
                raise Mistake(which(pending, [one.tool_call_id for one in pending_approvals(snapshot)], call))
            decided = decision(verdict, parsed(args, "--args"), message, somebody(by))
            answers = {pending[0].id: decided}
            try:
                given = decide(snapshot, answers)
            except InvalidDecision as error:
                raise Mistake(str(error)) from error
        raise typer.Exit(one_turn(target, talk, given, store, as_json, going_on(snapshot.interrupts, answers)))


@threads.command()
def prune(
    store: Store,
    keep_last: Annotated[int | None, typer.Option(min=1, metavar="N", help="Keep the last N steps.")] = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="TIME", help="Delete only what is older: 30d, 12h, 8w.")
    ] = None,
    thread: Annotated[str | None, typer.Option(metavar="ID", help="Only this thread. Default: all.")] = None,
    agent: Agent = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete old steps. What a pending decision, a resumable turn or a newer step needs always stays."""
    from agentkit.checkpoint import prune as pruned

    if keep_last is None and older_than is None:
        raise Mistake("say what may go: --keep-last 10, --older-than 30d, or both")
    oldest = age(older_than) if older_than else None
    with _opened(store, agent) as saver:
        graph = _graph(agent)
        if thread is not None and saver.get_tuple({"configurable": {"thread_id": thread}}) is None:
            raise _unknown(saver, thread)
        report = pruned(saver, thread=thread, keep_last=keep_last, older_than=oldest, graph=graph, dry_run=dry_run)
    if as_json:
        write_json({**asdict(report), "dry_run": dry_run})
        return
    done = "would delete" if dry_run else "deleted"
    steps, number = counted(report.checkpoints, "step"), counted(report.threads, "thread")
    kept = f"{report.kept} {'is' if report.kept == 1 else 'are'} kept"
    typer.echo(f"{done} {steps} of {number} ({size(report.bytes)}); {kept}")


# ---- stores


def _opened(store: str, agent: str | None = None) -> Saver:
    from agentkit.checkpoint import open

    _refuse_missing(store)
    saver = open(store)
    graph = _graph(agent)
    if (builder := getattr(graph, "builder", None)) is not None:
        saver.allow(builder.state_schema)
    return saver


def _refuse_missing(store: str) -> None:
    """Refuse a file that is not there: opening it would make it."""
    from agentkit.checkpoint.url import parse

    url = parse(store)
    if url.kind == "sqlite" and not Path(url.target).exists():
        raise Mistake(f"there is no store {url.shown}: {Path(url.target).resolve()} does not exist")


def _graph(agent: str | None) -> Any:
    from agentkit.cli.target import graph

    return graph(agent) if agent else None


def _steps(saver: Saver, thread: str) -> list[Step]:
    from agentkit.checkpoint.threads import history

    if steps := history(saver, thread):
        return steps
    raise _unknown(saver, thread)


def _unknown(saver: Saver, thread: str) -> Mistake:
    from agentkit.checkpoint.threads import list_threads

    known = [one.id for one in list_threads(saver, limit=_SHORT)]
    there = f"; there are {', '.join(known)}" if known else "; the store has none"
    return Mistake(f"there is no thread {thread!r}{there}")


def _waiting(saver: Saver, thread: str) -> list[Any]:
    """What the newest checkpoint waits for."""
    from langgraph.types import Interrupt

    found = saver.get_tuple({"configurable": {"thread_id": thread}})
    written = [value for _, _, value in (found.pending_writes if found else None) or ()]
    interrupts = [one for value in written if isinstance(value, Sequence) for one in value]
    return [one.value for one in interrupts if isinstance(one, Interrupt)]


def _named(steps: Sequence[Step], name: str) -> Step:
    if name.isdigit() and 0 < int(name) <= len(steps):
        return steps[int(name) - 1]
    found = [step for step in steps if len(name) > 2 and step.checkpoint_id.endswith(name.removeprefix("…"))]
    if len(found) != 1:
        raise Mistake(f"{name!r} is not the number (1 to {len(steps)}) or the checkpoint of a step of this thread")
    return found[0]


# ---- a thread that waits


def _waits(target: str, talk: Conversation, paused: Any, store: str | None, as_json: bool) -> Code:
    """Say what a thread waits for where nothing is to be run: it stands at a question."""
    from agentkit.cli.report import as_data, code_of, questions
    from agentkit.cli.run import waiting_for

    waiting = questions(paused)
    if as_json:
        old = {message.id for message in paused.values.get("messages", ())}
        write_json(as_data(talk.thread, paused.values, old, None, waiting))
    note(waiting_for(waiting, talk, store, target), style="yellow")
    return code_of(None, paused=True)
