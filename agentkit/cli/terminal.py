"""Show a running agent in the terminal: text as it streams, one line per tool call. Needs the extra `cli`."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from agentkit.cli.screen import printable

__all__ = ["ENGLISH", "Page", "ToolLines", "Typewriter", "View"]

ENGLISH: Final[Mapping[str, str]] = {
    "assistant": "agent",
    "done": "done",
    "failed": "failed",
    "waiting": "waits for a decision",
    "stopped": "stopped",
}
"""The texts around a conversation."""

# A line may not begin with one of these; they hang over the margin instead.
_CLOSING = frozenset("，。！？；：、）》”’…")  # noqa: RUF001 - Chinese punctuation is meant
_OPENING = frozenset("（《“‘")  # noqa: RUF001
_ZERO_WIDTH_JOINER = "\u200d"
_JOINING = frozenset((_ZERO_WIDTH_JOINER, "\ufe0f", *map(chr, range(0x1F3FB, 0x1F400))))  # also: as emoji, skin tones
_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "waiting": ("?", "cyan"), "stopped": ("-", "yellow")}


class Writer(Protocol):
    """Where the words of an agent go."""

    def begin(self, label: str) -> None:
        """Start an answer."""
        ...

    def write(self, text: str) -> None:
        """Take a piece of it."""
        ...

    def end(self) -> None:
        """Finish the line."""
        ...


@dataclass
class Page:
    """Pass text on as it comes, without a label and without line breaks of its own: for pipes."""

    console: Console
    _open: bool = False

    def begin(self, label: str) -> None:
        """Start an answer on a line of its own."""
        self.end()

    def write(self, text: str) -> None:
        """Print a piece."""
        if text:
            self.console.file.write(text)
            self.console.file.flush()
            self._open = not text.endswith("\n")

    def end(self) -> None:
        """Begin a new line, unless at the start of one."""
        if self._open:
            self.console.file.write("\n")
            self._open = False


@dataclass
class Typewriter:
    """Print text piece by piece and break lines between words, so that nothing has to be printed twice."""

    console: Console
    column: int = 0
    _word: str = ""
    _gap: str = ""
    _is_cluster: bool = False
    """Whether the word is one wide character, which others may join."""

    def begin(self, label: str) -> None:
        """Say who speaks, at the start of a line."""
        if label:
            self.console.print(Text(label, style="bold cyan"), end="")
            self.column = cell_len(label)

    def write(self, text: str) -> None:
        """Print what is complete; a word that may go on is kept back."""
        for character in text:
            if self._word.endswith(_ZERO_WIDTH_JOINER) or (self._is_cluster and character in _JOINING):
                self._word += character
                continue
            if self._is_cluster:
                self._flush_word()
            if character.isspace():
                self._flush_word()
                self._space(character)
            elif character in _OPENING:
                self._flush_word()
                self._word = character
            elif character in _CLOSING:
                self._flush_word()
                self._put(character, hang=True)
            elif unicodedata.east_asian_width(character) in "WF":
                if self._word not in _OPENING:
                    self._flush_word()
                self._word += character
                self._is_cluster = True
            else:
                self._word += printable(character)

    def end(self) -> None:
        """Print the rest and begin a new line, unless at the start of one."""
        self._flush_word()
        if self.column:
            self._newline()

    def _flush_word(self) -> None:
        if self._word:
            word, self._word, self._is_cluster = self._word, "", False
            self._put(word)

    def _space(self, character: str) -> None:
        if character == "\n":
            self._newline()
        else:
            self._gap += " "

    def _put(self, text: str, hang: bool = False) -> None:
        width = cell_len(self._gap + text)
        # Two columns stay free for a closing mark.
        if not hang and self.column and self.column + width > self.console.width - 2:
            self._newline()
        self.console.out(self._gap + text, end="", highlight=False)
        self.column += cell_len(self._gap + text)
        self._gap = ""

    def _newline(self) -> None:
        self.console.out("")
        self.column = 0
        self._gap = ""


@dataclass
class _Line:
    call: ToolCall
    state: str = "running"
    detail: str = ""


@dataclass
class ToolLines:
    """One line per tool call: a spinner while it runs, then how it ended. Without a terminal: only how it ended."""

    console: Console
    words: Mapping[str, str]
    """Texts for `done`, `failed`, `waiting` and `stopped`."""
    _lines: dict[str, _Line] = field(default_factory=dict)
    _live: Live | None = None

    def start(self, calls: Iterable[ToolCall]) -> None:
        """Show calls that begin to run."""
        self._lines |= {str(call["id"]): _Line(call) for call in calls}
        drawable = self.console.is_terminal and not self.console.is_dumb_terminal
        if self._lines and drawable and self._live is None:
            self._live = Live(console=self.console, get_renderable=self._render, refresh_per_second=12)
            self._live.start(refresh=True)

    def finish(self, message: ToolMessage) -> None:
        """Show how a call ended. A result for a call that never ran here is not shown."""
        line = self._lines.get(message.tool_call_id)
        if line is None or line.state != "running":
            return
        line.state = "failed" if message.status == "error" else "done"
        line.detail = str(message.text) if line.state == "failed" else ""
        self._ended(line)
        if all(line.state != "running" for line in self._lines.values()):
            self.close()

    def close(self, rest: str = "stopped") -> None:
        """Forget the calls; those without a result were stopped by somebody, or wait for somebody."""
        for line in self._lines.values():
            if line.state == "running":
                line.state = rest
                self._ended(line)
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._lines = {}

    def _ended(self, line: _Line) -> None:
        if self._live is None:
            self.console.print(self._row(line))

    def _render(self) -> RenderableType:
        return Group(*(self._row(line) for line in self._lines.values()))

    def _row(self, line: _Line) -> RenderableType:
        arguments = ", ".join(f"{key}={_short(value)}" for key, value in line.call["args"].items())
        what = Text(_in_one_line(f"{line.call['name']}({arguments})"), style="dim")
        if line.state == "running":
            what.truncate(self.console.width - 4, overflow="ellipsis")
            return Spinner("dots", what)
        mark, style = _MARKS[line.state]
        row = Text.assemble((f"{mark} {self.words[line.state]} ", style), what)
        if line.detail:
            row.append(_in_one_line(f": {line.detail}"), style="dim")
        row.truncate(self.console.width - 2, overflow="ellipsis")
        row.no_wrap = True
        return row


@dataclass
class View:
    """Everything one run shows. Feed it the parts of a stream, then `close` it."""

    console: Console
    words: Mapping[str, str] = field(default_factory=lambda: ENGLISH)
    known: set[str] = field(default_factory=set)
    """Ids of messages that were there before the run."""
    writer: Writer | None = None
    """Where the words go. Default: to the console, with line breaks between words."""
    _speaking: bool = False

    def __post_init__(self) -> None:
        """Set up the two kinds of lines."""
        self._label = "" if self.writer else f"{self.words['assistant']} > "
        self._writer = self.writer or Typewriter(self.console)
        self._tools = ToolLines(self.console, self.words)

    def resume(self, calls: Iterable[ToolCall]) -> None:
        """Show calls that a decision lets go on."""
        self._tools.start(calls)

    def show(self, mode: str, part: Any) -> None:
        """Show one part of a stream with `stream_mode=["messages", "updates"]`."""
        if mode == "messages":
            message, _ = part
            if isinstance(message, AIMessage) and message.text and message.id not in self.known:
                self.say(str(message.text))
            return
        if "__interrupt__" in part:
            self._tools.close("waiting")
            return
        for update in part.values():
            for message in _messages(update):
                if message.id in self.known:  # a mended history comes as a whole
                    continue
                if isinstance(message, AIMessage) and message.tool_calls:
                    self._writer.end()
                    self._speaking = False
                    self._tools.start(message.tool_calls)
                elif isinstance(message, ToolMessage):
                    self._tools.finish(message)

    def close(self, rest: str = "stopped") -> None:
        """Finish what is open, also after an error; `rest` is how calls without a result are told."""
        self._tools.close(rest)
        self._writer.end()

    def say(self, text: str) -> None:
        """Print a piece of the assistant's answer."""
        if not self._speaking:
            self._speaking = True
            self._tools.close()
            self._writer.begin(self._label)
        self._writer.write(text)


def _messages(update: Any) -> list[BaseMessage]:
    """The messages of one node's update: a mapping, or a list of them where a middleware wrote beside the node."""
    if isinstance(update, list):
        return [message for part in update for message in _messages(part)]
    messages = update.get("messages") if isinstance(update, Mapping) else None
    messages = messages if isinstance(messages, list) else [messages]
    return [message for message in messages if isinstance(message, BaseMessage)]


def _in_one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"
