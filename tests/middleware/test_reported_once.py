"""A paused call runs again from its beginning with each answer; what happened before is not reported again."""

from __future__ import annotations

from threading import Barrier
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agentkit import create_agent, thread
from agentkit.events import Event, heard_by
from agentkit.ledger import Ledger
from agentkit.middleware import Approval, ApprovalRule, EffectLedger, decide
from agentkit.testing import EntryPoint, ScriptedModel, ai, run, tool_call
from agentkit.tools import tool

AT = thread("t")


def told(events: list[Event], name: str, field: str) -> list[Any]:
    return [event.fields[field] for event in events if event.name == name]


def test_each_decision_once_however_often_its_call_runs_again(call: EntryPoint) -> None:
    def pay() -> str:
        """Pay."""
        return f"paid {interrupt('which account?')}"

    rule = ApprovalRule(tool="pay", approvers=2, among=("ann", "bob"))
    model = ScriptedModel(ai("", tool_call("pay")), "done")
    agent = create_agent(model, [pay], middleware=[Approval(rule)], checkpointer=InMemorySaver())
    events: list[Event] = []
    with heard_by(events.append):
        run(agent, "go", AT, entry=call)
        for person in ("ann", "bob"):
            answer = decide(agent.get_state(AT), {"c1": {"type": "approve", "by": person}})
            run(agent, answer, AT, entry=call)
        (question,) = agent.get_state(AT).interrupts
        assert run(agent, Command(resume={question.id: "a-1"}), AT, entry=call).text == "done"
    assert told(events, "gate.decision", "decision") == ["require_approval", "allow", "allow"]
    assert [event.fields["by"] for event in events if "by" in event.fields] == ["ann", "bob"]


def test_a_doubt_once_whatever_is_answered_beside_it(call: EntryPoint) -> None:
    broken: set[int] = set()
    begun = Barrier(2)  # else the failure of one may end the run before the other has begun

    @tool(effect="write")
    def pay(x: int) -> str:
        """Pay."""
        if x not in broken:
            broken.add(x)
            begun.wait(60)
            raise OSError("broken off")
        return "paid"

    calls = [tool_call("pay", {"x": number}, f"c{number}") for number in (1, 2)]
    middleware = [EffectLedger(Ledger("sqlite://"))]
    model = ScriptedModel(ai("", *calls), "done")
    agent = create_agent(model, [pay], middleware=middleware, checkpointer=InMemorySaver())
    events: list[Event] = []
    with heard_by(events.append):
        run(agent, "go", AT, entry=call, catch=True)
        paused = run(agent, None, AT, entry=call)
        for _ in calls:
            question = paused.interrupts[0]
            answer = {"doubt": question.value["doubt"], "by": "ann", "outcome": "not_done"}
            paused = run(agent, Command(resume={question.id: answer}), AT, entry=call)
    assert paused.text == "done"
    assert sorted(told(events, "ledger.in_doubt", "tool_call_id")) == ["c1", "c2"]
