"""Recorded conversations, walked through the rules of `Gates` as the loop would walk them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from agentkit.middleware import Rule, Standing
from agentkit.middleware import gate_counts as counting

CHARACTERS_PER_TOKEN = 4
READING = ("find_", "get_", "list_", "search_", "calculate", "think", "transfer_")
"""How the names of tools begin that change nothing; every other tool writes."""


@dataclass(frozen=True)
class Conversation:
    """One recorded conversation."""

    label: str
    env: str
    solved: bool
    messages: tuple[AnyMessage, ...]

    def tokens(self, fixed: int) -> list[int]:
        """Estimated tokens of each model call, prompt and answer: length of the text over four.

        Args:
            fixed: Characters that every prompt begins with, instructions and tool schemas.
        """
        spent, so_far = [], fixed
        for message in self.messages:
            length = _length(message)
            if isinstance(message, AIMessage):
                spent.append((so_far + length) // CHARACTERS_PER_TOKEN)
            so_far += length
        return spent


@dataclass(frozen=True)
class Firing:
    """Where a rule would have ended a conversation."""

    calls_made: int
    """Model calls that had been made by then; the rest would not have happened."""


def read(path: Path) -> list[Conversation]:
    """The conversations of a file, one JSON object a line, as `tau_retail/README.md` describes them."""
    return [_conversation(json.loads(line)) for line in path.read_text().splitlines() if line.strip()]


def fixed_part(folder: Path) -> int:
    """Characters of the instructions and tool schemas that stand beside the conversations, if they do."""
    return sum(len(path.read_text()) for name in ("policy.md", "tools.json") if (path := folder / name).exists())


def fires(rule: Rule, conversation: Conversation, *, whole: bool = False) -> Firing | None:
    """Where the rule would have ended the conversation, if anywhere.

    Args:
        rule: The rule.
        conversation: The conversation.
        whole: Count over the whole conversation; else each user message starts a turn, and the counts, anew.
    """
    counts = counting.new_turn(None, 0.0)
    history: list[AnyMessage] = []
    made = 0
    for message in conversation.messages:
        if isinstance(message, HumanMessage) and not whole:
            counts = counting.new_turn(counts, 0.0)
        if isinstance(message, AIMessage):
            counts = counting.before_call(counts, history, _failed, _Writers())
            if rule.tripped(Standing(counts)):
                return Firing(made)
            made += 1
            counts = counting.after_call(counts, [message])
            asked = Counter(call["name"] for call in message.tool_calls)
            if asked and rule.tripped(Standing(counts, asked)):
                return Firing(made)
            counts = counting.with_calls(counts, asked)
        history.append(message)
    return None


class _Writers:
    """Every tool that does not only read, by its name."""

    def __contains__(self, name: object) -> bool:
        return not str(name).startswith(READING)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 1


def _failed(result: ToolMessage) -> bool:
    return result.status == "error"


def _conversation(record: dict[str, Any]) -> Conversation:
    return Conversation(
        label=record["label"],
        env=record["env"],
        solved=record["reward"] == 1.0,
        messages=tuple(_messages(record["messages"])),
    )


def _messages(records: Iterable[dict[str, Any]]) -> Iterator[AnyMessage]:
    for number, record in enumerate(records):
        content = record.get("content") or ""
        if record["role"] == "user":
            yield HumanMessage(content, id=str(number))
        elif record["role"] == "tool":
            failed = content.startswith(("Error", "Unknown action"))
            yield ToolMessage(content, tool_call_id=record["tool_call_id"], status="error" if failed else "success")
        else:
            calls = [
                {"id": call["id"], "name": call["name"], "args": call["args"]}
                for call in record.get("tool_calls") or ()
            ]
            yield AIMessage(content, tool_calls=calls, id=str(number))


def _length(message: AnyMessage) -> int:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return len(str(message.text)) + sum(len(call["name"]) + len(json.dumps(call["args"])) for call in calls)
