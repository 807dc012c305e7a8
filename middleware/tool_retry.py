"""`ToolRetry`: tries a tool call again where that is harmless and may help."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command
from tenacity.stop import stop_base
from tenacity.wait import wait_base

from agentkit import Middleware
from agentkit.errors import ToolTimeout
from agentkit.retry import OnFailure, RetryPolicy, Tries, add_counts
from agentkit.tools import contract_of
from agentkit.transcript import UNKNOWN_OUTCOME
from agentkit.transient import RetryOn, is_transient, status_of

__all__ = ["ToolRetry"]


class _State(AgentState[Any]):
    tool_retries: Annotated[dict[str, int] | None, PrivateStateAttr, add_counts]


class ToolRetry(Middleware):
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
        budget: Retries per user turn, over all tools; parallel calls share what was left when they began. Default: 20.
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
        super().__init__()
        policy = RetryPolicy(
            attempts=attempts, retry_on=retry_on, stop=stop, deadline=deadline, max_retry_after=max_retry_after
        )
        self._policy = policy if wait is None else replace(policy, wait=wait)
        self._budget = budget
        self._on_failure = on_failure
        self._name = name

    @property
    def name(self) -> str:
        """The middleware's name."""
        return self._name

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Count anew: a user turn begins."""
        return {"tool_retries": None}

    def wrap_tool_call(self, request: ToolCallRequest) -> Generator[Any, Any, Any]:
        """Call, and call again while that is harmless and may help."""
        contract = contract_of(request.tool)
        call = request.tool_call
        tries = self._policy.tries(
            call["id"], call["name"], budget=self._left(request.state), repeatable=contract.repeatable
        )
        try:
            result = yield from tries.over(request)
        except Exception as error:
            if not self._policy.takes(error):
                raise
            result = self._failed(request, error, tries)
        return self._counted(result, tries.retries)

    def _left(self, state: Any) -> int | None:
        if self._budget is None:
            return None
        counts: dict[str, int] = (state.get("tool_retries") if isinstance(state, Mapping) else None) or {}
        return self._budget - counts.get(self.name, 0)

    def _failed(self, request: ToolCallRequest, error: Exception, tries: Tries) -> ToolMessage:
        """What the model is told when a transient failure remains."""
        name = request.tool_call["name"]
        if self._on_failure == "raise":
            error.add_note(f"{self.name} gave up the call of `{name}`: {tries.why}")
            raise error
        text = self._on_failure(error) if callable(self._on_failure) else _told(name, error, tries)
        extra = {} if contract_of(request.tool).effect == "read" else {UNKNOWN_OUTCOME: True}
        return ToolMessage(
            text, tool_call_id=request.tool_call["id"], name=name, status="error", additional_kwargs=extra
        )

    def _counted(self, result: Any, retries: int) -> Any:
        """The result, with the retries that it took noted in state."""
        if not retries:
            return result
        counts = {"tool_retries": {self.name: retries}}
        if isinstance(result, ToolMessage):
            return Command(update={"messages": [result], **counts})
        if isinstance(result, Command) and isinstance(result.update, dict) and result.graph is None:
            return replace(result, update={**result.update, **counts})
        return result  # a command to a parent graph, which keeps no counts


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
