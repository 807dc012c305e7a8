"""The tools step: one call through its wraps to the tool, and what may not happen to it.

Injection and results are LangGraph's `ToolNode`; here stands what agentkit promises about it: an answered call is never
run, a tool's own exception reaches the model, and state fields are filled as contracts say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import gather_with_concurrency
from langchain_core.tools import BaseTool, ToolException
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langgraph.types import Command

from agentkit import executions
from agentkit._compat import arun_tool_call, read_state, run_tool_call, tool_outputs
from agentkit.beside import complete
from agentkit.chain import Layer, compose
from agentkit.contract import contract_of
from agentkit.errors import ToolTimeout
from agentkit.executor import under_contract
from agentkit.handover import collected
from agentkit.pool import POOL, Outcome, Raised
from agentkit.result_fields import fields_of
from agentkit.routing import one_at_a_time
from agentkit.state import SEQUENCED, updates_of
from agentkit.transcript import SYNTHETIC, last_turn

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
        wrap_tool_call=partial(_wrapped, sync_layers),
        awrap_tool_call=partial(_awrapped, async_layers),
    )


def _wrapped(layers: Sequence[Layer], request: Any, execute: Callable[[Any], Any]) -> Any:
    def core(inner: Any) -> Any:
        return execute(under_contract(inner))

    with executions.ledger():
        try:
            result = compose(layers, core, is_async=False)(request)
        except Exception as error:
            if not executions.is_told(error):
                raise
            result = _error_result(request, error)
        return complete(result, request.tool_call["id"])


async def _awrapped(layers: Sequence[Layer], request: Any, execute: Callable[[Any], Any]) -> Any:
    async def core(inner: Any) -> Any:
        return await execute(under_contract(inner))

    with executions.ledger():
        try:
            result = await compose(layers, core, is_async=True)(request)
        except Exception as error:
            if not executions.is_told(error):
                raise
            result = _error_result(request, error)
        return complete(result, request.tool_call["id"])


def _error_result(request: Any, error: Exception) -> ToolMessage:
    call = request.tool_call
    text = str(error) if isinstance(error, ToolTimeout) else f"`{call['name']}` failed: {type(error).__name__}: {error}"
    return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")


def _told_to_model(error: ToolException) -> str:
    """What a tool reports as its own failure, bad arguments and a time-out among them; anything else is a bug."""
    if not isinstance(error, ToolException | ToolTimeout):  # ToolNode asks for every error that leaves the wraps
        raise error
    return getattr(error, "message", None) or str(error) or type(error).__name__


@dataclass(frozen=True, slots=True)
class ToolsStep:
    """Runs the calls that were dispatched to it."""

    node: ToolNode
    visible: Sequence[str]
    """Fields that tools may see."""
    sequential: Collection[str] = frozenset()
    """Names of the tools whose calls run one after the other."""

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
        calls = self._runnable(given, state)
        if not calls:
            return None
        run = [partial(run_tool_call, self.node, call, state, runtime, config) for call in calls]
        if len(calls) == 1:
            outputs = [copy_context().run(run[0])]
        else:
            outputs = [_value(outcome) for outcome in POOL.run_all(run, config.get("max_concurrency"))]
        return self._update(tool_outputs(self.node, outputs), calls, state)

    async def arun(self, given: Any, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """Run calls, async; see `run`."""
        state = read_state(config, self.visible)
        calls = self._runnable(given, state)
        if not calls:
            return None
        run = [arun_tool_call(self.node, call, state, runtime, config) for call in calls]
        if len(calls) == 1:
            outputs = [await run[0]]
        else:
            outputs = await gather_with_concurrency(config.get("max_concurrency"), *run)
        return self._update(tool_outputs(self.node, outputs), calls, state)

    def _runnable(self, given: Any, state: State) -> list[ToolCall]:
        """The calls to run: what was dispatched, or every call of the last answer, without those that have a result."""
        ai, results = last_turn(state["messages"])
        calls = given if isinstance(given, list) else (ai.tool_calls if ai else [])
        answered = {result.tool_call_id for result in results}
        return one_at_a_time([call for call in calls if call["id"] not in answered], self.sequential)

    def _update(self, outputs: Any, calls: Sequence[ToolCall], state: State) -> Any:
        """What the calls returned, with the state fields that their tools fill."""
        written = [
            fields
            for call in calls
            for message in _answers_of(call, outputs)
            if (writes := contract_of(self._executed(message, call)).writes)
            if (fields := fields_of(message, writes))
        ]
        outputs = collected(outputs, calls, state)
        if sequenced := self._sequenced(calls, state):
            answers = [] if _answers_of(sequenced, outputs) else [_no_answer(sequenced)]
            written.append({SEQUENCED: sequenced["id"], **({"messages": answers} if answers else {})})
        if not written:
            return outputs
        if isinstance(outputs, dict) and len(written) == 1 and "messages" not in written[0]:
            return {**outputs, **written[0]}
        return [*(outputs if isinstance(outputs, list) else [outputs]), *(Command(update=update) for update in written)]

    def _executed(self, message: ToolMessage, call: ToolCall) -> BaseTool | None:
        """The tool that gave a result: a wrap may have made another call of it."""
        tools = self.tools_by_name
        return tools.get(message.name or "") or tools.get(call["name"])

    def _sequenced(self, calls: Sequence[ToolCall], state: State) -> ToolCall | None:
        """The call that others of its batch may wait for."""
        if not self.sequential:
            return None
        ai, _ = last_turn(state["messages"])
        if ai is None or len(ai.tool_calls) == 1:
            return None
        return next((call for call in calls if call["name"] in self.sequential), None)


def _value(outcome: Outcome[Any]) -> Any:
    """What a call gave; its error, when all are done, in the order of the calls."""
    if isinstance(outcome, Raised):
        raise outcome.error
    return outcome.value


def _answers_of(call: ToolCall, outputs: Any) -> list[ToolMessage]:
    """The results of a call among what was returned."""
    found = [value for key, value in updates_of(outputs) if key == "messages"]
    messages = [m for value in found for m in (value if isinstance(value, list) else [value])]
    return [m for m in messages if isinstance(m, ToolMessage) and m.tool_call_id == call["id"]]


def _no_answer(call: ToolCall) -> ToolMessage:
    """Stands for the result of a call that gave none, so that the calls which wait for it go on."""
    text = f"`{call['name']}` gave no result."
    return ToolMessage(text, tool_call_id=call["id"], name=call["name"], additional_kwargs={SYNTHETIC: True})
