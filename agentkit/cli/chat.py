"""`agentkit chat`: a conversation with an agent in the terminal."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from agentkit.cli.conversation import ByOption, ContextOption, StoreOption, SyncOption, ThreadOption, store_words
from agentkit.cli.screen import Code, complain, one_line, out
from agentkit.cli.target import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import ToolCall

    from agentkit.cli.conversation import Conversation

__all__ = ["chat"]

_QUIT: Final = frozenset(("/quit", "/exit", "/q"))
_HELP: Final = """\
/new     begin a new thread
/retry   finish a turn that failed or was cut off
/quit    leave (or Ctrl-D)
Ctrl-C   stop the answer and leave; the next start finishes it"""


def chat(
    target: Target,
    thread: ThreadOption = None,
    store: StoreOption = None,
    context: ContextOption = None,
    by: ByOption = None,
    sync: SyncOption = False,
) -> None:
    """Talk to an agent.

    Answers are shown as they are made, with a line per running tool. A call that must be approved is asked about in
    place. Ctrl-C stops the answer and leaves; with --store, the next start of the same thread finishes it.
    """
    from agentkit.cli.conversation import opened, somebody

    name = thread or ("main" if store else None)
    with opened(target, store=store, thread=name, context=context, sync=sync, remember=True) as talk:
        again = shlex.join(["agentkit", "chat", target, *store_words(store)]) if talk.is_kept else None
        session = _Session(talk, out(), somebody(by), again)
        raise typer.Exit(session.hold(target))


@dataclass
class _Session:
    talk: Conversation
    console: Console
    by: str
    again: str | None
    """The command that goes on with a thread that is kept; the thread is to be added."""
    failures: int = field(default=0, init=False)

    def hold(self, target: str) -> Code:
        """Talk until the input ends."""
        try:
            self._welcome(target)
            for line in self._lines():
                if line in _QUIT:
                    break
                self._obey(line)
        except KeyboardInterrupt:
            self._leave("stopped; ")
            return Code.interrupted
        self._leave("")
        return Code.findings if self.failures else Code.fine

    def _welcome(self, target: str) -> None:
        where = "is kept" if self.again else "is forgotten at the end; --store sqlite:///chat.db keeps it"
        self._note(f"{target}: thread {self.talk.thread}, which {where}. /help lists the commands.")
        snapshot = self.talk.state()
        if turns := sum(getattr(one, "type", "") == "human" for one in _messages(snapshot)):
            self._note(f"goes on after {turns} message{'s' if turns > 1 else ''}")
        if snapshot.next and not snapshot.interrupts:
            self._note("the last answer was cut off; finishing it")
            self._turn(None)
        elif snapshot.interrupts:
            self._settle()

    def _leave(self, why: str) -> None:
        if self.again:
            command = f"{self.again} --thread {shlex.quote(str(self.talk.thread))}"
            self._note(f"{why}go on with: {command}")
        elif why:
            self._note("stopped")

    def _obey(self, line: str) -> None:
        import uuid

        from agentkit.cli.conversation import human

        if line == "/new":
            self.talk.thread = uuid.uuid4().hex[:8]
            self._note(f"thread {self.talk.thread}")
        elif line == "/retry":
            self._retry()
        elif line == "/help":
            self._note(_HELP)
        elif line.startswith("/"):
            self._note(f"there is no {line.split()[0]}\n{_HELP}")
        elif line:
            self._turn(human(line))

    def _retry(self) -> None:
        snapshot = self.talk.state()
        if snapshot.interrupts:
            self._settle()
        elif snapshot.next:
            self._turn(None)
        else:
            self._note("there is nothing to finish")

    def _turn(self, given: Any, resumed: Sequence[ToolCall] = ()) -> None:
        """Run until the agent has answered, asking what it asks."""
        if self._run(given, resumed):
            self._settle()
        self.console.print()

    def _run(self, given: Any, resumed: Sequence[ToolCall] = ()) -> bool:
        """Run to the end or the next pause; whether it got there."""
        from agentkit.cli.terminal import View
        from agentkit.errors import InvalidDecision

        view = View(self.console, known={str(message.id) for message in _messages(self.talk.state())})
        view.resume(resumed)
        try:
            self.talk.run(given, view.show)
        except InvalidDecision as refused:  # the question is still open
            view.close("waiting")
            complain(str(refused))
        except Exception as error:  # whatever tools and providers raise; the conversation goes on
            view.close()
            self.failures += 1
            complain(f"{one_line(error)} (/retry tries again)")
            return False
        finally:
            view.close()
        return True

    def _settle(self) -> None:
        """Ask what the run stopped for, until it has ended; say why it ended if not by an answer."""
        from langgraph.types import Command

        from agentkit import exit_of
        from agentkit.cli.asking import Asker, Later, going_on
        from agentkit.cli.report import why

        while (snapshot := self.talk.state()).interrupts:
            try:
                answers = Asker(self.console, self._read, self.by).answers(snapshot.interrupts)
            except Later:
                self._note("left open; /retry asks again, a new message withdraws the call")
                return
            if not self._run(Command(resume=answers), going_on(snapshot.interrupts, answers)):
                return
        if snapshot.next:  # stopped before or after a node that the agent was told to stop at
            self._note(f"paused before {', '.join(snapshot.next)}; /retry goes on", style="yellow")
        elif (ended := exit_of(snapshot)) and (reason := why(ended)):
            self._note(reason, style="yellow")

    def _lines(self) -> Iterator[str]:
        with suppress(ImportError):  # not on Windows
            import readline  # noqa: F401 - gives input() line editing and a history
        while True:
            try:
                line = self._read("you > ")
            except (EOFError, KeyboardInterrupt):
                if sys.stdin.isatty():
                    self.console.print()
                return
            yield line.strip()

    def _read(self, prompt: str) -> str:
        """One line; what comes from a pipe is shown as if it were typed."""
        if sys.stdin.isatty() and sys.stdout.isatty():
            return input(prompt)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        line = line.rstrip("\n")
        self.console.print(Text.assemble((prompt, "bold"), line), soft_wrap=True)
        return line

    def _note(self, text: str, style: str = "dim") -> None:
        self.console.print(Text(text, style=style), soft_wrap=True)


def _messages(snapshot: Any) -> list[Any]:
    values = snapshot.values
    return list(values.get("messages", ())) if isinstance(values, dict) else []
