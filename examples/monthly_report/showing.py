"""Runs the report, with a progress bar on a terminal and a line per pull elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from agentkit import checkpoint
from agentkit.turns import run_turn
from examples.monthly_report.report import Watch, build, pulled
from examples.monthly_report.sources import SOURCES, Source

__all__ = ["write"]

_TTL = 3.0  # seconds until a process that was killed is replaced


def write(console: Console, url: str, month: str, pace: float, *, fresh: bool = False) -> None:
    """Write a month's report, or what is missing of it.

    Raises:
        ThreadBusy: If another process is at it.
    """
    with checkpoint.open(url) as saver:
        if fresh:
            saver.delete_thread(month)
        graph = build(saver)
        before = pulled(graph, month)
        if 0 < before < len(SOURCES):
            console.print(f"{before} of {len(SOURCES)} pulls were finished earlier.")
        with _watch(console, before, pace) as watch:
            # The month names the thread and the turn: begun, continued or done, the same call is right.
            result = run_turn(graph, month, month, {"month": month, "figures": {}}, ttl=_TTL, context=watch)
    console.print(result["text"], markup=False)


@contextmanager
def _watch(console: Console, before: int, pace: float) -> Iterator[Watch]:
    if not console.is_terminal:
        yield Watch(pace, answered=lambda source: print(f"pulled {source.name}", flush=True))
        return
    columns = (SpinnerColumn(), TextColumn("{task.description:<26}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        bar = progress.add_task("…", total=len(SOURCES), completed=before)

        def asked(source: Source) -> None:
            progress.update(bar, description=source.title)

        yield Watch(pace, asked, lambda source: progress.advance(bar))
