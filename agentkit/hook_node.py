"""A hook as a step: how it is called, and what it may return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from langchain_core.messages import AIMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime

from agentkit._compat import unread_resume
from agentkit.errors import UndeclaredJump, UnusedDecision
from agentkit.exits import Exit
from agentkit.hooks import Hook
from agentkit.state import EXIT, INNER
from agentkit.topology import Stop
from agentkit.transcript import closing_results, last_turn

__all__ = ["HookStep"]

State = Mapping[str, Any]
_INNER_AND_EXIT: Final = INNER | {EXIT}


@dataclass(frozen=True, slots=True)
class HookStep:
    """Runs one node hook.

    Attributes:
        hook: The hook.
        stop: Its place in the plan.
        breakpoints: Whether the agent pauses at fixed places, where any answer resumes it.
    """

    hook: Hook
    stop: Stop
    breakpoints: bool = False

    def run(self, state: State, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Run the sync form."""
        try:
            update = self.hook.sync(self._shown(state), **self._injected(runtime, config))
        except Exception as error:
            error.add_note(self._note)
            raise
        return self._checked(update, state, config)

    async def arun(self, state: State, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Run the async form, or the sync one where there is no other."""
        if self.hook.asynchronous is None:
            return self.run(state, runtime, config)
        try:
            update = await self.hook.asynchronous(self._shown(state), **self._injected(runtime, config))
        except Exception as error:
            error.add_note(self._note)
            raise
        return self._checked(update, state, config)

    @property
    def _note(self) -> str:
        return f"raised in {self.hook.node}"

    def _shown(self, state: State) -> dict[str, Any]:
        """The state without bookkeeping; why the run ends is known only on the way out."""
        hidden = INNER if self.hook.phase == "after_agent" else _INNER_AND_EXIT
        if hidden.isdisjoint(state):
            return dict(state)
        return {key: value for key, value in state.items() if key not in hidden}

    def _injected(self, runtime: Runtime[Any], config: RunnableConfig) -> dict[str, Any]:
        if self.hook.injected == ("runtime",):
            return {"runtime": runtime}
        given = {"runtime": runtime, "config": config, "store": runtime.store, "writer": runtime.stream_writer}
        return {name: given[name] for name in self.hook.injected}

    def _checked(self, update: Any, state: State, config: RunnableConfig) -> Any:
        """The update, with what a jump to the end means."""
        if not self.breakpoints and unread_resume(config):
            raise UnusedDecision(self.hook.name, self.hook.phase)
        if not isinstance(update, dict) or update.get("jump_to") is None:
            return update
        target = update["jump_to"]
        if self.stop.jump(target) is None:
            raise UndeclaredJump(self.hook.name, self.hook.phase, target, self.stop.allowed, self.hook.jumps)
        if target != "end" or self.hook.phase == "after_agent":
            return update
        return self._ended(update, state)

    def _ended(self, update: dict[str, Any], state: State) -> dict[str, Any]:
        """The update of a hook that ends the run: it says so, and answers the calls that are still open."""
        why = f"{self.hook.node} ended the run"
        ended = {EXIT: Exit("jump", why, self.hook.node).record(), **update}
        written = update.get("messages", [])
        written = written if isinstance(written, list) else [written]
        if results := closing_results(_asked(state["messages"], written), why):
            rewrites = any(isinstance(message, RemoveMessage) for message in written)
            ended["messages"] = [*written, *results] if rewrites else [*results, *written]
        return ended


def _asked(stored: list[Any], written: list[Any]) -> list[Any]:
    """The history with the hook's messages, up to the end of the turn that was the last one before them."""
    asking, _ = last_turn(stored)
    history: Any = add_messages(stored, written)
    place = next((i for i, m in enumerate(history) if asking is not None and m.id == asking.id), None)
    if place is None:
        return []
    following = takewhile(lambda m: not isinstance(m, AIMessage), history[place + 1 :])
    return [*history[: place + 1], *following]
