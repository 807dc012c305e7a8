"""`Approval` with any batches and any decisions: what runs is what was approved, and every call has one result."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import create_agent, thread
from agentkit.middleware import Approval, ApprovalRule, PendingApproval, decide, pending_approvals
from agentkit.testing import ScriptedModel, ai, assert_paired, tool_call

CFG = thread("t")
TOOLS = ("free", "pay", "wire")  # needs nobody, one, two
EDITED = 1000
KINDS = ("approve", "edit", "reject", "respond", "leave")


@dataclass(frozen=True)
class Call:
    tool: str
    x: int
    id: str
    decision: str


@st.composite
def plans(draw: st.DrawFn) -> list[list[Call]]:
    """Answers of a model: up to three, with up to three calls each. Ids repeat in each answer, `x` does not."""
    return [
        [
            Call(draw(st.sampled_from(TOOLS)), 10 * turn + i, f"c{i}", draw(st.sampled_from(KINDS)))
            for i in range(draw(st.integers(1, 3)))
        ]
        for turn in range(draw(st.integers(1, 3)))
    ]


@settings(max_examples=40, deadline=None)
@given(plan=plans(), granularity=st.sampled_from(["hook", "turn"]), together=st.booleans())
def test_what_runs_is_what_was_approved(plan: list[list[Call]], granularity: Any, together: bool) -> None:
    ran: list[tuple[str, int]] = []
    model = ScriptedModel(*(ai("", *[tool_call(c.tool, {"x": c.x}, c.id) for c in batch]) for batch in plan), "done")
    agent = create_agent(
        model,
        [recording(name, ran) for name in TOOLS],
        middleware=[Approval(ApprovalRule(tool="pay"), ApprovalRule(tool="wire", approvers=2))],
        checkpointer=InMemorySaver(),
        granularity=granularity,
    )
    calls = {call.x: call for batch in plan for call in batch}
    answer_all(agent, calls, together)

    assert sorted(ran) == sorted(executed for call in calls.values() if (executed := outcome(call)) is not None)
    values = agent.get_state(CFG).values
    assert_paired(model, values["messages"])
    assert sum(isinstance(m, ToolMessage) for m in values["messages"]) == len(calls)
    kept = Counter(one["decision"] for one in values["approvals"])
    asked = [call for call in calls.values() if call.tool != "free"]
    for kind in ("edit", "reject", "respond"):
        assert kept[kind] == sum(call.decision == kind for call in asked)
    assert kept["withdrawn"] == sum(call.decision == "leave" for call in asked)


def recording(name: str, ran: list[tuple[str, int]]) -> StructuredTool:
    def run(x: int) -> str:
        ran.append((name, x))
        return f"{name} {x}"

    return StructuredTool.from_function(run, name=name, description=f"Does {name}.")


def outcome(call: Call) -> tuple[str, int] | None:
    """What should run of a call."""
    if call.tool == "free" or call.decision == "approve":
        return call.tool, call.x
    return (call.tool, EDITED + call.x) if call.decision == "edit" else None


def answer_all(agent: Any, calls: dict[int, Call], together: bool) -> None:
    """Decide on each question as planned, until none is left; a new message withdraws those that nobody answers."""
    agent.invoke({"messages": "go"}, CFG)
    while waiting := pending_approvals(agent.get_state(CFG)):
        decisions = {
            one.id: decision(call, one)
            for one in waiting
            if (call := calls[one.args["x"] % EDITED]).decision != "leave"
        }
        if not decisions:
            agent.invoke({"messages": "go on"}, CFG)
            continue
        some = decisions if together else dict([*decisions.items()][:1])
        agent.invoke(decide(agent.get_state(CFG), some), CFG)


def decision(call: Call, question: PendingApproval) -> Any:
    """What a person decides: first ann, then bob, who approves what an edit of hers has made of the call."""
    if question.request["approved_by"]:
        return {"type": "approve", "by": "bob"}
    return {"type": call.decision, "by": "ann", "message": "no", "edited_action": {"args": {"x": EDITED + call.x}}}
