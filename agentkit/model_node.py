"""The model step: from state to a request, through the wraps to the model, and back to an update of state."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import is_
from typing import Any

from langchain.agents.middleware import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, RemoveMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.errors import InvalidUpdateError
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime
from langgraph.types import Command

from agentkit import executions, structured
from agentkit import limits as counting
from agentkit.binding import Binder, Binding, BoundModel
from agentkit.chain import Layer, adrive, compose, drive
from agentkit.dialogue import Attempt, converse
from agentkit.errors import HookError, MissingStructuredOutput
from agentkit.exits import Exit
from agentkit.limits import Limits, Tally
from agentkit.reply import refuse_unsafe_calls
from agentkit.state import ASKED_AGAIN, EXIT, INNER, TALLY, updates_of
from agentkit.streamed import listen
from agentkit.transcript import SYNTHETIC, close_calls, is_well_formed
from agentkit.usage import used_in_vain

__all__ = ["ModelStep", "model_layer"]

State = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a layer of the onion returned: the response, and the commands that go with it, inner ones first."""

    response: ModelResponse[Any]
    commands: tuple[Command[Any], ...] = ()


@dataclass(slots=True)
class _Exchange:
    """What is known of one model step while it goes on."""

    checked: bool = False
    """Whether what is sent is known to be well-formed."""
    attempts: int = 0
    replies: list[AIMessage] = field(default_factory=list)
    """All replies, those that were asked again among them."""
    parsed: structured.Parsed | None = None
    formatted: bool = False
    """Whether a structured answer was asked for."""

    def heard(self, reply: AIMessage) -> AIMessage:
        """Note a reply."""
        self.replies.append(reply)
        return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStep:
    """Calls the model once through the wraps.

    Attributes:
        model: The agent's model.
        binder: How requests are bound.
        tools: What is offered by default: tools and provider tools.
        system_message: Put before the messages at each call.
        name: Set on every reply.
        limits: When the run is ended instead.
        plain: Fields that take one value a step.
        sync_layers: The wraps, outermost first.
        async_layers: The same in their async form.
    """

    model: BaseChatModel
    binder: Binder
    tools: Sequence[BaseTool | dict[str, Any]] = ()
    system_message: SystemMessage | None = None
    name: str | None = None
    limits: Limits = field(default_factory=Limits)
    plain: Collection[str] = frozenset()
    sync_layers: Sequence[Layer] = ()
    async_layers: Sequence[Layer] = ()

    def run(self, state: State, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """One model step, sync."""
        whole = is_well_formed(state["messages"])
        request, tally, ending = self._prepare(state, runtime, whole)
        if ending is not None:
            return self._ended(request, tally, ending, state)
        exchange = _Exchange(whole and not self.sync_layers)  # a wrap may change what is sent
        with executions.ledger():
            outcome = compose(self.sync_layers, partial(self._call, exchange), is_async=False)(request)
        return self._update(state, request, tally, exchange, outcome)

    async def arun(self, state: State, runtime: Runtime[Any], config: RunnableConfig) -> Any:
        """One model step, async."""
        whole = is_well_formed(state["messages"])
        request, tally, ending = self._prepare(state, runtime, whole)
        if ending is not None:
            return self._ended(request, tally, ending, state)
        exchange = _Exchange(whole and not self.async_layers)
        with executions.ledger():
            outcome = await compose(self.async_layers, partial(self._acall, exchange), is_async=True)(request)
        return self._update(state, request, tally, exchange, outcome)

    # ---- the core of the onion

    def _call(self, exchange: _Exchange, request: ModelRequest[Any]) -> _Outcome:
        binding = self.binder.bind(request)

        def ask(attempt: Attempt) -> AIMessage:
            ear, config = listen(request.model, get_config())
            model = _target(binding, request, attempt, exchange)
            return exchange.heard(ear.checked(model.invoke(_prompt(request, attempt), config)))

        reply = drive(converse(binding, request.messages, self.limits, checked=exchange.checked), ask)
        return self._read(reply, binding, exchange)

    async def _acall(self, exchange: _Exchange, request: ModelRequest[Any]) -> _Outcome:
        binding = self.binder.bind(request)

        async def ask(attempt: Attempt) -> AIMessage:
            ear, config = listen(request.model, get_config())
            model = _target(binding, request, attempt, exchange)
            return exchange.heard(ear.checked(await model.ainvoke(_prompt(request, attempt), config)))

        reply = await adrive(converse(binding, request.messages, self.limits, checked=exchange.checked), ask)
        return self._read(reply, binding, exchange)

    def _read(self, reply: AIMessage, binding: Binding, exchange: _Exchange) -> _Outcome:
        if self.name:
            reply = reply.model_copy(update={"name": self.name})
        parsed = structured.parse(reply, binding.strategy, binding.offered, self.binder.declared)
        exchange.parsed = parsed
        exchange.formatted = binding.strategy is not None
        return _Outcome(ModelResponse(result=parsed.messages, structured_response=parsed.value))

    # ---- before and after

    def _prepare(
        self, state: State, runtime: Runtime[Any], whole: bool
    ) -> tuple[ModelRequest[Any], Tally, Exit | None]:
        messages = list(state["messages"]) if whole else close_calls(state["messages"])
        tally = counting.count_results(state.get(TALLY) or {}, messages)
        shown: Any = {key: value for key, value in state.items() if key not in INNER}
        request: ModelRequest[Any] = ModelRequest(
            model=self.model,
            tools=list(self.tools),
            system_message=self.system_message,
            response_format=self.binder.response_format,
            messages=messages,
            tool_choice=None,
            state=shown,
            runtime=runtime,
        )
        return request, tally, counting.before_call(self.limits, tally)

    def _ended(self, request: ModelRequest[Any], tally: Tally, ending: Exit, state: State) -> dict[str, Any]:
        """A limit ends the run before the model is called."""
        closing = self._closing(ending)
        return {
            "messages": [*_history(state["messages"], request.messages), closing],
            EXIT: ending.record(),
            TALLY: {**tally, "stopped": True},
        }

    def _update(
        self, state: State, request: ModelRequest[Any], tally: Tally, exchange: _Exchange, outcome: _Outcome
    ) -> Any:
        response = outcome.response
        result = [refuse_unsafe_calls(m) if isinstance(m, AIMessage) else m for m in response.result]
        reply = next((m for m in reversed(result) if isinstance(m, AIMessage)), None)
        parsed = exchange.parsed
        failed = parsed is not None and parsed.failed and reply is parsed.messages[0]
        tally = counting.count_reply(tally, reply, exchange.attempts, structured_failed=failed)
        if failed and tally["structured"] >= self.limits.structured_retries:
            assert parsed is not None
            raise MissingStructuredOutput(tally["structured"], str(parsed.error)) from parsed.error
        update: dict[str, Any] = {
            "messages": [*_history(state["messages"], request.messages), *result],
            TALLY: tally,
        }
        if ASKED_AGAIN in self.plain:
            in_vain = used_in_vain(exchange.replies, reply)
            update |= {ASKED_AGAIN: in_vain} if in_vain or state.get(ASKED_AGAIN) else {}
        ending = counting.after_reply(self.limits, tally)
        if ending is not None:
            update["messages"] = [*update["messages"], *_answers(reply), self._closing(ending)]
            update |= {EXIT: ending.record(), TALLY: {**tally, "stopped": True}}
        elif state.get(EXIT) is not None:
            update[EXIT] = None
        if response.structured_response is not None:
            update["structured_response"] = response.structured_response
        elif self.binder.response_format is not None or exchange.formatted:
            update["structured_response"] = None  # an earlier turn's answer is not this one's
        if not outcome.commands:
            return update
        self._check(update, outcome.commands)
        return [Command(update=update), *outcome.commands]

    def _closing(self, ending: Exit) -> AIMessage:
        text = counting.closing_text(ending)
        return AIMessage(text, name=self.name, response_metadata={SYNTHETIC: True, "exit": ending.reason})

    def _check(self, update: Mapping[str, Any], commands: Sequence[Command[Any]]) -> None:
        """Refuse what a wrap's command may not do."""
        written = set(update)
        for command in commands:
            for part, hint in _UNSUPPORTED.items():
                if getattr(command, part):
                    raise NotImplementedError(
                        f"Command {part} is not yet supported in wrap_model_call middleware.{hint}"
                    )
            for key, _ in updates_of(command):
                if key in self.plain and key in written:
                    raise InvalidUpdateError(
                        f"At key '{key}': two updates of one model step, and the field has no reducer. "
                        "Annotate the field with a reducer, or write it from one place."
                    )
                written.add(key)


_UNSUPPORTED = {
    "goto": " Use the jump_to state field with before_model/after_model hooks instead.",
    "resume": "",
    "graph": "",
}


def model_layer(wrap: Any, name: str) -> Layer:
    """A wrap_model_call as a layer: inner wraps' results are shown as `ModelResponse`, and their commands kept.

    After a retry only the last inner call's commands count.
    """
    return Layer(wrap, _response_of, partial(_close, name))


def _response_of(outcome: _Outcome) -> ModelResponse[Any]:
    return outcome.response


def _close(name: str, result: Any, inner: _Outcome | None) -> _Outcome:
    commands = inner.commands if inner is not None else ()
    if isinstance(result, ExtendedModelResponse):
        own = () if result.command is None else (result.command,)
        return _Outcome(result.model_response, (*commands, *own))
    if isinstance(result, AIMessage):
        return _Outcome(ModelResponse(result=[result], structured_response=None), commands)
    if isinstance(result, ModelResponse):
        return _Outcome(result, commands)
    raise HookError(
        name, "wrap_model_call", f"returned {type(result).__name__}; return a ModelResponse or an AIMessage."
    )


def _target(binding: Binding, request: ModelRequest[Any], attempt: Attempt, exchange: _Exchange) -> BoundModel:
    exchange.attempts += 1
    executions.note(id(request.model))
    return binding.model if attempt.with_tools else BoundModel.of(request.model.bind(**request.model_settings))


def _prompt(request: ModelRequest[Any], attempt: Attempt) -> list[AnyMessage]:
    system = [request.system_message] if request.system_message else []
    return [*system, *attempt.messages]


def _history(stored: Sequence[AnyMessage], sent: Sequence[AnyMessage]) -> list[BaseMessage]:
    """What to write so that the stored history becomes the request's, which wraps may have changed in place."""
    same = len(sent) >= len(stored) and all(map(is_, stored, sent))
    return list(sent[len(stored) :]) if same else [RemoveMessage(id=REMOVE_ALL_MESSAGES), *sent]


def _answers(reply: AIMessage | None) -> list[AnyMessage]:
    """Error results for the calls of a reply that ends the run."""
    return close_calls([reply])[1:] if reply is not None else []
