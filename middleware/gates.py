"""`Gates`: ends a run that spends too much or goes round in circles, before it does more.

All rules share one node before the model and one after it. Counts stand in state (see `gate_counts`), so they survive
pauses and restarts, and agents that share one `Gates` object do not see each other's.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, Final, Literal, Self, TypeAlias, cast

from langchain.agents.middleware import ExtendedModelResponse, ModelRequest, ModelResponse, hook_config
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from agentkit import Exit, Run
from agentkit.errors import ConfigurationError, GateTripped, HookError
from agentkit.middleware import gate_counts as counting
from agentkit.middleware.gate_budgets import Deadline, StepBudget, ToolCallBudget
from agentkit.middleware.gate_counts import Counts
from agentkit.middleware.gate_endings import (
    closed,
    closing_call,
    ending,
    going_on,
    report_blind,
    report_trip,
    said,
    stopped,
)
from agentkit.middleware.gate_failures import DEFAULT_RULES
from agentkit.middleware.gate_rules import Rule, Standing
from agentkit.middleware.gate_state import GateState, joined, writers
from agentkit.middleware_base import Named
from agentkit.state import ASKED_AGAIN
from agentkit.transcript import closing_results, open_invalid_calls, pending_calls

__all__ = ["GateState", "Gates"]

Handler: TypeAlias = Callable[[Mapping[str, Any], Exit], Mapping[str, Any] | str | None]
OnTrip: TypeAlias = Literal["stop", "wrap_up", "raise"] | Handler

_STEPS: Final = "remaining_steps"
_SHOWN: Final = " remaining_steps"  # beside the counts: what Gates wrote there, to see what others wrote since
_NUDGE: Final = "A note from the agent's supervision, not from the user:\n{told}"


class Gates(Named):
    """Ends a run by rules, through the usual exit path, with a named reason.

    ```python
    Gates(StepBudget(10), RepeatedCall(3, nudge_at=2), on_trip="wrap_up")
    ```

    Args:
        *rules: What to watch; the first that trips ends the run. None: `DEFAULT_RULES`.
        on_trip: What happens then. Calls that the model has just asked for are answered with an error result and not
            executed. `"wrap_up"`: one more model call, without tools and told why; if it fails or is empty, a fixed
            text with what was found. `"stop"`: a clear message. `"raise"`: `GateTripped`, with the messages so far.
            A function of the state and the `Exit`, a `Handoff` for instance: it returns the text of a last message, or
            an update of the state; an update with `jump_to="model"` lets the run go on and starts the counts anew;
            None lets it go on as it is.
        failed: Whether a tool result means failure. Default: its status is `"error"`.
        writes: Names of tools that change something, beside those whose contract says so.
        clock: Seconds since the epoch.
        name: The name of the middleware.

    Raises:
        ConfigurationError: If a rule is no rule, or `on_trip` is none of these.
    """

    state_schema = GateState

    def __init__(
        self,
        *rules: Rule,
        on_trip: OnTrip = "wrap_up",
        failed: Callable[[ToolMessage], bool] | None = None,
        writes: Iterable[str] = (),
        clock: Callable[[], float] = time.time,
        name: str = "Gates",
    ) -> None:
        super().__init__(name)
        for rule in rules:
            if not isinstance(rule, Rule):
                raise ConfigurationError(f"Gates takes rules such as StepBudget(10), not {rule!r}.")
        if not callable(on_trip) and on_trip not in ("stop", "wrap_up", "raise"):
            raise ConfigurationError(
                f"Gates(on_trip={on_trip!r}): give 'stop', 'wrap_up', 'raise', a Handoff or a function."
            )
        if iscoroutinefunction(on_trip) or iscoroutinefunction(failed):
            raise ConfigurationError(
                "Gates: on_trip and failed are plain functions, not async ones, also in async agents."
            )
        self.rules = rules or DEFAULT_RULES
        self._on_trip = on_trip
        self._failed = failed or counting.is_error
        self._writes = frozenset(writes)
        self._clock = clock
        self._key = name if failed is None else f"{name} by {getattr(failed, '__qualname__', type(failed).__name__)}"
        parts = [part for rule in self.rules for part in rule.parts()]
        self._step_budgets = [part for part in parts if isinstance(part, StepBudget)]
        self._began: dict[Any, float] = {}
        self._timing = any(isinstance(part, Deadline) for part in parts)
        if self._timing:
            self.around_run = self._timed
        if schema := getattr(on_trip, "state_schema", None):
            self.state_schema = cast(Any, joined(schema))

    @property
    def named_tools(self) -> Collection[str]:
        """The tools that its rules name."""
        parts = [part for rule in self.rules for part in rule.parts()]
        return tuple(part.tool for part in parts if isinstance(part, ToolCallBudget) and part.tool is not None)

    def renamed(self, name: str) -> Self:
        """A copy whose counts stand under another name."""
        other = super().renamed(name)
        other._key = name + self._key.removeprefix(self.name)
        if self._timing:
            other._began, other.around_run = {}, other._timed
        return other

    # ---- hooks

    def before_agent(self, state: Mapping[str, Any], runtime: Runtime[Any]) -> dict[str, Any]:
        """Start a user turn."""
        fresh = counting.new_turn(self._counts(state), self._now())
        return self._written(state, fresh, {**self._shared(state), "last": None})

    @hook_config(can_jump_to=["end", "model"])
    def before_model(self, state: Mapping[str, Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Count what the tools gave, and look whether the model may be called."""
        counts, steps = self._counted(state, runtime, answered=False)
        if (recorded := counts["closing"]) and callable(self._on_trip):
            return self._handled(self._on_trip, state, Standing({**counts, "closing": None}), steps, _exit(recorded))
        if recorded:
            return self._written(state, counts, steps)
        return self._judged(state, counts, steps, "before_model", [])

    @hook_config(can_jump_to=["end", "model"])
    def after_model(self, state: Mapping[str, Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Count the answer, and look whether the calls it asks for may be started."""
        counts, steps = self._counted(state, runtime, answered=True)
        if recorded := counts["closing"]:
            return {**self._written(state, {**counts, "closing": None}, steps), **closed(state, _exit(recorded))}
        calls = pending_calls(state["messages"])
        if not calls and not open_invalid_calls(state["messages"]):
            return self._written(state, counts, steps)  # an answer stands, whatever it has cost
        return self._judged(state, counts, steps, "after_model", [call["name"] for call in calls])

    def wrap_model_call(self, request: ModelRequest[Any]) -> Generator[ModelRequest[Any], ModelResponse[Any], Any]:
        """Tell the model what it has to know: that the end is near, or that this is the closing call."""
        counts = self._counts(request.state)
        if counts and counts["closing"]:
            return (yield from closing_call(request, counts["closing"]["detail"]))
        if counts and (told := self._nudge(Standing(counts, last_step=self._shared(request.state).get("last")))):
            request = request.override(messages=[*request.messages, HumanMessage(_NUDGE.format(told=told))])
        response = yield request
        known = cast(GateState, request.state).get("agentkit_writers") or ()
        new = [name for name in writers(request.tools) if name not in known]
        return ExtendedModelResponse(response, Command(update={"agentkit_writers": new})) if new else response

    def _timed(self, run: Run) -> Generator[None, Any, None]:
        """Remember when this invocation began: what lies before it is a pause."""
        thread = ((run.config or {}).get("configurable") or {}).get("thread_id")
        outer = self._began.get(thread)  # of a run that this one is part of
        if thread is not None:  # without a thread there are no pauses
            self._began[thread] = self._clock()
        try:
            yield
        finally:
            if outer is None:
                self._began.pop(thread, None)
            else:
                self._began[thread] = outer

    # ---- counting

    def _counts(self, state: Mapping[str, Any]) -> Counts | None:
        return (state.get("agentkit_gates") or {}).get(self._key)

    def _shared(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return (state.get("agentkit_gates") or {}).get(_SHOWN) or {}

    def _now(self) -> float:
        return self._clock() if self._timing else 0.0

    def _counted(
        self, state: Mapping[str, Any], runtime: Runtime[Any], *, answered: bool
    ) -> tuple[Counts, dict[str, Any]]:
        """The counts, and the steps as they are shown, brought up to date before or after a model call."""
        before = self._counts(state) or counting.new_turn(None, self._now())
        asked_again = state.get(ASKED_AGAIN) or ()
        if answered:
            counts = counting.after_call(before, state["messages"], asked_again)
        else:
            writing = self._writes.union(state.get("agentkit_writers") or ())
            counts = counting.before_call(before, state["messages"], self._failed, writing, asked_again)
        if counts["run"] is not before["run"]:
            report_blind(self.name, self.rules, Standing(counts))
        if self._timing:
            thread = runtime.execution_info.thread_id if runtime.execution_info else None
            counts = counting.with_time(counts, self._clock(), self._began.get(thread, 0.0))
        steps = self._shared(state)
        written = state.get(_STEPS)
        if self._step_budgets and written is not None and written != steps.get("shown"):
            under_way = before["phase"] == "asked"  # what is written then is meant beside this call
            steps = {**steps, "last": before["run"]["steps"] + written + under_way}
        return counts, steps

    def _left(self, standing: Standing) -> int | None:
        """Model calls that are left, without the one that is under way."""
        under_way = standing.counts["phase"] == "asked"
        return min((max(0, budget.left(standing) - under_way) for budget in self._step_budgets), default=None)

    def _written(self, state: Mapping[str, Any], counts: Counts, steps: dict[str, Any]) -> dict[str, Any]:
        """The update of the state: only what has changed."""
        update: dict[str, Any] = {}
        gates: dict[str, Any] = {} if counts == self._counts(state) else {self._key: counts}
        left = self._left(Standing(counts, last_step=steps.get("last")))
        if left is not None:
            lefts = {**steps.get("left", {}), self._key: left}  # of each gate; the least of them is what is left
            left = min(lefts.values())
            steps = {**steps, "left": lefts, "shown": left}
            gates |= {} if steps == self._shared(state) else {_SHOWN: steps}
            update |= {} if state.get(_STEPS) == left else {_STEPS: left}
        return {**update, "agentkit_gates": gates} if gates else update

    # ---- judging

    def _judged(
        self, state: Mapping[str, Any], counts: Counts, steps: dict[str, Any], hook: str, asked: Sequence[str]
    ) -> dict[str, Any]:
        standing = Standing(counts, Counter(asked), steps.get("last"))
        ended = next((found for rule in self.rules if (found := rule.tripped(standing))), None)
        if ended is None:
            return self._written(state, counting.with_calls(counts, standing.asked), steps)
        ended = Exit(ended.reason, ended.detail, ended.source or f"{self.name}.{hook}")
        report_trip(self.name, ended)
        return self._tripped(state, standing, steps, ended)

    def _tripped(
        self, state: Mapping[str, Any], standing: Standing, steps: dict[str, Any], ended: Exit
    ) -> dict[str, Any]:
        counts, refused = standing.counts, closing_results(state["messages"], ended.detail)
        if self._on_trip == "raise":
            raise GateTripped(ended.reason, ended.detail, ended.source, [*state["messages"], *refused])
        if self._on_trip == "stop":
            return {**self._written(state, counts, steps), **ending(refused, [said(stopped(ended), ended)], ended)}
        if callable(self._on_trip) and not self._timing:
            return self._handled(self._on_trip, state, standing, steps, ended)
        # A closing call; or a function, which may pause and must find the same verdict when the hook runs again: what a
        # clock has decided is written down first.
        update = self._written(state, {**counts, "closing": ended.record()}, steps)
        return going_on(update, refused, leave=callable(self._on_trip) or ended.source.endswith("after_model"))

    def _handled(
        self, handler: Handler, state: Mapping[str, Any], standing: Standing, steps: dict[str, Any], ended: Exit
    ) -> dict[str, Any]:
        """What the user's function makes of it."""
        refused = closing_results(state["messages"], ended.detail)
        given: Any = handler(state, ended)  # whatever it returns
        if given is None:
            return self._written(state, counting.with_calls(standing.counts, standing.asked), steps)
        if isinstance(given, str):
            given = {"messages": [said(given, ended)]}
        if not isinstance(given, Mapping):
            why = f"returned {type(given).__name__}; return a text, an update of the state as a dict, or None."
            raise HookError(self.name, "on_trip", why)
        messages = given.get("messages") or []
        messages = messages if isinstance(messages, list) else [messages]
        if given.get("jump_to") == "model":
            update = {**self._written(state, self._anew(state, standing.counts), {"last": None}), **given}
            return going_on(update, [*refused, *messages], leave=True)
        update = {"exit": ended.record(), **self._written(state, standing.counts, steps), **given}
        return {**update, "jump_to": "end", "messages": [*refused, *messages]}

    def _anew(self, state: Mapping[str, Any], counts: Counts) -> Counts:
        """Counts with which the run can go on: the thread's are kept, unless they are what tripped."""
        fresh = counting.new_turn(counts, self._now())
        if any(rule.tripped(Standing(fresh)) for rule in self.rules):
            fresh = counting.new_turn(None, self._now())
        return fresh

    def _nudge(self, standing: Standing) -> str:
        return "\n".join(told for rule in self.rules if (told := rule.nudge(standing)))


# ---- small parts


def _exit(record: Mapping[str, str]) -> Exit:
    return Exit(**cast(Any, record))
