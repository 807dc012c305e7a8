"""The tools step: one call through its wraps to the tool, and what may not happen to it.

Execution itself is LangGraph's `ToolNode`; here stands what agentkit promises about it: an answered call is never run,
and a tool's own exception reaches the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallWithContext
from langgraph.runtime import Runtime

from agentkit._compat import read_state
from agentkit.chain import Layer, compose
from agentkit.handover import collected
from agentkit.transcript import last_turn

__all__ = ["ToolsStep", "tool_layer", "tool_node"]

State = Mapping[str, Any]


def tool_layer(wrap: Any) -> Layer:
    """A wrap_tool_call as a layer: results go through as they are."""
    return Layer(wrap, _as_it_is, _result_of_wrap)


def _as_it_is(outcome: Any) -> Any:
    return outcome


def _result_of_wrap(result: Any, inner: Any) -> Any:
    return result


def tool_node(tools: Sequence[Any], sync_layers: Sequence[Layer], async_layers: Sequence[Layer]) -> ToolNode:
    """LangGraph's executor with our wraps and our error policy.

    Args:
        tools: What the agent can run.
        sync_layers: The wraps, outermost first.
        async_layers: The same in their async form.
    """
    return ToolNode(
        tools,
        handle_tool_errors=_told_to_model,
        wrap_tool_call=partial(_wrapped, sync_layers) if sync_layers else None,
        awrap_tool_call=partial(_awrapped, async_layers) if async_layers else None,
    )


def _wrapped(layers: Sequence[Layer], request: Any, execute: Callable[[Any], Any]) -> Any:
    return compose(layers, execute, is_async=False)(request)


async def _awrapped(layers: Sequence[Layer], request: Any, execute: Callable[[Any], Any]) -> Any:
    return await compose(layers, execute, is_async=True)(request)


def _told_to_model(error: ToolException) -> str:
    """What a tool reports as its own failure, bad arguments among them, is for the model; anything else is a bug."""
    if not isinstance(error, ToolException):  # ToolNode asks for every error that leaves a wrap
        raise error
    return getattr(error, "message", None) or str(error) or type(error).__name__


@dataclass(frozen=True, slots=True)
class ToolsStep:
    """Runs the calls that were dispatched to it."""

    node: ToolNode
    visible: Sequence[str]
    """Fields that tools may see."""

    @property
    def tools_by_name(self) -> Mapping[str, BaseTool]:
        """The tools that can run here."""
        return self.node.tools_by_name

    def run(self, given: Any, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Run calls, sync.

        Args:
            given: The dispatched calls, or the state when the step is entered by a `goto`.
            runtime: The run's runtime.
            config: The step's config.
        """
        state = read_state(config, self.visible)
        calls = _runnable(given, state)
        return collected(self.node.invoke(_input(calls, state), config), calls, state) if calls else None

    async def arun(self, given: Any, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Run calls, async; see `run`."""
        state = read_state(config, self.visible)
        calls = _runnable(given, state)
        return collected(await self.node.ainvoke(_input(calls, state), config), calls, state) if calls else None


def _input(calls: list[ToolCall], state: dict[str, Any]) -> Any:
    """One call goes with the state that its tool may see; several only come by a `goto`."""
    if len(calls) > 1:
        return calls
    return ToolCallWithContext(__type="tool_call_with_context", tool_call=calls[0], state=state)


def _runnable(given: Any, state: State) -> list[ToolCall]:
    """The calls to run: what was dispatched, or every call of the last answer, without those that have a result."""
    ai, results = last_turn(state["messages"])
    calls = given if isinstance(given, list) else (ai.tool_calls if ai else [])
    answered = {result.tool_call_id for result in results}
    return [call for call in calls if call["id"] not in answered]
