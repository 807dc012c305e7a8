"""`Handoff`: gives a run to a person, with a record of what is known, and ends or waits for their answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentState, hook_config
from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.config import get_config
from langgraph.types import interrupt
from typing_extensions import TypedDict

from agentkit import Exit
from agentkit.events import emit
from agentkit.middleware_base import Named
from agentkit.transcript import SYNTHETIC, closing_results

__all__ = ["Handoff", "HandoffRecord", "HandoffState"]

_MISUNDERSTOOD = "Resume with the answer as text, or with {'message': text} and, to end the run with it, 'end': True."


class HandoffRecord(TypedDict):
    """What a person needs to take over. Plain data; it holds the content of the conversation."""

    to: str
    reason: str
    """One word: a gate's reason (`step_budget`, ...), or `handoff` where a hook or tool asked for it."""
    detail: str
    wants: list[str]
    """What the user said, oldest first; the last five messages."""
    facts: dict[str, Any]
    """The state fields that were asked for, as far as they are set."""
    tried: list[dict[str, Any]]
    """The tool calls since the user's last message: `tool`, `args`, `outcome` (`ok`, `failed`, `not executed`)."""
    errors: list[str]
    """The last three error results since then."""
    transcript: dict[str, Any]
    """Where the whole conversation is: its `thread_id`, and the number of `messages` so far."""


class HandoffState(AgentState[Any]):
    """What `Handoff` adds to the state."""

    handoff: NotRequired[Annotated[HandoffRecord | None, OmitFromInput]]
    """The last hand-over of the thread."""
    handoff_reason: NotRequired[Annotated[str | None, PrivateStateAttr]]
    """Write a sentence here, from a hook or a tool, and the run is handed over at the next model node."""
    agentkit_handed_over: NotRequired[Annotated[list[str], PrivateStateAttr]]
    """The reasons for which a person has answered in this user turn."""


