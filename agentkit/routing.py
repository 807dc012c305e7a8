"""Where a run goes next: pure functions of the plan and the state.

A destination is the name of a stop, or a list of tool calls, each to be dispatched by itself. After the tools step each
of its parallel calls is asked by itself where to go, seeing its own result and not its siblings'; an empty list is
nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langchain_core.messages import ToolCall, ToolMessage

from agentkit.limits import Tally
from agentkit.state import HANDOVER, SEQUENCED, TALLY
from agentkit.structured import is_structured_result
from agentkit.topology import TOOLS, Plan, Rule, Stop
from agentkit.transcript import SYNTHETIC, last_turn, open_invalid_calls, pending_calls

__all__ = ["DECIDING", "Destination", "Router", "one_at_a_time"]

Destination: TypeAlias = str | list[ToolCall]
State: TypeAlias = Mapping[str, Any]

DECIDING: Final = ("messages", "jump_to", "structured_response", TALLY, HANDOVER, SEQUENCED)
"""The fields of the state that the router looks at."""


def one_at_a_time(calls: Sequence[ToolCall], sequential: Collection[str]) -> list[ToolCall]:
    """The calls to run now: of those of sequential tools only the first, the others when it is answered.

    Args:
        calls: Open calls of one answer, in its order.
        sequential: Names of the tools whose calls run one after the other.
    """
    first = next((index for index, call in enumerate(calls) if call["name"] in sequential), None)
    return [call for index, call in enumerate(calls) if index == first or call["name"] not in sequential]


@dataclass(frozen=True, slots=True)
class Router:
    """Chooses the next stop.

    Attributes:
        plan: The agent's plan.
        structured: Names of the tools that stand for a structured answer; they are never dispatched.
        return_direct: Names of the tools whose result is the answer.
        executable: Names of the tools that the agent can run.
        sequential: Those of them whose calls run one after the other.
    """

    plan: Plan
    structured: Collection[str] = frozenset()
    return_direct: Collection[str] = frozenset()
    executable: Collection[str] = frozenset()
    sequential: Collection[str] = frozenset()

    @property
    def leads_back(self) -> bool:
        """Whether the tools can only lead back to the loop's entry, whatever they give."""
        return not (self.structured or self.return_direct or self.sequential)

    def after(self, stop: Stop, state: State) -> Destination:
        """Where to go after a stop, given the state with its update applied."""
        tally: Tally = state.get(TALLY) or {}
        if tally.get("stopped"):  # a limit ended the run: no jump leads back
            return stop.following
        target = stop.jump(state.get("jump_to"))
        if target == TOOLS:
            return self._dispatch(state) or self.plan.loop_entry
        return target or _RULES[stop.rule](self, stop, state)

    def _in_line(self, stop: Stop, state: State) -> Destination:
        return stop.following

    def _after_answer(self, stop: Stop, state: State) -> Destination:
        """LangChain's rules in their order, and one more: an answer that cannot be read goes back to the model."""
        ai, _ = last_turn(state["messages"])
        if ai is None:
            return self.plan.exit
        if calls := self._dispatch(state):
            return calls
        if state.get("structured_response") is not None:
            return self.plan.exit
        if open_invalid_calls(state["messages"]):
            return self.plan.loop_entry
        return self.plan.loop_entry if ai.tool_calls else self.plan.exit

    def _after_results(self, stop: Stop, state: State) -> Destination:
        waiting = self._waiting(state)
        if waiting and state.get(SEQUENCED):
            return waiting[:1]
        if len(waiting) > 1:  # one of them runs beside this call, and leads on when it is answered
            return []
        if state.get(HANDOVER):
            return self.plan.loop_entry  # whatever node comes next leaves for the parent graph
        ai, results = last_turn(state["messages"])
        if ai is None:
            return self.plan.loop_entry
        if self._answered_directly(ai.tool_calls, results):
            return self.plan.exit
        if any(is_structured_result(result, self.structured) for result in results):
            return self.plan.exit
        return self.plan.loop_entry

    def _answered_directly(self, calls: list[ToolCall], results: list[ToolMessage]) -> bool:
        """Whether all executed tools give their result as the answer; a reviewer's redirect counts by its name.

        A result that no tool gave, such as a rejection, is for the model.
        """
        if any(result.additional_kwargs.get(SYNTHETIC) for result in results):
            return False
        executed = {result.tool_call_id: result.name for result in results if result.name in self.executable}
        names = [executed.get(call["id"] or "", call["name"]) for call in calls]
        run = [name for name in names if name in self.executable]
        return bool(run) and all(name in self.return_direct for name in run)

    def _dispatch(self, state: State) -> list[ToolCall]:
        """The open calls, if there is a tools step to run them."""
        if not self.plan.has_tools:
            return []
        return one_at_a_time(pending_calls(state["messages"], self.structured), self.sequential)

    def _waiting(self, state: State) -> list[ToolCall]:
        """The open calls of tools whose calls run one after the other."""
        if not self.sequential:
            return []
        return [call for call in pending_calls(state["messages"], self.structured) if call["name"] in self.sequential]


_RULES: Final[dict[Rule, Callable[[Router, Stop, State], Destination]]] = {
    "line": Router._in_line,
    "answer": Router._after_answer,
    "results": Router._after_results,
}
