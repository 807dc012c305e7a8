"""A conversation in the terminal: typed, piped or scripted."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from rich.console import Console
from rich.text import Text

from agentkit import exit_of
from agentkit.cli.terminal import View
from agentkit.middleware import Decision, PendingApproval, decide, pending_approvals
from examples.order_assistant.planner.understand import LANGUAGES
from examples.order_assistant.texts import TEXTS
from examples.order_assistant.tools import ShopContext

__all__ = ["Session"]

_ANSWERED = frozenset(("answer", "structured", "return_direct"))
_QUIT = frozenset(("/quit", "/exit", "/q"))
_DECISIONS: dict[str, Decision] = {
    **dict.fromkeys(("y", "yes", "是", "同意"), Decision(type="approve", by="staff")),
    **dict.fromkeys(("n", "no", "否", "拒绝"), Decision(type="reject", by="staff", message="The shop refused it.")),
}


@dataclass
class Session:
    """One customer's conversation with the assistant."""

    agent: CompiledStateGraph[Any, ShopContext, Any, Any]
    """Compiled with a checkpointer."""
    customer_id: str
    thread: str
    """The conversation's name; each customer has names of their own."""
    language: str
    """Of the texts around the conversation: `en` or `zh`."""
    console: Console
    runner: asyncio.Runner
    """Runs one answer at a time, so that Ctrl-C cancels it at once, however long the model takes; while the customer
    types, no event loop runs and Ctrl-C is an ordinary exception."""
    failures: int = field(default=0, init=False)
    """How many questions got an error instead of an answer."""
    waiting: PendingApproval | None = field(default=None, init=False)
    """The call that waits for the shop's consent, also after a restart."""

    @property
    def words(self) -> dict[str, str]:
        """The texts around the conversation."""
        return dict(TEXTS[self.language])

    @property
    def config(self) -> RunnableConfig:
        """The checkpointer's key: never shared by two customers."""
        return {"configurable": {"thread_id": f"{self.customer_id}/{self.thread}"}}

    def welcome(self) -> None:
        """Say how to go on, recall an earlier conversation, and finish an answer that was cut off."""
        self.note(self.words["hint"])
        snapshot = self.runner.run(self.agent.aget_state(self.config))
        turns = sum(message.type == "human" for message in snapshot.values.get("messages", ()))
        if turns:
            self.note(self.words["continued"].format(turns=turns))
        self.console.print()
        if pending_approvals(snapshot):
            self.runner.run(self._settle())
        elif snapshot.tasks:
            self.note(self.words["unfinished"])
            self.runner.run(self._run(None))

    def chat(self) -> None:
        """Answer what is typed or piped in until it ends."""
        for line in self._lines():
            if line in _QUIT:
                return
            if line == "/new":
                self.thread, self.waiting = uuid.uuid4().hex[:6], None
                self.note(self.words["new"].format(thread=self.thread) + "\n")
            elif line == "/help":
                self.note(f"{LANGUAGES[self.language].say['help']}\n{self.words['commands']}\n")
            elif line.startswith("/"):
                self.note(self.words["unknown_command"].format(command=line) + "\n")
            elif line:
                self.ask(line)

    def play(self, lines: tuple[str, ...]) -> None:
        """Ask fixed questions and show them as if they were typed."""
        self.console.print()
        for line in lines:
            self._echo(line)
            self.ask(line)

    def ask(self, text: str) -> None:
        """Send one message and show the answer as it comes; while a call waits, a yes or no decides on it."""
        decision = _DECISIONS.get(text.lower()) if self.waiting else None
        if decision is None:
            self.runner.run(self._run({"messages": [{"role": "user", "content": text}]}))
        else:
            self.runner.run(self._decide(decision))

    def note(self, text: str, style: str = "dim") -> None:
        """Print something that is not part of the conversation."""
        self.console.print(Text(text, style=style))

    async def _decide(self, decision: Decision) -> None:
        assert self.waiting is not None
        one = self.waiting
        command = decide(await self.agent.aget_state(self.config), {one.id: decision})
        await self._run(command, (ToolCall(name=one.name, args=one.args, id=one.tool_call_id),))

    async def _run(self, messages: Any, resumed: Sequence[ToolCall] = ()) -> None:
        before = (await self.agent.aget_state(self.config)).values.get("messages", ())
        view = View(self.console, self.words, {message.id for message in before})
        view.resume(resumed)
        context = ShopContext(self.customer_id)
        try:
            async for mode, part in self.agent.astream(
                messages, self.config, context=context, stream_mode=["messages", "updates"]
            ):
                view.show(mode, part)
            view.close()
            await self._settle()
        except Exception as error:  # whatever a provider's client raises; the conversation goes on
            view.close()
            self.failures += 1
            self.note(self.words["error"].format(error=_one_line(error)), style="red")
        finally:
            view.close()
        self.console.print()

    async def _settle(self) -> None:
        """Say what the run stopped for: a decision, or a reason other than an answer."""
        snapshot = await self.agent.aget_state(self.config)
        self.waiting = next(iter(pending_approvals(snapshot)), None)
        if self.waiting:
            self.note(self.words["approve"], style="cyan")
        ended = exit_of(snapshot)
        if ended is not None and ended.reason not in _ANSWERED:
            reason = self.words.get(ended.reason, ended.reason)
            self.note(self.words["ended"].format(reason=reason, detail=ended.detail), style="yellow")

    def _lines(self) -> Iterator[str]:
        typed = sys.stdin.isatty()
        if typed:
            with suppress(ImportError):  # not on Windows
                import readline  # noqa: F401 - gives input() line editing and a history
        while True:
            try:
                line = input(self._prompt) if typed else _piped_line()
            except (EOFError, KeyboardInterrupt):
                if typed:
                    self.console.print()
                return
            if not typed and line.strip():
                self._echo(line.strip())
            yield line.strip()

    @property
    def _prompt(self) -> str:
        return f"{self.words['staff' if self.waiting else 'you']} > "

    def _echo(self, line: str) -> None:
        self.console.print(Text.assemble((self._prompt, "bold"), line))


def _piped_line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