class Handoff(Named):
    """Hands a run over to a person.

    In the list of middlewares it acts when a hook or tool writes the state field `handoff_reason`, or when `when` gives
    a reason. As `Gates(on_trip=Handoff(...))` it acts when a gate trips, and need not stand in the list.

    The record goes into the state field `handoff`. Calls that were just asked for are not executed.

    Args:
        to: Who takes over; named to the user.
        wait: Pause until somebody answers (needs a checkpointer). The interrupt's value is the record. Resumed with a
            text, or `{"message": text}`, the run goes on with it as a user message; with `{"message": text,
            "end": True}` it ends with it as the answer. False: the run ends with the reason `handoff`.
        facts: State fields that go into the record.
        when: A function of the state that gives a reason to hand over, or None. What a person has answered is not
            asked again in the same user turn.
        message: What the user is told when the run ends. Default: a sentence that names `to`.
        name: The name of the middleware.
    """

    state_schema = HandoffState

    def __init__(
        self,
        to: str,
        *,
        wait: bool = False,
        facts: Sequence[str] = (),
        when: Callable[[Mapping[str, Any]], str | None] | None = None,
        message: str | None = None,
        name: str = "Handoff",
    ) -> None:
        super().__init__(name)
        self.to = to
        self._wait = wait
        self._facts = tuple(facts)
        self._when = when
        self._message = message or f"I have handed this over to {to}, with all that is known so far."

    def __call__(self, state: Mapping[str, Any], why: Exit) -> dict[str, Any]:
        """Hand over, as a gate's `on_trip`.

        Args:
            state: The state.
            why: Why the run cannot go on by itself.

        Returns:
            The update of the state: with `jump_to="end"` and the exit, or, after an answer, with `jump_to="model"`. The
            error results for open calls are not part of it.
        """
        record = self._record(state, why)
        told: dict[str, Any] = {"to": self.to, "reason_code": why.reason, "mode": "wait" if self._wait else "end"}
        if not self._wait:
            emit("agent.handoff", f"handed over to {self.to}: {why.reason}", **told)
            return self._ended(record, why, self._message)
        message, ends = self._asked(record)
        emit("agent.handoff", f"{self.to} answered a hand-over", **told, ends=ends)
        if ends:
            return self._ended(record, why, message)
        said = HumanMessage(f"{self.to} says: {message}", additional_kwargs={SYNTHETIC: True})
        return {"handoff": record, "jump_to": "model", "messages": [said]}

    # ---- hooks

    def before_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Forget what an earlier turn left."""
        left: dict[str, Any] = {"handoff_reason": None, "agentkit_handed_over": []}
        return {field: value for field, value in left.items() if state.get(field)} or None

    @hook_config(can_jump_to=["end", "model"])
    def before_model(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Hand over, if somebody asked for it."""
        return self._at(state, "before_model")

    @hook_config(can_jump_to=["end", "model"])
    def after_model(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Hand over, if somebody asked for it."""
        return self._at(state, "after_model")

    def _at(self, state: Mapping[str, Any], hook: str) -> dict[str, Any] | None:
        answered = state.get("agentkit_handed_over") or []
        detail = state.get("handoff_reason")
        if not detail and self._when:
            detail = self._when(state)
            detail = None if detail in answered else detail  # the person has dealt with it
        if not detail:
            return None
        update = self(state, Exit("handoff", detail, f"{self.name}.{hook}"))
        closed = closing_results(state["messages"], f"the conversation was handed over to {self.to}")
        kept = {"handoff_reason": None, "agentkit_handed_over": [*answered, detail]}
        return {**update, **kept, "messages": [*closed, *update["messages"]]}

    # ---- inner

    def _ended(self, record: HandoffRecord, why: Exit, text: str) -> dict[str, Any]:
        detail = f"handed over to {self.to}: {why.detail}"
        said = AIMessage(text, response_metadata={SYNTHETIC: True, "exit": "handoff"})
        ended = Exit("handoff", detail, why.source).record()
        return {"handoff": record, "jump_to": "end", "exit": ended, "messages": [said]}

    def _asked(self, record: HandoffRecord) -> tuple[str, bool]:
        """Wait for an answer that can be understood: its text, and whether it ends the run."""
        answer = interrupt(dict(record))
        while True:
            if isinstance(answer, str) and answer.strip():
                return answer, False
            if isinstance(answer, Mapping) and isinstance(answer.get("message"), str) and answer["message"].strip():
                return answer["message"], bool(answer.get("end"))
            answer = interrupt({**record, "error": _MISUNDERSTOOD})

    def _record(self, state: Mapping[str, Any], why: Exit) -> HandoffRecord:
        messages: Sequence[AnyMessage] = state["messages"]
        said = [i for i, m in enumerate(messages) if isinstance(m, HumanMessage) and not _made_up(m)]
        turn = messages[said[-1] :] if said else messages
        errors = [str(m.text) for m in turn if isinstance(m, ToolMessage) and m.status == "error" and not _made_up(m)]
        return HandoffRecord(
            to=self.to,
            reason=why.reason,
            detail=why.detail,
            wants=[str(messages[i].text) for i in said[-5:]],
            facts={field: state[field] for field in self._facts if state.get(field) is not None},
            tried=_tried(turn),
            errors=errors[-3:],
            transcript=_transcript(messages),
        )


def _made_up(message: AnyMessage) -> bool:
    return bool(message.additional_kwargs.get(SYNTHETIC))


def _tried(messages: Sequence[AnyMessage]) -> list[dict[str, Any]]:
    """The calls, each with what became of it. An answer counts for the AI message that it follows."""
    tried: list[dict[str, Any]] = []
    open_calls: dict[str | None, dict[str, Any]] = {}
    for message in messages:
        if isinstance(message, AIMessage):
            calls = [{"tool": c["name"], "args": c["args"], "outcome": "not executed"} for c in message.tool_calls]
            open_calls = {c["id"]: entry for c, entry in zip(message.tool_calls, calls, strict=True)}
            tried += calls
        elif isinstance(message, ToolMessage) and message.tool_call_id in open_calls and not _made_up(message):
            open_calls[message.tool_call_id]["outcome"] = "failed" if message.status == "error" else "ok"
    return tried


def _transcript(messages: Sequence[AnyMessage]) -> dict[str, Any]:
    thread_id = get_config().get("configurable", {}).get("thread_id")
    return {"thread_id": thread_id, "messages": len(messages)}
