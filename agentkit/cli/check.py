"""`agentkit check`: what is wrong in a graph or an agent, found without running it."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from agentkit.cli.screen import Code, Mistake, out, write_file
from agentkit.cli.target import graphs_in

__all__ = ["check"]


class Format(StrEnum):
    """How findings are written."""

    text = "text"
    json = "json"
    sarif = "sarif"


Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="MODULE:GRAPH...",
        help="Graphs or agents: `shop.agents:support`, `shop/agents.py:support`; of a module alone, all its graphs.",
        show_default=False,
    ),
]


def check(
    targets: Targets,
    form: Annotated[Format, typer.Option("--format", help="How findings are written.")] = Format.text,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    ignore: Annotated[list[str] | None, typer.Option(metavar="CODE", help="A rule to leave out; repeatable.")] = None,
    durable: Annotated[bool, typer.Option("--durable", help="Threads have to outlive the process.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings, too.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there.")] = None,
) -> None:
    """Look for what is wrong in a graph or an agent, without running it.

    Nodes that run twice, joins that wait in vain, concurrent writes, pauses that cannot be resumed, loops without an
    end, and more. Each finding has a code with a page in docs/checks. The exit code is 1 if there are errors.
    """
    from langgraph.checkpoint.memory import InMemorySaver

    from agentkit.check import check as check_graph
    from agentkit.errors import NoGraph, UnknownRule

    saver = None if durable else InMemorySaver()  # for functions that leave it to their caller, as --store is
    graphs = {name: graph for target in targets for name, graph in graphs_in(target, checkpointer=saver).items()}
    try:
        reports = [
            check_graph(graph, ignore=ignore or (), durable=durable, name=name) for name, graph in graphs.items()
        ]
    except (NoGraph, UnknownRule) as error:
        raise Mistake(str(error)) from error
    kind = Format.json if as_json else form
    text = _written(kind, reports) + "\n"
    if output is not None:
        write_file(output, text.encode())
    elif kind is Format.text:
        _show(text)
    else:
        sys.stdout.write(text)
    failing = ("error", "warning") if strict else ("error",)
    if any(finding.severity in failing for report in reports for finding in report.findings):
        raise typer.Exit(Code.findings)


_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan", "no": "green"}


def _show(text: str) -> None:
    """Print findings, with the severities in colour where somebody looks."""
    from rich.text import Text

    console = out()
    for line in text.splitlines():
        shown = Text(line)
        for word, style in _STYLES.items():
            shown.highlight_regex(rf"(?<=: ){word}(?= [A-Z]{{2}}\d| findings)", style)
        console.print(shown, soft_wrap=True)


def _written(form: Format, reports: list[Any]) -> str:
    from agentkit.check import as_json, as_sarif, as_text

    if form is Format.json:
        return as_json(reports)
    return as_sarif(reports) if form is Format.sarif else as_text(reports, width=min(out().width, 110))
