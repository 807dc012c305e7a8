"""`agentkit plan`."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Annotated

import typer

from agentkit.cli.loading import graph_at
from agentkit.errors import CannotLoad
from agentkit.run import AgentGraph

__all__ = ["plan"]


def plan(
    target: Annotated[str, typer.Argument(metavar="MODULE:AGENT", help="An agent of agentkit's create_agent.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the plan of an agent: its stops in the order of a turn, and where each may lead."""
    agent = graph_at(target)
    if not isinstance(agent, AgentGraph):
        raise CannotLoad(target, "only agentkit's agents have a plan; `agentkit graph` draws any graph")
    if as_json:
        stops = [dataclasses.asdict(stop) for stop in agent.plan.stops]
        text = json.dumps({"entry": agent.plan.entry, "loop_entry": agent.plan.loop_entry, "stops": stops}, indent=2)
    else:
        text = str(agent.plan)
    sys.stdout.write(text + "\n")
