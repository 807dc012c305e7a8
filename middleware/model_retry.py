"""`ModelRetry`: asks the model again after a transient error, and then other models."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

from langchain.agents.middleware import AgentState, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langgraph.types import Command
from tenacity.stop import stop_base
from tenacity.wait import wait_base

from agentkit.errors import ConfigurationError
from agentkit.events import emit
from agentkit.exits import Exit
from agentkit.middleware_base import Named
from agentkit.retry import OnFailure, RetryPolicy, Tries, add_counts
from agentkit.transient import RetryOn, is_transient, status_of

__all__ = ["Fallback", "ModelRetry"]

_TEXT: Final = "I could not get an answer from the model just now. Please try again later."
_REFUSED: Final = frozenset({401, 402, 403, 404})  # this model cannot serve now; another one may
_UNPAID: Final = "insufficient_quota"
# What names a model or its endpoint: never handed on to another model.
_OWN: Final = frozenset(
    {"api_key", "base_url", "deployment_name", "endpoint", "model", "model_id", "model_name", "name"}
)


@dataclass(frozen=True, slots=True)
class Fallback:
    """A model to ask when those before it failed."""

    model: str | BaseChatModel
    """The model, or its name (`"openai:gpt-5.5"`)."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Its own model settings, besides those of the request that it knows."""


class _State(AgentState[Any]):
    model_retries: Annotated[dict[str, int] | None, PrivateStateAttr, add_counts]


