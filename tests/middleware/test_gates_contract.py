"""Gates and Handoff keep what users take for granted of any middleware."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langgraph.types import Interrupt

from agentkit.errors import GateTripped
from agentkit.middleware import (
    Deadline,
    Gates,
    Handoff,
    RepeatedCall,
    StepBudget,
    TokenBudget,
    ToolCallBudget,
)
from agentkit.testing import MiddlewareContract


class GatesContract(MiddlewareContract):
    counts_in_vain = ("agentkit_gates", "agentkit_asked_again")


class TestNudges(GatesContract):
    def make(self) -> Gates:
        rules = StepBudget(9, nudge_at=1), RepeatedCall(3, nudge_at=1), Deadline(3600, nudge_at=3000)
        return Gates(*rules, TokenBudget(9, per="thread", assume=1), clock=lambda: 1000.0)


class TestWrapsUp(GatesContract):
    def make(self) -> Gates:
        return Gates(ToolCallBudget(1) | StepBudget(5, per="thread"))


class TestRaises(GatesContract):
    raises = GateTripped

    def make(self) -> Gates:
        return Gates(StepBudget(2), on_trip="raise")


class TestHandsOver(GatesContract):
    def make(self) -> Gates:
        return Gates(StepBudget(2), on_trip=Handoff("support", facts=["remaining_steps"]))


class TestHandsOverAndWaits(GatesContract):
    def make(self) -> Gates:
        return Gates(StepBudget(2) | Deadline(60), on_trip=Handoff("support", wait=True), clock=lambda: 1000.0)

    def resolve(self, interrupts: Sequence[Interrupt]) -> Any:
        assert interrupts[0].value["to"] == "support"
        return {"message": "all is well", "end": True}


class TestHandoffAlone(MiddlewareContract):
    def make(self) -> Handoff:
        return Handoff("support", when=lambda state: "it settles" if len(state["messages"]) > 3 else None)


@pytest.mark.parametrize("made", [Gates(), Handoff("support")])
def test_the_name_can_be_chosen(made: Any) -> None:
    assert type(made).__name__ == made.name
    assert Gates(name="budget").name == "budget"
    assert Handoff("x", name="to support").name == "to support"
