"""`agentkit run`: one turn of an agent, for scripts and pipes."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentkit.cli.conversation import ContextOption, StoreOption, SyncOption, ThreadOption, store_words
from agentkit.cli.screen import Code, Failed, Mistake, Stop, err, note, one_line, out, write_json
from agentkit.cli.target import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import ToolCall

    from agentkit.cli.conversation import Conversation
    from agentkit.cli.terminal import View

__all__ = ["one_turn", "run", "waiting_for"]


def run(
    target: Target,
    message: Annotated[
        str | None,
        typer.Argument(
            help="What the user says; `-` reads it from stdin. Without one, a thread that was cut off is finished.",
            show_default=False,
        ),
    ] = None,
    thread: ThreadOption = None,
    store: StoreOption = None,
    state: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="The whole input as JSON, in place of a message.")
    ] = None,
    context: ContextOption = None,
    sync: SyncOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON document in place of the text.")] = False,
) -> None:
    """Run one turn of an agent and print its answer.

    The answer goes to stdout as it is made; tools, and the reason if the run ended without an answer, go to stderr.

    Exit codes: 0 answered, 1 failed, stopped by a limit or waiting for a decision, 2 a mistake in what was asked for,
    130 interrupted: the thread is kept, and the same command without a message finishes it.
    """
    from agentkit.cli.conversation import opened

    given = _given(message, state)
    with opened(target, store=store, thread=thread, context=context, sync=sync) as talk:
        raise typer.Exit(one_turn(target, talk, given, store, as_json))


def _given(message: str | None, state: str | None) -> Any:
    from agentkit.cli.conversation import human, parsed

    if message is not None and state is not None:
        raise Mistake("give a message or --input, not both")
    if message == "-":
        message = sys.stdin.read().rstrip("\n")
        if not message.strip():
            raise Mistake("stdin was empty, so there is no message")
    if message is not None and not message.strip():
        raise Mistake("the message is empty")
    return human(message) if message is not None else parsed(state, "--input")


def one_turn(
    target: str,
    talk: Conversation,
    given: Any,
    store: str | None,
    as_json: bool,
    resumed: Sequence[ToolCall] = (),
) -> Code:
    """Run, show what comes, say how it ended; how the command ends.

    Args:
        target: How the agent was named.
        talk: The opened thread.
        given: The input, a resume command, or None to finish what was cut off.
        store: The store's URL, for commands that are proposed.
        as_json: Whether the result is written as one document.
        resumed: Calls that the input lets go on.

    Raises:
        Mistake: If there is nothing to finish.
        Failed: If the run raised.
    """
    from agentkit import exit_of
    from agentkit.cli.report import as_data, code_of, questions, why
    from agentkit.cli.terminal import Page, View

    before = talk.state() if talk.thread is not None else None
    if given is None and (before is None or not before.next):
        raise Mistake("there is no message, and no thread that was cut off; write: agentkit run MODULE:AGENT 'Hello.'")
    if given is None and before is not None and before.interrupts:
        raise Mistake(f"thread {talk.thread} waits for a decision; decide with: {_approve(talk.thread, store, target)}")
    old = {message.id for message in before.values.get("messages", ())} if before and given is not None else set()
    console = out()
    writer = None if console.is_terminal else Page(console)
    view = View(err(), known=old, writer=_Silent() if as_json else writer or _wrapped(console))
    view.resume(resumed)
    try:
        values = talk.run(given, view.show)
    except KeyboardInterrupt:
        view.close()
        _say_how_to_finish(target, talk, store)
        return Code.interrupted
    except Exception as error:  # whatever tools and providers raise
        raise _stopped_by(error, view, target, talk, store) from error
    view.close()
    after = talk.state() if talk.thread is not None else values
    waiting = questions(after)
    ended = None if waiting or not isinstance(values, dict) else exit_of(after)
    if as_json:
        write_json(as_data(talk.thread, values, old, ended, waiting))
    elif isinstance(values, dict) and "messages" not in values:
        write_json(values)
    elif isinstance(values, dict) and values.get("structured_response") is not None:
        write_json(values["structured_response"])
    if waiting:
        note(waiting_for(waiting, talk, store, target), style="yellow")
    elif reason := why(ended):
        note(reason, style="yellow")
    return code_of(ended, bool(waiting))


class _Silent:
    """Takes the words of an answer that is written as JSON at the end."""

    def begin(self, label: str) -> None:
        """Nothing."""

    def write(self, text: str) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


def _wrapped(console: Any) -> Any:
    from agentkit.cli.terminal import Typewriter

    return Typewriter(console)


def _stopped_by(error: Exception, view: View, target: str, talk: Conversation, store: str | None) -> Stop:
    """How the command ends after an error of the run."""
    from agentkit.errors import InvalidDecision

    if isinstance(error, InvalidDecision):  # the question is still open
        view.close("waiting")
        return Mistake(f"{error} Decide again with: {_approve(talk.thread, store, target)}")
    view.close()
    _say_how_to_finish(target, talk, store)
    return Failed(one_line(error))


def waiting_for(waiting: list[dict[str, Any]], talk: Conversation, store: str | None, target: str) -> str:
    """What a run waits for, and the command that decides.

    Args:
        waiting: As `agentkit.cli.report.questions` returns them.
        talk: The thread.
        store: The store's URL, if one was named.
        target: How the agent was named.
    """
    return f"waits for {_asked(waiting)}; decide with: {_approve(talk.thread, store, target)}"


def _asked(waiting: list[dict[str, Any]]) -> str:
    values = [one["value"] for one in waiting]
    names = [value.get("name") if isinstance(value, dict) else None for value in values]
    return ", ".join(f"a decision on {name}" if name else "an answer" for name in names)


def _approve(thread: str | None, store: str | None, target: str) -> str:
    return shlex.join(["agentkit", "threads", "approve", target, str(thread), *store_words(store)])


def _say_how_to_finish(target: str, talk: Conversation, store: str | None) -> None:
    if talk.is_kept:
        command = shlex.join(["agentkit", "run", target, "--thread", str(talk.thread), *store_words(store)])
        note(f"the thread is kept; finish the turn with: {command}")