class ModelRetry(Named):
    """Asks again after transient errors; when a model stays out of reach, asks the next one.

    Errors that are not transient are raised at once, except that a model which refuses service (HTTP 401, 402, 403,
    404, a spent quota) is passed over if there is a fallback.

    Args:
        attempts: Calls of one model for one answer in all, those of other retries included. Default: 3.
        fallbacks: Models to ask next, in order: models, names, or `Fallback` with settings of its own. Settings of the
            request that a fallback does not know are dropped. Default: none.
        retry_on: Which errors: exception types, or a function of the exception. Default: time-outs, lost connections,
            HTTP 429 and 5xx, replies cut short, corrupt chunks.
        wait: A tenacity wait strategy, in seconds. Default: random, up to 0.5, 1, 2, ... 30.
        stop: A tenacity stop strategy, besides `attempts` and `deadline`. Default: none.
        deadline: Seconds since a model's first attempt after which no other is begun. Default: 120.
        max_retry_after: The longest `Retry-After`, in seconds, that is waited for. Default: 60.
        budget: Retries per user turn, over all models. Default: 20.
        on_failure: What becomes of a transient failure that remains: `"raise"`; `"message"`, a closing message that
            ends the run; or a function that makes its text from the exception. Default: `"raise"`.
        name: The middleware's name, for several instances in one agent. Default: `"ModelRetry"`.

    Raises:
        ConfigurationError: If a number cannot be meant, or `fallbacks` is no list.
    """

    state_schema = _State

    def __init__(
        self,
        *,
        attempts: int = 3,
        fallbacks: Sequence[str | BaseChatModel | Fallback] = (),
        retry_on: RetryOn = is_transient,
        wait: wait_base | None = None,
        stop: stop_base | None = None,
        deadline: float | None = 120.0,
        max_retry_after: float = 60.0,
        budget: int | None = 20,
        on_failure: OnFailure = "raise",
        name: str = "ModelRetry",
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
        if isinstance(fallbacks, str):
            raise ConfigurationError(f"ModelRetry: fallbacks is a list of models; write fallbacks=[{fallbacks!r}].")
        self._fallbacks = [_built(fallback) for fallback in fallbacks]
        self._budget = budget
        self._on_failure = on_failure

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Count anew: a user turn begins."""
        return {"model_retries": None}

    def wrap_model_call(self, request: ModelRequest[Any]) -> Generator[Any, Any, Any]:
        """Ask each model in turn until one answers."""
        spent, left = 0, self._left(request.state)
        candidates = list(self._candidates(request))
        for position, candidate in enumerate(candidates, 1):
            budget = None if left is None else left - spent
            tries = self._policy.tries("model", id(candidate.model), _name_of(candidate.model), budget=budget)
            try:
                response = yield from tries.over(candidate)
            except Exception as error:
                spent += tries.retries
                transient = self._policy.takes(error)
                if position < len(candidates) and (transient or _refuses_service(error)):
                    _report_fallback(candidate.model, candidates[position].model, error)
                    continue
                if not transient:
                    raise
                response = self._failed(error, tries, len(candidates))
            else:
                spent += tries.retries
            return self._counted(response, spent)

    def _candidates(self, request: ModelRequest[Any]) -> Iterator[ModelRequest[Any]]:
        yield request
        for model, settings in self._fallbacks:
            known = {name: value for name, value in request.model_settings.items() if _knows(model, name)}
            yield request.override(model=model, model_settings={**known, **settings})

    def _left(self, state: Mapping[str, Any]) -> int | None:
        if self._budget is None:
            return None
        counts: dict[str, int] = state.get("model_retries") or {}
        return self._budget - counts.get(self.name, 0)

    def _failed(self, error: Exception, tries: Tries, models: int) -> Any:
        """What stands in for an answer, and says that the run ends for that."""
        asked = f" ({models} models were asked)" if models > 1 else ""
        if self._on_failure == "raise":
            error.add_note(f"{self.name} gave up: {tries.why}{asked}")
            raise error
        text = self._on_failure(error) if callable(self._on_failure) else _TEXT
        failed = type(error).__name__
        told = f"{self.name} ends the run with a message, since the model failed with {failed}"
        emit("agent.degraded", told, level=logging.WARNING, reason_code="model_unavailable", error_type=failed)
        ended = Exit("failures", f"the model failed with {type(error).__name__}; {tries.why}{asked}", self.name)
        response: ModelResponse[Any] = ModelResponse(result=[AIMessage(text)])
        return ExtendedModelResponse(model_response=response, command=Command(update={"exit": ended.record()}))

    def _counted(self, response: Any, retries: int) -> Any:
        """The response, with the retries that it took noted in state."""
        if not retries:
            return response
        counts = {"model_retries": {self.name: retries}}
        if isinstance(response, ExtendedModelResponse):
            assert response.command is not None and isinstance(response.command.update, dict)
            return replace(response, command=Command(update={**response.command.update, **counts}))
        return ExtendedModelResponse(model_response=response, command=Command(update=counts))


def _built(fallback: str | BaseChatModel | Fallback) -> tuple[BaseChatModel, Mapping[str, Any]]:
    given = fallback if isinstance(fallback, Fallback) else Fallback(fallback)
    model = init_chat_model(given.model) if isinstance(given.model, str) else given.model
    return model, given.settings


def _knows(model: BaseChatModel, setting: str) -> bool:
    """Whether a setting that was meant for another model means something to this one: it has a field of that name."""
    cls = type(model)
    names = {"stop", *cls.model_fields, *(info.alias for info in cls.model_fields.values() if info.alias)}
    return setting not in _OWN and (setting in names or setting in inspect.signature(cls.bind_tools).parameters)


def _refuses_service(error: Exception) -> bool:
    return status_of(error) in _REFUSED or getattr(error, "code", None) == _UNPAID


def _report_fallback(before: BaseChatModel, after: BaseChatModel, error: Exception) -> None:
    names, failed = (_name_of(before), _name_of(after)), type(error).__name__
    text = f"{names[0]} failed with {failed}, {names[1]} is asked"
    emit("model.fallback", text, level=logging.WARNING, from_model=names[0], to_model=names[1], reason_code=failed)


def _name_of(model: BaseChatModel) -> str:
    named = (getattr(model, attribute, None) for attribute in ("model_name", "model"))
    return next((name for name in named if isinstance(name, str) and name), type(model).__name__)
