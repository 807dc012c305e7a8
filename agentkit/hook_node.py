"""A hook as a step: how it is called, and what it may return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from agentkit._compat import unread_resume
from agentkit.errors import UndeclaredJump, UnusedDecision
from agentkit.exits import Exit
from agentkit.hooks import Hook
from agentkit.state import EXIT, is_inner
from agentkit.topology import Stop

__all__ = ["HookStep"]

State = Mapping[str, Any]


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
            update = self.hook.sync(_shown(state), **self._injected(runtime, config))
        except Exception as error:
            error.add_note(self._note)
            raise
        return self._checked(update, config)

    async def arun(self, state: State, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Run the async form, or the sync one where there is no other."""
        if self.hook.asynchronous is None:
            return self.run(state, runtime, config)
        try:
            update = await self.hook.asynchronous(_shown(state), **self._injected(runtime, config))
        except Exception as error:
            error.add_note(self._note)
            raise
        return self._checked(update, config)

    def _injected(self, runtime: Runtime[Any], config: RunnableConfig) -> dict[str, Any]:
        given = {"runtime": runtime, "config": config, "store": runtime.store, "writer": runtime.stream_writer}
        return {name: given[name] for name in self.hook.injected}

    @property
    def _note(self) -> str:
        return f"raised in {self.hook.node}"

    def _checked(self, update: Any, config: RunnableConfig) -> Any:
        """The update, with the exit that a jump to the end means."""
        if not self.breakpoints and unread_resume(config):
            raise UnusedDecision(self.hook.name, self.hook.phase)
        if not isinstance(update, dict) or update.get("jump_to") is None:
            return update
        target = update["jump_to"]
        if self.stop.jump(target) is None:
            allowed = tuple(value for value, _ in self.stop.jumps)
            raise UndeclaredJump(self.hook.name, self.hook.phase, target, allowed)
        if target == "end" and self.hook.phase != "after_agent" and EXIT not in update:
            return {**update, EXIT: Exit("jump", f"{self.hook.node} ended the run", self.hook.node).record()}
        return update


def _shown(state: State) -> dict[str, Any]:
    return {key: value for key, value in state.items() if not is_inner(key)}
