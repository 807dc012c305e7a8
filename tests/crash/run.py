"""`make crash-test`: kill processes at random points of conversations, and see that nothing is lost or done twice."""

from __future__ import annotations

import gc
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from typing import Annotated

import typer

from tests.crash.trials import Trials, Verdict

_HELP_POSTGRES = "URL of a PostgreSQL database; without it, one is started for the run."


def main(
    count: Annotated[int, typer.Option(metavar="N", help="Trials for each database.")] = 200,
    seed: Annotated[int | None, typer.Option(help="Repeats the trials of an earlier run.")] = None,
    store: Annotated[str, typer.Option(help="sqlite, postgres or both.")] = "both",
    postgres: Annotated[str | None, typer.Option(metavar="URL", help=_HELP_POSTGRES)] = None,
) -> None:
    """Kill processes at random points of conversations, and see that nothing is lost or done twice."""
    seed = SystemRandom().randrange(10**6) if seed is None else seed
    typer.echo(f"seed {seed}: repeat this run with --seed {seed} --count {count}")
    gc.freeze()  # children share what is imported here
    failed = 0
    for name in ("sqlite", "postgres") if store == "both" else (store,):
        with _database(name, postgres) as url, tempfile.TemporaryDirectory(prefix="crash-") as folder:
            began = time.monotonic()
            verdicts = list(_told(Trials(seed, count, url, Path(folder)).run()))
            failed += _report(name, verdicts, time.monotonic() - began)
    raise typer.Exit(1 if failed else 0)


@contextmanager
def _database(name: str, url: str | None) -> Iterator[str | None]:
    if name == "sqlite" or url is not None:
        yield None if name == "sqlite" else url
        return
    from tests.conftest import Postgres

    server = Postgres()
    try:
        yield server.url()
    finally:
        server.close()


def _told(verdicts: Iterator[Verdict]) -> Iterator[Verdict]:
    for verdict in verdicts:
        if verdict.faults:
            typer.echo(f"trial {verdict.trial.number}: {verdict.trial.job} {verdict.trial.kills} {verdict.points}")
            for fault in verdict.faults:
                typer.echo(f"    {fault}")
        yield verdict


def _report(name: str, verdicts: list[Verdict], seconds: float) -> int:
    failed = [verdict for verdict in verdicts if verdict.faults]
    killed = sum(verdict.killed for verdict in verdicts)
    typer.echo(f"\n{name}: {len(verdicts)} trials, {killed} processes killed, {len(failed)} faults, {seconds:.0f} s\n")
    typer.echo(f"{'effects recorded':<18}{'trials':>8}{'kills':>8}{'done twice':>12}{'in doubt':>10}{'faults':>8}")
    for journal in sorted({verdict.trial.job.journal for verdict in verdicts}):
        of = [verdict for verdict in verdicts if verdict.trial.job.journal == journal]
        numbers = (
            len(of),
            sum(verdict.killed for verdict in of),
            sum(verdict.repeated for verdict in of),
            sum(verdict.doubts for verdict in of),
            sum(bool(verdict.faults) for verdict in of),
        )
        typer.echo(f"{journal:<18}" + "".join(f"{n:>{w}}" for n, w in zip(numbers, (8, 8, 12, 10, 8), strict=True)))
    points = Counter(point for verdict in verdicts for point in verdict.points)
    typer.echo("\nkilled by themselves: " + ", ".join(f"{point} {count}" for point, count in points.most_common()))
    return len(failed)


if __name__ == "__main__":
    typer.run(main)
