"""The recorded tasks and conversations, and messages in the form in which they are recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call

__all__ = ["Action", "Conversation", "Task", "as_recorded", "read_conversations", "read_tasks"]

Record = dict[str, Any]

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


@dataclass(frozen=True)
class Action:
    """One ground-truth tool call and its exact result."""

    name: str
    args: Record
    result: str


@dataclass(frozen=True)
class Task:
    """One task of the benchmark."""

    number: int
    actions: list[Action]
    changed: Record
    """The rows that differ afterwards, by table and key."""


@dataclass(frozen=True)
class Conversation:
    """One recorded conversation."""

    name: str
    flaky: bool
    """Whether some results are injected failures, which no shop can give."""
    messages: list[Record]

    @property
    def answered(self) -> list[Record]:
        """The messages without a last user message that nobody answered (it says that the user is content)."""
        return self.messages[:-1] if self.messages[-1]["role"] == "user" else self.messages

    @property
    def says(self) -> list[str]:
        """What the user says, turn by turn."""
        return [message["content"] for message in self.answered if message["role"] == "user"]

    @property
    def replies(self) -> list[AIMessage]:
        """What the model says."""
        return [
            AIMessage(message["content"], tool_calls=[tool_call(**call) for call in message.get("tool_calls") or ()])
            for message in self.answered
            if message["role"] == "assistant"
        ]

    @property
    def results(self) -> Iterator[str]:
        """What the tools answered, in order."""
        return iter([message["content"] for message in self.answered if message["role"] == "tool"])

    @property
    def open_ended(self) -> bool:
        """Whether it ends with a tool result, where the recording stopped and an agent goes on."""
        return bool(self.answered[-1]["role"] == "tool")


def read_tasks(folder: Path) -> list[Task]:
    """All tasks."""
    return [
        Task(
            row["task"],
            [Action(a["name"], a["args"], r) for a, r in zip(row["actions"], row["results"], strict=True)],
            row["changed"],
        )
        for row in _rows(folder / "tasks.jsonl")
    ]


def read_conversations(folder: Path) -> list[Conversation]:
    """All recorded conversations."""
    return [
        Conversation(f"{row['label']} task {row['task']} trial {row['trial']}", row["env"] == "flaky", row["messages"])
        for row in _rows(folder / "trajectories.jsonl")
    ]


def _rows(path: Path) -> Iterator[Record]:
    with path.open() as lines:
        yield from map(json.loads, lines)


def as_recorded(messages: Iterable[BaseMessage]) -> list[Record]:
    """Messages in the form of the record, to be compared with it."""
    return [_one(message) for message in messages]


def _one(message: BaseMessage) -> Record:
    record: Record = {"role": _ROLES[message.type], "content": message.content}
    if isinstance(message, AIMessage) and message.tool_calls:
        record["tool_calls"] = [{key: call[key] for key in ("id", "name", "args")} for call in message.tool_calls]
    if isinstance(message, ToolMessage):
        record |= {"tool_call_id": message.tool_call_id, "name": message.name}
    return record
