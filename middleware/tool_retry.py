"""`ToolRetry`: tries a tool call again where that is harmless and may help."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Annotated, Any

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import ToolCall, ToolMessage
from tenacity.stop import stop_base
from tenacity.wait import wait_base

from agentkit.beside import beside
from agentkit.errors import ToolTimeout
from agentkit.middleware_base import Named
from agentkit.retry import OnFailure, RetryPolicy, Tries, add_counts
from agentkit.tools import contract_of
from agentkit.transcript import UNKNOWN_OUTCOME, pending_calls
from agentkit.transient import RetryOn, is_transient, status_of

__all__ = ["ToolRetry"]


class _State(AgentState[Any]):
    tool_retries: Annotated[dict[str, int] | None, PrivateStateAttr, add_counts]


class ToolRetry(Named):
    """Tries failed calls of `read` and idempotent tools again, after transient errors only.

    The model sees the last outcome, not the attempts. A call of any other tool is never repeated: after a time-out or
    a lost connection nobody knows whether it took effect, and the error result says so. Errors that are not transient
    are raised at once.

    Args:
        attempts: Executions of one call in all, retries of other middlewares included. Default: 3.
        retry_on: Which errors: exception types, or a function of the exception. Default: time-outs, lost connections,
            HTTP 429 and 5xx, replies cut short, corrupt chunks.
        wait: A tenacity wait strategy, in seconds. Default: random, up to 0.5, 1, 2, ... 30.
        stop: A tenacity stop strategy, besides `attempts` and `deadline`. Default: none.
        deadline: Seconds since the first attempt after which no other is begun. Default: 60.
        max_retry_after: The longest `Retry-After`, in seconds, that is waited for. Default: 60.
        budget: Retries per user turn, over all tools; calls of one answer divide what is left among them. Default: 20.
        on_failure: What becomes of a transient failure that remains: `"message"`, an error result for the model;
            `"raise"`; or a function that makes the text of the result from the exception. Default: `"message"`.
        name: The middleware's name, for several instances in one agent. Default: `"ToolRetry"`.

    Raises:
        ConfigurationError: If a number cannot be meant.
    """

    state_schema = _State

    def __init__(
        self,
        *,
        attempts: int = 3,
        retry_on: RetryOn = is_transient,
        wait: wait_base | None = None,
        stop: stop_base | None = None,
        deadline: float | None = 60.0,
        max_retry_after: float = 60.0,
        budget: int | None = 20,
        on_failure: OnFailure = "message",
        name: str = "ToolRetry",
    ) -> None:
        super().__init__(name)
        self._policy = RetryPolicy(
            attempts=attempts,
            retry_on=retry_on,
            wait=wait,
            stop=stop,
            deadline=deadline,
            max_retry_after=max_retry_after,
        )
        self._budget = budget
        self._on_failure = on_failure

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Count anew: a user turn begins."""
        return {"tool_retries": None}

    def wrap_tool_call(self, request: ToolCallRequest) -> Generator[Any, Any, Any]:
        """Call, and call again while that is harmless and may help."""
        contract = contract_of(request.tool)
        call = request.tool_call
        tries = self._policy.tries(
            "tool", call["id"], call["name"], budget=self._share(request), repeatable=contract.repeatable
        )
        try:
            result = yield from tries.over(request)
        except Exception as error:
            if not self._policy.takes(error) or self._on_failure == "raise":
                self._counted(None, tries.retries)  # a wrap further out may make a result of it
                if self._policy.takes(error):
                    error.add_note(f"{self.name} gave up the call of `{call['name']}`: {tries.why}")
                raise
            result = self._failed(call, error, tries, contract.effect == "read")
        return self._counted(result, tries.retries)

    def _counted(self, result: Any, retries: int) -> Any:
        """The result, with the retries that it took noted in state."""
        return beside(result, {"tool_retries": {self.name: retries}}, self) if retries else result

    def _share(self, request: ToolCallRequest) -> int | None:
        """This call's part of the retries that are left: calls that run side by side cannot see what the others use."""
        if self._budget is None:
            return None
        state: Mapping[str, Any] = request.state
        spent: Mapping[str, int] = state.get("tool_retries") or {}
        left = max(0, self._budget - spent.get(self.name, 0))
        repeatable = {tool.name for tool in request.runtime.tools if contract_of(tool).repeatable}
        siblings = [call["id"] for call in pending_calls(state["messages"]) if call["name"] in repeatable]
        if request.tool_call["id"] not in siblings:
            return left
        each, over = divmod(left, len(siblings))
        return each + (siblings.index(request.tool_call["id"]) < over)

    def _failed(self, call: ToolCall, error: Exception, tries: Tries, is_read: bool) -> ToolMessage:
        """What the model is told when a transient failure remains."""
        name = call["name"]
        text = self._on_failure(error) if callable(self._on_failure) else _told(name, error, tries)
        extra = {} if is_read else {UNKNOWN_OUTCOME: True}
        return ToolMessage(text, tool_call_id=call["id"], name=name, status="error", additional_kwargs=extra)


def _told(name: str, error: Exception, tries: Tries) -> str:
    if isinstance(error, ToolTimeout):
        cause = f"`{name}` did not answer within {error.seconds:g} s"
    else:
        status = status_of(error)
        cause = f"`{name}` failed with {type(error).__name__}{f' (HTTP {status})' if status else ''}"
    if not tries.repeatable:
        return (
            f"{cause}. The outcome is unknown: it may have taken effect. Do not repeat this call; "
            "check first what became of it, or tell the user."
        )
    return f"{cause}; {tries.why}. It is not available at the moment: go on without it, or tell the user."
