"""`agentkit check`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agentkit.check import Report, as_json, as_sarif, as_text
from agentkit.check import check as check_graph
from agentkit.cli.loading import graphs_in

__all__ = ["check"]


class Format(StrEnum):
    """How findings are printed."""

    text = "text"
    json = "json"
    sarif = "sarif"


def check(
    targets: Annotated[
        list[str], typer.Argument(metavar="MODULE:GRAPH...", help="Graphs or agents; of MODULE alone, all its graphs.")
    ],
    format_: Annotated[Format, typer.Option("--format", help="How findings are printed.")] = Format.text,
    as_json_: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    ignore: Annotated[list[str] | None, typer.Option(metavar="CODE", help="A rule to leave out; repeatable.")] = None,
    durable: Annotated[bool, typer.Option("--durable", help="Threads have to outlive the process.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings make the exit status 1, too.")] = False,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write there instead of printing.")] = None,
) -> None:
    """Look for what is wrong in a graph or an agent, without running it.

    Nodes that run twice, joins that wait in vain, concurrent writes, pauses that cannot be resumed, loops without an
    end, and more; each finding has a code with a page in docs/checks. The exit status is 1 if there are errors, and 2
    if the command was not understood.
    """
    graphs = {name: graph for target in targets for name, graph in graphs_in(target).items()}
    reports = [check_graph(graph, ignore=ignore or (), durable=durable, name=name) for name, graph in graphs.items()]
    text = _written(Format.json if as_json_ else format_, reports)
    if output is not None:
        output.write_text(text + "\n", encoding="utf-8")
    else:
        sys.stdout.write(text + "\n")
    failing = ("error", "warning") if strict else ("error",)
    if any(finding.severity in failing for report in reports for finding in report.findings):
        raise typer.Exit(1)


def _written(format_: Format, reports: list[Report]) -> str:
    if format_ is Format.json:
        return as_json(reports)
    if format_ is Format.sarif:
        return as_sarif(reports)
    from rich.console import Console  # knows how wide the terminal is, or that there is none

    return as_text(reports, width=min(Console().width, 110))
