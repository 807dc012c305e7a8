"""`python -m examples.monthly_report`: write a report; if it is stopped, the same command continues it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

__all__ = ["app"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")

_MISTAKE = 2
_STOPPED = 130
_MONTH_HELP = "The month, such as 2026-10. Without it: last month."
_DB_HELP = "Where finished pulls are kept: an SQLite file, or a postgresql:// URL."
_PACE_HELP = "Seconds that each of the twelve sources takes to answer."
_FRESH_HELP = "Forget what was pulled for this month, and begin anew."


@app.command()
def report(
    month: Annotated[str | None, typer.Argument(metavar="YYYY-MM", help=_MONTH_HELP)] = None,
    db: Annotated[str, typer.Option(metavar="PATH", help=_DB_HELP)] = "monthly_report.db",
    pace: Annotated[float, typer.Option(metavar="SECONDS", min=0, help=_PACE_HELP)] = 1.5,
    fresh: Annotated[bool, typer.Option("--fresh", help=_FRESH_HELP)] = False,
) -> None:
    """Write a monthly report from a dozen slow sources.

    Each pull that is finished is kept. Stop it wherever you like, with Ctrl-C, kill -9 or the power switch: the same
    command goes on at the first pull that is missing, and once all are there it only shows the report.
    """
    named = month or f"{datetime.now(UTC).replace(day=1) - timedelta(days=1):%Y-%m}"
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", named):
        _refuse(f"{named!r} is no month; write it like 2026-10")
    # Imported only now: LangGraph takes a second, and --help should not.
    from agentkit.errors import (
        InvalidStoreUrl,
        MissingDependency,
        StoreFull,
        StoreReadOnly,
        StoreUnreachable,
        ThreadBusy,
    )
    from examples.monthly_report.showing import write

    console = Console(highlight=False)
    url = db if "://" in db else f"sqlite:///{Path(db).expanduser().absolute()}"
    try:
        write(console, url, named, pace, fresh=fresh)
    except ThreadBusy:
        _refuse(f"another process is writing the report for {named} right now")
    except (InvalidStoreUrl, MissingDependency, StoreFull, StoreReadOnly, StoreUnreachable) as mistake:
        _refuse(str(mistake))
    except KeyboardInterrupt:
        console.print("Stopped. The same command continues after the last finished pull.")
        raise typer.Exit(_STOPPED) from None


def _refuse(problem: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"error: {problem}", markup=False)
    raise typer.Exit(_MISTAKE)


if __name__ == "__main__":
    app()
