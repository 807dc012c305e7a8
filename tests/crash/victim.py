"""One process of a crash run: deliver every message and every decision until all is answered, as a queue would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage

from agentkit import exit_of, thread
from agentkit.middleware import pending_approvals
from agentkit.testing import pairing_problems
from agentkit.turns import adecide, arun_turn, decide, run_turn
from tests.crash.stores import effect_ledger, open_saver
from tests.crash.world import SCENARIOS, Events, Outside

__all__ = ["Ended", "Job", "work"]

THREAD = "t"
TTL = 0.5  # seconds: how long a dead process keeps its thread


@dataclass(frozen=True)
class Job:
    """What a process is to do."""

    scenario: str
    url: str
    """Of the database, one of its own for each trial."""
    folder: Path
    """What is outside of the database."""
    use_async: bool = False
    ledger: bool = False


@dataclass(frozen=True)
class Ended:
    """What a process found when all was done."""

    events: int
    history: list[Any]
    """The messages, without what differs from run to run."""
    messages: list[str]
    """The ids of the user's messages."""
    problems: list[str]
    """What a strict provider would refuse in the history."""
    unfinished: list[str]
    reason: str | None
    effects: list[str] = field(default_factory=list)
    refused: list[Any] = field(default_factory=list)


def work(job: Job, end_at: int | None = None) -> None:
    """Do the job, and write down how it ended; with `end_at`, this process is killed at that event."""
    events, outside = Events(end_at), Outside(job.folder)
    scenario = SCENARIOS[job.scenario]
    with open_saver(job.url) as saver:
        events.around(saver, "put", "put_writes", "get_tuple")
        middleware = effect_ledger(saver, outside, events) if job.ledger else []
        agent = scenario.agent(outside, events, saver, middleware)
        if job.use_async:
            asyncio.run(_adeliver(agent, scenario.messages))
        else:
            _deliver(agent, scenario.messages)
        _write(job.folder, _ended(agent, outside, events))


def _deliver(agent: Any, messages: Sequence[str]) -> None:
    for number, message in enumerate(messages):
        result = run_turn(agent, THREAD, f"m{number}", message, ttl=TTL)
        while asked := pending_approvals(result):
            result = decide(agent, THREAD, asked[0].id, {"type": "approve"}, ttl=TTL)


async def _adeliver(agent: Any, messages: Sequence[str]) -> None:
    for number, message in enumerate(messages):
        result = await arun_turn(agent, THREAD, f"m{number}", message, ttl=TTL)
        while asked := pending_approvals(result):
            result = await adecide(agent, THREAD, asked[0].id, {"type": "approve"}, ttl=TTL)


def _ended(agent: Any, outside: Outside, events: Events) -> Ended:
    snapshot = agent.get_state(thread(THREAD))
    messages = snapshot.values["messages"]
    ended = exit_of(snapshot)
    return Ended(
        events=events.count,
        history=[_plain(message) for message in messages],
        messages=[str(message.id) for message in messages if isinstance(message, HumanMessage)],
        problems=pairing_problems(messages),
        unfinished=list(snapshot.next),
        reason=ended.reason if ended is not None else None,
        effects=outside.done,
        refused=outside.refused,
    )


def _plain(message: Any) -> list[Any]:
    calls = [[call["name"], call["args"], call["id"]] for call in getattr(message, "tool_calls", [])]
    answers = [message.tool_call_id, message.status] if isinstance(message, ToolMessage) else []
    return [message.type, message.text, calls, answers]


def _write(folder: Path, ended: Ended) -> None:
    (folder / "ended.json").write_text(json.dumps(asdict(ended)))
