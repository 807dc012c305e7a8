"""Cases beside the random ones: frozen processes that wake up, races, a database that restarts, a full disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.crash.killing import Failed, finish, start
from tests.crash.stores import Journal
from tests.crash.trials import faults
from tests.crash.victim import Ended, Job

__all__ = ["Cases"]

_TTL = 0.4  # seconds until a frozen process is replaced


@dataclass
class Cases:
    """Each case is a method; it raises `Failed` if what must be is not."""

    url: str | None
    folder: Path
    server: Any = None
    """The PostgreSQL server, where a case may stop and start it."""

    def run(self) -> Iterator[tuple[str, str]]:
        """Name and outcome of each case; an empty outcome is a good one."""
        cases: dict[str, Callable[[], None]] = {
            "frozen before its effect, in one transaction with the record": lambda: self._zombie(
                "transaction", "before the effect"
            ),
            "frozen after its effect, found by a look outside": lambda: self._zombie("look", "after the effect"),
            "frozen before its effect, which is told to be in doubt": lambda: self._zombie("tell", "before the effect"),
            "frozen while the model answers": lambda: self._zombie("look", "before the model"),
            "two processes deliver the same": self._race,
        }
        if self.url is None:
            cases["the disk is full for a while"] = self._full
        if self.server is not None:
            cases["the database restarts"] = self._restart
        for name, case in cases.items():
            try:
                case()
            except Failed as failed:
                yield name, str(failed)
            else:
                yield name, ""

    def _job(self, name: str, scenario: str = "several tools", **how: Any) -> Job:
        folder = self.folder / name.replace(" ", "-")
        folder.mkdir()
        return Job(scenario, self.url or f"sqlite:///{folder}/db", folder, **how)

    def _zombie(self, journal: Journal, freeze_at: str) -> None:
        """Another process takes over; the frozen one wakes up and may write nothing more."""
        frozen = self._job(f"{journal} {freeze_at}", journal=journal, owner="a", ttl=_TTL, freeze_at=freeze_at)
        first = start(frozen)
        first.wait_until_frozen()
        rescuer = replace(frozen, owner="b", freeze_at=None)
        finish(rescuer)
        first.thaw()
        error = first.fail()
        if "storing.LeaseLost" not in error and "effects.EffectSuperseded" not in error:
            raise Failed(f"the frozen process was not refused: {error}")
        self._check(rescuer, finish(replace(rescuer, owner="c")))

    def _race(self) -> None:
        """The lease alone makes one of them wait, so that nothing happens twice, without a record of effects too."""
        job = self._job("race", "approval")
        racers = [start(replace(job, owner=owner, use_async=owner == "b")) for owner in "ab"]
        for racer in racers:
            racer.wait()
        self._check(job, finish(job))

    def _full(self) -> None:
        job = self._job("full", journal="look", room=6)
        error = start(job).fail()
        if "storing.StoreFull" not in error:
            raise Failed(f"a full disk was told as {error}")
        job = replace(job, room=None)
        self._check(job, finish(job))

    def _restart(self) -> None:
        """The process goes on, or fails and the next one goes on."""
        job = self._job("restart", journal="look", freeze_at="after the effect")
        running = start(job)
        running.wait_until_frozen()
        self.server.stop()
        self.server.start()
        running.thaw()
        try:
            running.wait()
        except Failed as failed:
            if "Unreachable" not in str(failed) and "Unavailable" not in str(failed):
                raise
        job = replace(job, freeze_at=None)
        self._check(job, finish(job))

    def _check(self, job: Job, ended: Ended) -> None:
        whole = finish(replace(self._job(f"{job.folder.name} whole", job.scenario, journal=job.journal)))
        if found := list(faults(job, ended, whole)):
            raise Failed("; ".join(found))
