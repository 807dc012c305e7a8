"""What the processes of the crash runs do: agents with a scripted model, and tools whose effects are lines of a file.

The file stands for the world outside. Nothing takes a line back, and a process that is killed leaves whole lines only.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool
from sqlalchemy import text

from agentkit import as_tool, create_agent
from agentkit.middleware import Approval
from agentkit.testing import Request, ScriptedModel, ai, pairing_problems, tool_call
from agentkit.tools import IdempotencyKey, tool

__all__ = ["SCENARIOS", "Events", "Outside", "Scenario"]

INSERT = text("INSERT INTO payments VALUES (:trial, :what)")

Script = Sequence[Sequence[Any]]
"""For each user message, what the model says from call to call."""


@dataclass(frozen=True)
class Outside:
    """The world outside: what was done in it, and what a strict provider would have refused."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def do(self, what: str, key: str) -> None:
        self._append("effects", {"what": what, "key": key})

    def doubt(self, what: str) -> None:
        """Somebody was asked whether this effect took place."""
        self._append("doubts", what)

    def die_at(self, point: str) -> None:
        self._append("points", point)

    def refuse(self, problems: Sequence[str]) -> None:
        self._append("refused", list(problems))

    @property
    def done(self) -> list[str]:
        """The effects, in the order in which they took place."""
        return [line["what"] for line in self._lines("effects")]

    @property
    def doubts(self) -> list[str]:
        return self._lines("doubts")

    @property
    def points(self) -> list[str]:
        """Where processes were killed, as far as they chose it themselves."""
        return self._lines("points")

    @property
    def refused(self) -> list[Any]:
        return self._lines("refused")

    def has(self, key: str) -> bool:
        """Whether an effect took place under this key: what a person would look up."""
        return any(line["key"] == key for line in self._lines("effects"))

    def _append(self, name: str, value: Any) -> None:
        file = os.open(self.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, json.dumps(value).encode() + b"\n")  # one call: whole or not at all
        finally:
            os.close(file)

    def _lines(self, name: str) -> list[Any]:
        path = self.folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Events:
    """Counts what a process does, and ends it at one of these points as SIGKILL does."""

    def __init__(self, outside: Outside, end_at: int | None = None) -> None:
        self.count = 0
        self._outside = outside
        self._end_at = end_at
        self._lock = threading.Lock()

    def happen(self, what: str) -> None:
        with self._lock:
            self.count += 1
            if self.count == self._end_at:
                self._outside.die_at(what)
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, *names: str) -> None:
        """An event before and one after each call of these methods of an object."""
        for name in names:
            setattr(owner, name, self._counted(getattr(owner, name), f"{type(owner).__name__.lower()}.{name}"))

    def _counted(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.happen(f"before {name}")
            result = call(*args, **kwargs)
            self.happen(f"after {name}")
            return result

        return counted


@dataclass(frozen=True)
class Scenario:
    """A conversation and the agent that holds it."""

    messages: Sequence[str]
    script: Script
    effects: Sequence[str]
    """What must have taken place in the end, each once."""
    approved: bool = False
    inner: Script | None = None
    """The script of a sub-agent `clerk`."""

    def agent(self, outside: Outside, events: Events, saver: Any, journal: Any = None, **options: Any) -> Any:
        """The agent, its effects recorded by the middleware `journal`, if it is given."""
        tools = _tools(outside, events, journal)
        middleware = [] if journal is None else [journal]
        if self.inner is not None:
            clerk = create_agent(_model(self.inner, outside, events), tools, name="clerk", middleware=middleware)
            tools = [*tools, as_tool(clerk, description="Does what it is asked.")]
        around = [*([Approval("charge")] if self.approved else []), *middleware]
        model = _model(self.script, outside, events)
        return create_agent(model, tools, middleware=around, checkpointer=saver, **options)


def _tools(outside: Outside, events: Events, journal: Any) -> list[BaseTool]:
    pause = 0.002  # seconds around an effect, so that a kill from outside can fall here

    @tool(effect="write")
    def charge(what: str, key: Annotated[str, IdempotencyKey]) -> str:
        """Charge somebody."""
        events.happen("before the effect")
        time.sleep(pause)
        outside.do(f"charge {what}", key)
        events.happen("after the effect")
        time.sleep(pause)
        return f"charge {what}"

    @tool("charge", effect="write", transactional=True)
    def charge_here(what: str) -> str:
        """Charge somebody, in the database that also holds the record."""
        events.happen("before the effect")
        with journal.ledger.transaction() as connection:
            connection.execute(INSERT, {"trial": outside.name, "what": f"charge {what}"})
            events.happen("in the effect's transaction")
            time.sleep(pause)
            journal.ledger.record(f"charge {what}")
        events.happen("after the effect")
        return f"charge {what}"

    @tool(effect="read")
    def look(what: str) -> str:
        """Look something up."""
        events.happen("in a reading tool")
        return f"looked at {what}"

    return [charge_here if journal is not None and journal.ledger.takes_part else charge, look]


def _model(script: Script, outside: Outside, events: Events) -> ScriptedModel:
    def answer(request: Request) -> AIMessage:
        events.happen("before the model")
        if problems := pairing_problems(_history(request.messages)):
            outside.refuse(problems)
        time.sleep(0.001)
        users = sum(isinstance(message, HumanMessage) for message in request.messages)
        said = script[users - 1][request.turn]
        events.happen("after the model")
        return said if isinstance(said, AIMessage) else ai(said)

    return ScriptedModel(answer, repeat=True)


def _history(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [message for message in messages if message.type != "system"]


def _calls(turn: str, *named: tuple[str, str]) -> AIMessage:
    return ai("", *(tool_call(name, {"what": what}, f"{turn}-{what}") for name, what in named))


SCENARIOS: dict[str, Scenario] = {
    "several tools": Scenario(
        messages=["charge two", "and another"],
        script=[
            [_calls("1", ("look", "a")), _calls("1", ("charge", "b")), _calls("1", ("charge", "c")), "both charged"],
            [_calls("2", ("charge", "d")), "charged"],
        ],
        effects=["charge b", "charge c", "charge d"],
    ),
    "parallel": Scenario(
        messages=["charge them all"],
        script=[
            [
                _calls("1", ("charge", "a"), ("look", "b"), ("charge", "c"), ("charge", "d")),
                _calls("2", ("charge", "e"), ("charge", "f")),
                "all charged",
            ]
        ],
        effects=["charge a", "charge c", "charge d", "charge e", "charge f"],
    ),
    "approval": Scenario(
        messages=["charge three", "thanks"],
        script=[
            [_calls("1", ("charge", "a"), ("look", "b"), ("charge", "c")), _calls("2", ("charge", "d")), "charged"],
            ["you are welcome"],
        ],
        effects=["charge a", "charge c", "charge d"],
        approved=True,
    ),
    "sub-agent": Scenario(
        messages=["let the clerk do it"],
        script=[
            [
                ai("", tool_call("clerk", {"request": "charge two"}, "k"), tool_call("charge", {"what": "x"}, "x")),
                "the clerk has done it",
            ]
        ],
        effects=["charge a", "charge b", "charge x"],
        inner=[[_calls("i", ("charge", "a")), _calls("j", ("charge", "b"), ("look", "c")), "done"]],
    ),
}
