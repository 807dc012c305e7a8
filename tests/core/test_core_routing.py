"""Where a run goes next: the rules and their priority, as a table over plain states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from agentkit.routing import Router
from agentkit.state import HANDOVER, TALLY
from agentkit.testing import ai, invalid_call, tool_call
from agentkit.topology import MODEL, TOOLS, plan


@dataclass(frozen=True)
class Row:
    node: str
    jumps: tuple[str, ...] = ()


PLAN = plan([], [Row("a.bm")], [Row("a.am")], [Row("a.aa")], tools=True, structured=True, return_direct=True)
ROUTER = Router(PLAN, frozenset({"Answer"}), frozenset({"direct"}), frozenset({"look", "direct"}))
NO_TOOLS = plan([], [Row("a.bm")], [Row("a.am")], [Row("a.aa")], tools=False)

HUMAN = HumanMessage("hi")
LOOK, LOOK2 = tool_call("look", {}, "c1"), tool_call("look", {}, "c2")
DIRECT = tool_call("direct", {}, "d1")
ANSWER = tool_call("Answer", {}, "s1")


def result(id: str, name: str, status: Any = "success") -> ToolMessage:
    return ToolMessage("r", tool_call_id=id, name=name, status=status)


# In the order of the rules: each state would also fire the rules below its own.
AFTER_ANSWER: list[tuple[str, dict[str, Any], Any]] = [
    (
        "a limit that ended the run is above all",
        {"jump_to": "model", TALLY: {"stopped": True}, "messages": [ai("", LOOK)]},
        "a.aa",
    ),
    ("a jump is above calls", {"jump_to": "end", "messages": [ai("", LOOK)]}, "a.aa"),
    ("a jump is above an answer", {"jump_to": "model", "messages": [ai("done")]}, "a.bm"),
    ("a jump to the tools dispatches", {"jump_to": "tools", "messages": [ai("", LOOK, LOOK2)]}, [LOOK, LOOK2]),
    ("a jump to the tools with nothing open", {"jump_to": "tools", "messages": [ai("done")]}, "a.bm"),
    ("no answer ends", {"messages": [HUMAN]}, "a.aa"),
    ("no answer ends, whatever stands there", {"messages": [], "structured_response": 1}, "a.aa"),
    ("no calls end", {"messages": [HUMAN, ai("done")]}, "a.aa"),
    ("open calls are dispatched, one by one", {"messages": [ai("", LOOK, LOOK2)]}, [LOOK, LOOK2]),
    ("only the open ones", {"messages": [ai("", LOOK, LOOK2), result("c1", "look")]}, [LOOK2]),
    ("real calls before a structured end", {"messages": [ai("", LOOK, ANSWER)], "structured_response": 1}, [LOOK]),
    (
        "a structured answer ends",
        {"messages": [ai("", ANSWER), result("s1", "Answer")], "structured_response": 1},
        "a.aa",
    ),
    ("answered calls go back to the model", {"messages": [ai("", LOOK), result("c1", "look")]}, "a.bm"),
    ("a refused structured answer goes back", {"messages": [ai("", ANSWER), result("s1", "Answer", "error")]}, "a.bm"),
    ("an unreadable call goes back", {"messages": [ai("", invalid_call("look", id="i1"))]}, "a.bm"),
    (
        "an unreadable call that is answered ends",
        {"messages": [ai("", invalid_call("look", id="i1")), result("i1", "look")]},
        "a.aa",
    ),
    ("an unreadable call without an id ends", {"messages": [ai("x", invalid_call("look", id=None))]}, "a.aa"),
]


@pytest.mark.parametrize(("state", "expected"), [row[1:] for row in AFTER_ANSWER], ids=[row[0] for row in AFTER_ANSWER])
def test_after_the_answer(state: dict[str, Any], expected: Any) -> None:
    assert ROUTER.after(PLAN["a.am"], state) == expected


AFTER_RESULTS: list[tuple[str, dict[str, Any], Any]] = [
    ("results go back to the model", {"messages": [ai("", LOOK), result("c1", "look")]}, "a.bm"),
    ("the answer of a direct tool ends", {"messages": [ai("", DIRECT), result("d1", "direct")]}, "a.aa"),
    (
        "only if all are direct",
        {"messages": [ai("", DIRECT, LOOK), result("d1", "direct"), result("c1", "look")]},
        "a.bm",
    ),
    ("the name on the result decides", {"messages": [ai("", LOOK), result("c1", "direct")]}, "a.aa"),
    ("and also away from it", {"messages": [ai("", DIRECT), result("d1", "look")]}, "a.bm"),
    (
        "tools of the provider do not count",
        {"messages": [ai("", DIRECT, tool_call("web", {}, "w1")), result("d1", "direct")]},
        "a.aa",
    ),
    (
        "a structured answer beside real calls ends",
        {"messages": [ai("", LOOK, ANSWER), result("s1", "Answer"), result("c1", "look")]},
        "a.aa",
    ),
    (
        "a refused one does not",
        {"messages": [ai("", LOOK, ANSWER), result("s1", "Answer", "error"), result("c1", "look")]},
        "a.bm",
    ),
    (
        "a batch that leads out goes on, for the next node to leave",
        {"messages": [ai("", DIRECT), result("d1", "direct")], HANDOVER: [Command(graph=Command.PARENT)]},
        "a.bm",
    ),
    ("no answer left", {"messages": [HUMAN]}, "a.bm"),
]


@pytest.mark.parametrize(
    ("state", "expected"), [row[1:] for row in AFTER_RESULTS], ids=[row[0] for row in AFTER_RESULTS]
)
def test_after_the_results(state: dict[str, Any], expected: Any) -> None:
    assert ROUTER.after(PLAN[TOOLS], state) == expected


@pytest.mark.parametrize("name", ["a.bm", MODEL, "a.aa"])
def test_in_line_a_stop_leads_on_whatever_the_messages_say(name: str) -> None:
    state = {"messages": [ai("", LOOK)], "structured_response": 1}
    assert ROUTER.after(PLAN[name], state) == PLAN[name].following


def test_without_a_tools_step_calls_are_not_dispatched() -> None:
    router = Router(NO_TOOLS)
    assert router.after(NO_TOOLS["a.am"], {"messages": [AIMessage("", tool_calls=[LOOK])]}) == "a.bm"
    assert router.after(NO_TOOLS["a.am"], {"messages": [ai("done")]}) == "a.aa"
