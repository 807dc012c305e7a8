"""`python -m examples.cve_assessor`: assess vulnerabilities in the terminal, offline."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from examples.cve_assessor.graph import as_drawn, assessor, batch
from examples.cve_assessor.records import UnknownCve, known

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def assess(
    cve_ids: Annotated[list[str] | None, typer.Argument(metavar="[CVE]...", help="Which. Default: all.")] = None,
    faulty: Annotated[bool, typer.Option("--as-drawn", help="Use the graph with the fault; one CVE only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Assess published vulnerabilities from the records that come with the example.

    Data and score of each are fetched side by side, described in the terms of ATT&CK, brought together, and rated with
    CVSS 3.1; a score that is not on record is estimated from the text. Needs no network and no key.
    """
    chosen = [each.upper() for each in cve_ids or known()]
    if faulty and cve_ids and len(chosen) > 1:
        print("error: --as-drawn shows one CVE", file=sys.stderr)
        raise SystemExit(2)
    try:
        if faulty:
            _watch(chosen[0])
            return
        done = batch().invoke({"cve_ids": chosen, "assessed": []})
    except UnknownCve as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    assessed = {each["cve_id"]: each for each in done["assessed"]}
    ranked = [assessed[cve_id] for cve_id in done["ranking"]]
    if as_json:
        print(json.dumps([_plain(each) for each in ranked], indent=2))
    else:
        Console().print(_table(ranked))


def _plain(each: dict[str, Any]) -> dict[str, Any]:
    return {
        "cve_id": each["cve_id"],
        **each["rating"],
        "basis": each["facts"]["basis"],
        "techniques": [technique["id"] for technique in each["techniques"]],
        "description": each["description"],
    }


def _table(ranked: list[dict[str, Any]]) -> Table:
    table = Table("CVE", "score", "severity", "basis", "ATT&CK", "product")
    for each in ranked:
        rating = each["rating"]
        table.add_row(
            each["cve_id"],
            f"{rating['score']:.1f}",
            rating["severity"],
            each["facts"]["basis"],
            " ".join(technique["id"] for technique in each["techniques"]),
            each["record"]["product"],
        )
    return table


def _watch(cve_id: str) -> None:
    """Show what runs in which step, as drawn and as it is right."""
    console = Console()
    for title, graph in (("as drawn", as_drawn().compile()), ("with the barrier", assessor())):
        console.print(f"[bold]{title}[/bold]")
        for event in graph.stream({"cve_id": cve_id, "steps": []}, stream_mode="debug"):
            if event["type"] == "task":
                console.print(f"  super-step {event['step']}: {event['payload']['name']}", highlight=False)


if __name__ == "__main__":
    app(prog_name="python -m examples.cve_assessor")
