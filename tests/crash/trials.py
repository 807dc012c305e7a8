"""Processes that are killed at random points of a conversation, one that ends it, and what must be true then."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.crash.killing import Failed, finish, start
from tests.crash.stores import JOURNALS, Journal
from tests.crash.victim import Ended, Job
from tests.crash.world import SCENARIOS

__all__ = ["Trial", "Trials", "Verdict", "faults"]

_LONGEST = 0.5  # seconds into a process at which it is killed from outside, at most


@dataclass(frozen=True)
class Kill:
    """How one process ends."""

    how: Literal["event", "time"]
    at: float
    """The number of the event, or seconds after its start."""


@dataclass(frozen=True)
class Trial:
    """One conversation, and how often and where it is cut off."""

    number: int
    job: Job
    kills: tuple[Kill, ...]


@dataclass(frozen=True)
class Verdict:
    """What came of a trial."""

    trial: Trial
    killed: int
    """How many processes were killed before they were done."""
    points: tuple[str, ...] = ()
    repeated: int = 0
    """Effects that took place more than once."""
    doubts: int = 0
    """Effects that were reported in doubt."""
    faults: tuple[str, ...] = ()


@dataclass
class Trials:
    """All trials of a seed, the same each time."""

    seed: int
    count: int
    url: str | None
    """Of a PostgreSQL database that all trials share; None: a new SQLite file for each."""
    folder: Path
    journals: tuple[Journal, ...] = JOURNALS
    _undisturbed: dict[tuple[str, Journal], Ended] = field(default_factory=dict)

    def run(self) -> Iterator[Verdict]:
        dice = random.Random(self.seed)
        for number in range(self.count):
            yield self._verdict(self._trial(number, random.Random(dice.random())))

    def _trial(self, number: int, dice: random.Random) -> Trial:
        scenario, journal = dice.choice(list(SCENARIOS)), dice.choice(self.journals)
        use_async, granularity = dice.random() < 0.5, dice.choice(("hook", "turn"))
        how = {"use_async": use_async, "granularity": granularity, "may_repeat": journal == "none"}
        job = self._job(f"{self.seed}-{number}", scenario, journal, **how)
        events = self._reference(scenario, journal).events
        return Trial(number, job, tuple(_kill(events, dice) for _ in range(dice.choice((1, 1, 1, 2, 3)))))

    def _job(self, name: str, scenario: str, journal: Journal, **how: object) -> Job:
        folder = self.folder / name
        folder.mkdir()
        url = self.url or f"sqlite:///{folder}/db"
        return Job(scenario, url, folder, journal=journal, **how)  # type: ignore[arg-type]  # as Job declares them

    def _reference(self, scenario: str, journal: Journal) -> Ended:
        """What the conversation comes to if nobody is killed."""
        if (scenario, journal) not in self._undisturbed:
            ended = finish(self._job(f"{self.seed}-{len(self._undisturbed)}-whole", scenario, journal))
            assert sorted(ended.effects) == sorted(SCENARIOS[scenario].effects)
            self._undisturbed[scenario, journal] = ended
        return self._undisturbed[scenario, journal]

    def _verdict(self, trial: Trial) -> Verdict:
        job, killed = trial.job, 0
        try:
            for kill in trial.kills:
                if kill.how == "event":
                    killed += start(job, int(kill.at)).wait()
                else:
                    killed += start(job).kill_after(kill.at)
            ended = finish(job)
        except Failed as failed:
            return Verdict(trial, killed, faults=(f"a process failed: {failed}",))
        whole = self._reference(job.scenario, job.journal)
        return Verdict(
            trial,
            killed,
            points=tuple(ended.points),
            repeated=len(_repeated(ended)),
            doubts=len(set(ended.doubts)),
            faults=tuple(faults(job, ended, whole)),
        )


def _kill(events: list[str], dice: random.Random) -> Kill:
    """At a moment, or at an event: each kind is as likely as any other, however often it happens."""
    if dice.random() < 0.3:
        return Kill("time", dice.uniform(0, _LONGEST))
    kind = dice.choice(sorted(set(events)))
    return Kill("event", dice.choice([at for at, event in enumerate(events, 1) if event == kind]))


def faults(job: Job, ended: Ended, whole: Ended) -> Iterator[str]:
    """What must not be, compared with a conversation that nobody disturbed."""
    if ended.messages != whole.messages:
        yield f"messages {ended.messages} instead of {whole.messages}"
    if (repeated := _repeated(ended)) and not job.may_repeat:
        yield f"twice: {repeated}"
    # a sub-agent is told in its own history, which only the ledger shows here; a doubt may be over by now, but was told
    reported = _told(ended) | set(ended.doubts) if job.journal == "tell" else set()
    if lost := set(whole.effects) - set(ended.effects) - reported:
        yield f"lost: {sorted(lost)}"
    if ended.problems or ended.refused:
        yield f"malformed: {ended.problems} {ended.refused}"
    if ended.unfinished or ended.reason != whole.reason:
        yield f"not over: {ended.unfinished} {ended.reason}"
    if _but_for(ended, reported) != _but_for(whole, reported):
        yield f"another state: {ended.history}"


def _told(ended: Ended) -> set[str]:
    """The effects that the model was told are in doubt."""
    told = [message for message in ended.history if message[0] == "tool" and "took effect is unknown" in message[1]]
    return {f"charge {message[3][0].rpartition('-')[2]}" for message in told}


def _repeated(ended: Ended) -> list[str]:
    return [what for what, count in Counter(ended.effects).items() if count > 1]


def _but_for(ended: Ended, reported: set[str]) -> list[object]:
    """The history without the results of the calls that are in doubt."""
    calls = {what.removeprefix("charge ") for what in reported}
    return [
        message[:1] if message[0] == "tool" and message[3][0].rpartition("-")[2] in calls else message
        for message in ended.history
    ]
