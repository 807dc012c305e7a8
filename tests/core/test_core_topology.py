"""The plan as a table: no model, no event loop, no LangGraph."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest

from agentkit.topology import END, MODEL, TOOLS, Plan, plan


@dataclass(frozen=True)
class Row:
    node: str
    jumps: tuple[str, ...] = ()


def rows(*nodes: str, jumps: tuple[str, ...] = ()) -> list[Row]:
    return [Row(node, jumps) for node in nodes]


def drawn(one: Plan) -> dict[str, set[str]]:
    """Where each stop leads in a healthy run."""
    return {stop.name: set(stop.targets) - set(stop.hidden) for stop in one.stops}


TABLE: list[tuple[str, dict[str, Any], str, dict[str, set[str]]]] = [
    ("a bare model", {}, "model", {"model": {END}}),
    ("tools", {"tools": True}, "model", {"model": {"tools", END}, "tools": {"model"}}),
    (
        "a result that is the answer",
        {"tools": True, "return_direct": True},
        "model",
        {"model": {"tools", END}, "tools": {"model", END}},
    ),
    (
        "a structured answer without tools",
        {"structured": True},
        "model",
        {"model": {"model", END}},
    ),
    (
        "a wrap that may answer calls itself",
        {"tools": True, "wraps_model": True},
        "model",
        {"model": {"tools", "model", END}, "tools": {"model"}},
    ),
    (
        "before_* in list order",
        {"before_agent": rows("a.ba", "b.ba"), "before_model": rows("a.bm", "b.bm"), "tools": True},
        "a.ba",
        {
            "a.ba": {"b.ba"},
            "b.ba": {"a.bm"},
            "a.bm": {"b.bm"},
            "b.bm": {"model"},
            "model": {"tools", END},
            "tools": {"a.bm"},
        },
    ),
    (
        "after_* reversed",
        {"after_model": rows("a.am", "b.am"), "after_agent": rows("a.aa", "b.aa"), "tools": True},
        "model",
        {
            "model": {"b.am"},
            "b.am": {"a.am"},
            "a.am": {"tools", "model", "b.aa"},
            "tools": {"model"},
            "b.aa": {"a.aa"},
            "a.aa": {END},
        },
    ),
    (
        "after_model without tools",
        {"after_model": rows("a.am")},
        "model",
        {"model": {"a.am"}, "a.am": {END}},
    ),
    (
        "jumps lead to the loop's entry, the tools and the exit path",
        {
            "before_agent": rows("a.ba", jumps=("end", "model", "tools")),
            "before_model": rows("a.bm"),
            "after_agent": rows("a.aa"),
            "tools": True,
        },
        "a.ba",
        {
            "a.ba": {"a.bm", "tools", "a.aa"},
            "a.bm": {"model"},
            "model": {"tools", "a.aa"},
            "tools": {"a.bm"},
            "a.aa": {END},
        },
    ),
    (
        "the loop's entry may jump to itself",
        {"before_model": rows("a.bm", jumps=("model",))},
        "a.bm",
        {"a.bm": {"model", "a.bm"}, "model": {END}},
    ),
]


@pytest.mark.parametrize(("given", "entry", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_plan(given: dict[str, Any], entry: str, expected: dict[str, set[str]]) -> None:
    phases = ("before_agent", "before_model", "after_model", "after_agent")
    flags = {key: value for key, value in given.items() if key not in phases}
    made = plan(*(given.get(phase, []) for phase in phases), **{"tools": False, **flags})
    assert made.entry == entry
    assert drawn(made) == expected


def test_end_from_after_agent_finishes_the_chain() -> None:
    ends = [*rows("a.aa"), *rows("b.aa", jumps=("end",)), *rows("c.aa", jumps=("end",))]
    made = plan([], [], [], ends, tools=False)
    assert made.exit == "c.aa"
    assert made["c.aa"].jump("end") == "b.aa"
    assert made["b.aa"].jump("end") == "a.aa"


def test_model_from_after_agent_starts_the_loop_anew() -> None:
    made = plan([], rows("a.bm"), [], rows("a.aa", jumps=("model",)), tools=False)
    assert made["a.aa"].jump("model") == "a.bm"


@pytest.mark.parametrize("node", ["a.am", "b.am", "c.am"])
@pytest.mark.parametrize(("value", "target"), [("model", "a.bm"), ("tools", TOOLS), ("end", "a.aa")])
def test_undeclared_jumps_from_after_model_at_every_position(node: str, value: str, target: str) -> None:
    made = plan([], rows("a.bm"), rows("a.am", "b.am", "c.am"), rows("a.aa"), tools=True)
    assert made[node].jump(value) == target
    assert target in made[node].targets


@pytest.mark.parametrize("phase", [0, 1, 3])
def test_undeclared_jumps_lead_nowhere_elsewhere(phase: int) -> None:
    phases: list[list[Row]] = [[], [], [], []]
    phases[phase] = rows("a.hook")
    made = plan(*phases, tools=True)
    assert [made["a.hook"].jump(value) for value in ("model", "tools", "end")] == [None, None, None]


def test_undeclared_jumps_need_a_loop() -> None:
    made = plan([], [], rows("a.am"), [], tools=False)
    assert made["a.am"].jump("end") is None


def test_no_jump_to_tools_that_are_not_there() -> None:
    made = plan([], rows("a.bm", jumps=("tools", "end")), [], [], tools=False)
    assert made["a.bm"].jump("tools") is None
    assert TOOLS not in made["a.bm"].targets
    assert made["a.bm"].jump("end") == END


@pytest.mark.parametrize("value", [None, "", "elsewhere", 3])
def test_only_three_words_are_jumps(value: object) -> None:
    made = plan([], rows("a.bm", jumps=("model", "tools", "end")), [], [], tools=True)
    assert made["a.bm"].jump(value) is None


def test_a_plan_is_printed_line_by_line() -> None:
    made = plan(rows("a.ba"), rows("a.bm", jumps=("end",)), [], [], tools=True)
    lines = [line.split() for line in str(made).splitlines()]
    assert lines[0] == ["start", "->", "a.ba"]
    assert lines[1] == ["a.ba", "->", "a.bm"]
    assert lines[2] == ["a.bm", "->", "model", "|", "end", "(may", "jump:", "end)"]
    assert {line[0] for line in lines[3:]} == {MODEL, TOOLS}


def test_a_plan_is_frozen_and_equal_by_value() -> None:
    one, two = (plan([], rows("a.bm"), [], [], tools=True) for _ in range(2))
    assert one == two
    with pytest.raises(FrozenInstanceError):
        one.entry = "elsewhere"  # type: ignore[misc]
