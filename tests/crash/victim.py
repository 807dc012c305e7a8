"""One process of a crash run: deliver every message and every decision until all is answered, as a queue would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import HumanMessage, ToolMessage

from agentkit import exit_of, thread
from agentkit.middleware import pending_approvals
from agentkit.testing import pairing_problems
from agentkit.turns import adecide, arun_turn, decide, run_turn
from tests.crash.stores import Journal, journal_of, limit, opened, payments, reported
from tests.crash.world import SCENARIOS, Events, Outside

__all__ = ["Ended", "Job", "work"]


@dataclass(frozen=True)
class Job:
    """What a process is to do."""

    scenario: str
    url: str
    """Of the database."""
    folder: Path
    """What is outside of the database; its name is the thread's."""
    use_async: bool = False
    journal: Journal = "none"
    granularity: Literal["hook", "turn"] = "hook"
    owner: str = "worker"
    """A worker that comes back under its name need not wait until its lease runs out."""
    ttl: float = 30.0
    freeze_at: str | None = None
    """The event at which the process freezes."""
    may_repeat: bool = False
    """Whether effects may take place twice: its process is killed, and nothing records them."""
    room: int | None = None
    """How many pages an SQLite file may grow by before the disk is full."""


@dataclass(frozen=True)
class Ended:
    """What a process found when all was done."""

    events: list[str]
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
    doubts: list[str] = field(default_factory=list)
    points: list[str] = field(default_factory=list)


def work(job: Job, end_at: int | None = None) -> None:
    """Do the job, and write down how it ended; with `end_at`, this process is killed at that event."""
    outside = Outside(job.folder)
    events = Events(outside, end_at, job.freeze_at)
    scenario = SCENARIOS[job.scenario]
    with opened(job.url, events) as saver:
        limit(saver, job.room)
        journal = journal_of(saver, job.journal, outside, events)
        agent = scenario.agent(outside, events, saver, journal, granularity=job.granularity)
        if job.use_async:
            asyncio.run(_adeliver(agent, job, scenario.messages))
        else:
            _deliver(agent, job, scenario.messages)
        ended = _ended(agent, outside, events)
        ended.effects.extend(payments(saver, job.journal, outside))
        ended.doubts.extend(reported(journal, outside))
        (job.folder / "ended.json").write_text(json.dumps(asdict(ended)))


def _deliver(agent: Any, job: Job, messages: Sequence[str]) -> None:
    hold: Any = {"owner": job.owner, "ttl": job.ttl}
    for number, message in enumerate(messages):
        result = run_turn(agent, job.folder.name, f"m{number}", message, **hold)
        while asked := pending_approvals(result):
            result = decide(agent, job.folder.name, asked[0].id, {"type": "approve"}, **hold)


async def _adeliver(agent: Any, job: Job, messages: Sequence[str]) -> None:
    hold: Any = {"owner": job.owner, "ttl": job.ttl}
    for number, message in enumerate(messages):
        result = await arun_turn(agent, job.folder.name, f"m{number}", message, **hold)
        while asked := pending_approvals(result):
            result = await adecide(agent, job.folder.name, asked[0].id, {"type": "approve"}, **hold)


def _ended(agent: Any, outside: Outside, events: Events) -> Ended:
    snapshot = agent.get_state(thread(outside.name))
    messages = snapshot.values["messages"]
    ended = exit_of(snapshot)
    return Ended(
        events=events.seen,
        history=[_plain(message) for message in messages],
        messages=[str(message.id) for message in messages if isinstance(message, HumanMessage)],
        problems=pairing_problems(messages),
        unfinished=list(snapshot.next),
        reason=ended.reason if ended is not None else None,
        effects=outside.done,
        refused=outside.refused,
        doubts=outside.doubts,
        points=outside.points,
    )


def _plain(message: Any) -> list[Any]:
    calls = [[call["name"], call["args"], call["id"]] for call in getattr(message, "tool_calls", [])]
    answers = [message.tool_call_id, message.status] if isinstance(message, ToolMessage) else []
    return [message.type, message.text, calls, answers]
