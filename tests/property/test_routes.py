"""Every stop that a router can choose is one that its node is wired to, for every combination of features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from agentkit import create_agent
from agentkit.routing import Router
from agentkit.state import HANDOVER, TALLY
from agentkit.testing import ScriptedModel, ai, invalid_call, tool_call
from agentkit.topology import END, TOOLS, Plan, plan
from tests.property.stacks import TOOLS as SOME_TOOLS
from tests.property.stacks import Answer

JUMPS = (None, "model", "tools", "end")


@dataclass(frozen=True)
class Row:
    """What the plan needs to know of a hook."""

    node: str
    jumps: tuple[str, ...] = ()


def plans() -> Iterator[Plan]:
    """Plans over the cross product of how many hooks there are, what they declare, and the other features."""
    for declared, counts, flags in product(
        [(), ("end",), ("model", "tools", "end")], product((0, 2), repeat=4), product([False, True], repeat=4)
    ):
        rows = [
            [Row(f"M{i}.{phase}", declared) for i in range(count)]
            for phase, count in zip(("before_agent", "before_model", "after_model", "after_agent"), counts, strict=True)
        ]
        tools, structured, direct, wraps = flags
        yield plan(*rows, tools=tools, structured=structured, return_direct=direct, wraps_model=wraps)


def _histories() -> list[list[Any]]:
    human, call = HumanMessage("hi"), tool_call("ok", {"x": 1}, "c1")
    answer, final = ai("", call, tool_call("Answer", {}, "s1")), ai("done")
    done = ToolMessage("1", tool_call_id="c1", name="ok")
    direct = ToolMessage("1", tool_call_id="c1", name="direct")
    structured = ToolMessage("2", tool_call_id="s1", name="Answer")
    refused = ToolMessage("2", tool_call_id="s1", name="Answer", status="error")
    broken = ai("", invalid_call("ok", "{", "i1"))
    return [
        [],
        [human],
        [human, final],
        [human, answer],
        [human, answer, done],
        [human, answer, direct],
        [human, answer, done, structured],
        [human, answer, done, refused],
        [human, broken],
        [human, broken, ToolMessage("no", tool_call_id="i1", name="ok", status="error")],
        [human, AIMessage("", tool_calls=[tool_call("unheard_of", {}, None)])],
        [human, answer, done, human],
    ]


def states() -> list[dict[str, Any]]:
    """States that a router may be shown, sound ones and odd ones."""
    extras: list[dict[str, Any]] = [
        {},
        {"structured_response": {"value": 1}},
        {TALLY: {"stopped": True}},
        {HANDOVER: [Command(graph=Command.PARENT)]},
    ]
    odd = [*((None, extra) for extra in extras), *((jump, {}) for jump in JUMPS)]
    return [{"messages": history, "jump_to": jump, **extra} for history, (jump, extra) in product(_histories(), odd)]


def test_a_router_chooses_only_stops_it_is_wired_to() -> None:
    shown = states()
    for one in plans():
        router = Router(one, frozenset({"Answer"}), frozenset({"direct"}), frozenset({"ok", "direct"}))
        for stop in one.stops:
            for state in shown:
                chosen = router.after(stop, state)
                if isinstance(chosen, str):
                    assert chosen in stop.targets, f"{stop.name} chose {chosen} in\n{one}\nwith {state}"
                else:
                    assert one.has_tools
                    assert chosen
                    assert stop.name == TOOLS or TOOLS in stop.targets


def test_every_target_is_a_stop_and_every_stop_is_reached() -> None:
    for one in plans():
        names = {stop.name for stop in one.stops}
        assert len(names) == len(one.stops)
        reached, left = set(), {one.entry}
        while left:
            name = left.pop()
            reached.add(name)
            left |= set(one[name].targets) - {END} - reached
        assert reached == names
        assert all(set(stop.hidden) < set(stop.targets) for stop in one.stops if stop.hidden)


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize(
    "hooks", [(), ("before_model",), ("after_model", "after_agent"), ("before_agent", "after_model")]
)
def test_the_graph_is_wired_as_planned(hooks: tuple[str, ...], tools: bool, structured: bool) -> None:
    @hook_config(can_jump_to=["end", "model", "tools"])
    def hook(self: Any, state: Any, runtime: Any) -> None:
        return None

    middleware = [type(f"M{i}", (AgentMiddleware,), dict.fromkeys(hooks, hook))() for i in range(2)]
    agent = create_agent(
        ScriptedModel("done"),
        SOME_TOOLS if tools else [],
        middleware=middleware,
        response_format=ToolStrategy(Answer) if structured else None,
    )
    edges = agent.builder.edges
    for stop in agent.plan.stops:
        branches = agent.builder.branches.get(stop.name, {})
        mapped = {end for branch in branches.values() for end in (branch.ends or {}).values()}
        straight = {target for source, target in edges if source == stop.name}
        assert mapped | straight == set(stop.targets)
