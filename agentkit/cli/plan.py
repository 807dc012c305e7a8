"""`agentkit plan`: the stops of an agent as text."""

from __future__ import annotations

from typing import Annotated

import typer

from agentkit.cli.screen import Mistake, write_json
from agentkit.cli.target import Target

__all__ = ["plan"]


def plan(
    target: Target,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON document.")] = False,
) -> None:
    """Print the stops of an agent, in the order a turn meets them, and where each may lead."""
    from agentkit import AgentGraph
    from agentkit.cli.target import graph

    agent = graph(target)
    if not isinstance(agent, AgentGraph):
        raise Mistake(f"{target} is a graph without a plan; draw it with: agentkit graph {target}")
    if as_json:
        stops = [
            {
                "name": stop.name,
                "kind": stop.kind,
                "leads_to": [target for target in stop.targets if target not in stop.hidden],
                "may_jump": list(stop.declared),
            }
            for stop in agent.plan.stops
        ]
        write_json({"entry": agent.plan.entry, "loop_entry": agent.plan.loop_entry, "stops": stops})
    else:
        typer.echo(str(agent.plan))
