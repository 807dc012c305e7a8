"""ModelRetry: when the model is asked again, when another one is, and how a run ends when none answers."""

import json
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import ModelRetryMiddleware, wrap_model_call
from langchain_core.exceptions import ModelAPIError, ModelInvalidRequestError, ModelRateLimitError
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel
from tenacity import wait_fixed

from agentkit import Middleware, create_agent, exit_of
from agentkit.errors import TruncatedReply, UnreadableReply
from agentkit.middleware import Fallback, ModelRetry
from agentkit.testing import ENTRY_POINTS, EntryPoint, MiddlewareContract, Request, ScriptedModel, run


class HttpError(Exception):
    """As HTTP clients raise them: the status and the headers stand on a response."""

    def __init__(self, status: int, code: str | None = None, **headers: str) -> None:
        super().__init__(f"HTTP {status}")
        self.code = code
        self.response = type("Response", (), {"status_code": status, "headers": headers})()


class Settings(Middleware):
    """Sets model settings, as a user's middleware would for the first model."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = settings

    def wrap_model_call(self, request: Any) -> Any:
        return (yield request.override(model_settings=self.settings))


class Picky(ScriptedModel):
    """A model that refuses settings it does not know, as providers do."""

    temperature: float | None = None
    allowed: ClassVar[set[str]] = {"temperature", "stop"}

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        unknown = kwargs.keys() - self.allowed - {"tools", "tool_choice"}
        if unknown:
            raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
        return super()._generate(messages, stop, run_manager, **kwargs)


def failing(*errors: Exception) -> ScriptedModel:
    return ScriptedModel(*errors, repeat=True)


@pytest.fixture(params=ENTRY_POINTS)
def entry(request: pytest.FixtureRequest) -> EntryPoint:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionResetError(),
        HttpError(429),
        HttpError(529),
        ModelRateLimitError("slow down"),
        ModelAPIError("oops"),
    ],
    ids=repr,
)
def test_the_model_is_asked_again_after_a_transient_error(entry: EntryPoint, error: Exception, clock: Any) -> None:
    model = ScriptedModel(error, "hello")
    ended = run(create_agent(model, middleware=[ModelRetry()]), "hi", entry=entry)
    assert ended.text == "hello" and model.calls == 2 and len(clock.waits) == 1
    assert len(ended.messages) == 2


@pytest.mark.parametrize(
    "error", [KeyError("x"), HttpError(400), ModelInvalidRequestError("no"), HttpError(429, code="insufficient_quota")]
)
def test_other_errors_are_raised_at_once(entry: EntryPoint, error: Exception, clock: Any) -> None:
    model = failing(error)
    ended = run(create_agent(model, middleware=[ModelRetry()]), "hi", entry=entry, catch=True)
    assert ended.error is error and model.calls == 1 and clock.waits == []


def test_what_remains_is_raised_with_a_note(entry: EntryPoint, clock: Any) -> None:
    model = failing(TimeoutError("read"))
    error = run(create_agent(model, middleware=[ModelRetry()]), "hi", entry=entry, catch=True).error
    assert isinstance(error, TimeoutError) and model.calls == 3
    assert any("ModelRetry gave up: it was tried 3 times" in note for note in error.__notes__)


def test_what_remains_can_end_the_run_with_a_message(entry: EntryPoint, clock: Any) -> None:
    for on_failure, text in (("message", "I could not get an answer"), (lambda e: f"no {type(e).__name__}", "no Time")):
        retry = ModelRetry(on_failure=on_failure)  # type: ignore[arg-type]
        ended = run(create_agent(failing(TimeoutError()), middleware=[retry]), "hi", entry=entry)
        assert ended.text.startswith(text)
        why = exit_of(ended.raw)
        assert why is not None and (why.reason, why.source) == ("failures", "ModelRetry")
        assert "TimeoutError" in why.detail


def test_a_stream_cut_short_is_not_asked_for_more_often_than_allowed(clock: Any) -> None:
    chunk = AIMessageChunk(content="half an ans", response_metadata={"model_provider": "openai"})
    cut: list[Any] = [chunk, ConnectionError("peer closed")]
    model = ScriptedModel(cut, cut, "whole")
    ended = run(create_agent(model, middleware=[ModelRetry()]), "hi", entry="stream")
    assert ended.text == "whole" and model.calls == 3


@pytest.mark.parametrize("broken", ["cut off", "corrupt"])
def test_tries_of_the_loop_itself_count_and_no_retry_comes_on_top(entry: EntryPoint, broken: str, clock: Any) -> None:
    half = AIMessageChunk(content="half an ans", response_metadata={"model_provider": "openai"})
    step: Any = [half] if broken == "cut off" else json.JSONDecodeError("cut", "{", 1)
    model = ScriptedModel(step, repeat=True)
    error = run(create_agent(model, middleware=[ModelRetry()]), "hi", entry=entry, catch=True).error
    assert isinstance(error, TruncatedReply | UnreadableReply) and model.calls == 3
    model = ScriptedModel(step, repeat=True)
    agent = create_agent(model, middleware=[ModelRetry(fallbacks=[ScriptedModel("other")])])
    assert run(agent, "hi", entry=entry).text == "other" and model.calls == 3
    model = ScriptedModel(step, step, step, "whole")
    assert run(create_agent(model, middleware=[ModelRetry(attempts=4)]), "hi", entry=entry).text == "whole"


def test_retry_after_is_honoured_up_to_the_cap(clock: Any) -> None:
    model = ScriptedModel(HttpError(429, **{"retry-after": "5"}), "hello")
    run(create_agent(model, middleware=[ModelRetry(wait=wait_fixed(0))]), "hi")
    assert 5 <= clock.waits[0] <= 6
    clock.waits.clear()
    model = failing(HttpError(429, **{"retry-after": "3600"}))
    ended = run(create_agent(model, middleware=[ModelRetry(on_failure="message")]), "hi")
    assert clock.waits == [] and model.calls == 1 and ended.text


@pytest.mark.parametrize(
    "error", [TimeoutError(), HttpError(401), HttpError(404), HttpError(429, code="insufficient_quota")], ids=repr
)
def test_fallbacks_are_asked_in_order(entry: EntryPoint, error: Exception, clock: Any) -> None:
    first, second, third = failing(error), failing(HttpError(503)), ScriptedModel("third")
    ended = run(create_agent(first, middleware=[ModelRetry(fallbacks=[second, third])]), "hi", entry=entry)
    assert ended.text == "third"
    assert first.calls == (3 if isinstance(error, TimeoutError) else 1) and second.calls == 3


def test_a_bug_is_not_passed_over(clock: Any) -> None:
    fallback = ScriptedModel("never")
    error = run(create_agent(failing(KeyError("x")), middleware=[ModelRetry(fallbacks=[fallback])]), "hi", catch=True)
    assert isinstance(error.error, KeyError) and fallback.calls == 0


def test_settings_that_a_fallback_does_not_know_are_dropped(entry: EntryPoint, clock: Any) -> None:
    first, second = failing(HttpError(404)), Picky(steps=["second"])
    settings = Settings(reasoning_effort="high", temperature=0.2, model="first-model")
    ended = run(
        create_agent(first, middleware=[settings, ModelRetry(fallbacks=[second])]), "hi", entry=entry, catch=True
    )
    assert ended.error is None and ended.text == "second"
    assert first.requests[0].kwargs == {"reasoning_effort": "high", "temperature": 0.2, "model": "first-model"}
    assert second.requests[0].kwargs == {"temperature": 0.2}


def test_a_fallback_has_settings_of_its_own(clock: Any) -> None:
    first, second = failing(HttpError(404)), ScriptedModel("second")
    retry = ModelRetry(fallbacks=[Fallback(second, {"top_k": 3})])
    run(create_agent(first, middleware=[Settings(reasoning_effort="high"), retry]), "hi")
    assert second.requests[0].kwargs == {"top_k": 3}


def test_a_structured_answer_is_asked_of_the_fallback_in_its_own_way(clock: Any) -> None:
    class Answer(BaseModel):
        number: int

    from agentkit.testing import ai, tool_call

    second = ScriptedModel(ai("", tool_call("Answer", {"number": 4}, "a")))
    agent = create_agent(failing(HttpError(503)), middleware=[ModelRetry(fallbacks=[second])], response_format=Answer)
    assert run(agent, "2 + 2?").values["structured_response"] == Answer(number=4)


def test_the_budget_counts_over_the_turn_and_starts_anew(entry: EntryPoint, clock: Any) -> None:
    model = failing(TimeoutError())
    agent = create_agent(
        model, middleware=[ModelRetry(budget=1, attempts=9, on_failure="message")], checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "t"}}
    run(agent, "hi", config, entry=entry)
    assert model.calls == 2
    run(agent, "again", config, entry=entry)
    assert model.calls == 4


@pytest.mark.parametrize(
    "stack",
    [
        lambda: [ModelRetry(name="a"), ModelRetry(name="b")],
        lambda: [ModelRetry(), ModelRetryMiddleware(on_failure="error", initial_delay=0)],
        lambda: [ModelRetryMiddleware(on_failure="error", initial_delay=0), ModelRetry()],
        lambda: [ModelRetryMiddleware(initial_delay=0), ModelRetry()],
    ],
)
@pytest.mark.parametrize("call", ["invoke", "ainvoke"])
def test_nested_retries_do_not_multiply(stack: Callable[[], list[Any]], call: EntryPoint, clock: Any) -> None:
    model = failing(TimeoutError())
    run(create_agent(model, middleware=stack()), "hi", entry=call, catch=True)
    assert model.calls == 3


def test_a_wrap_that_asks_twice_on_purpose_gets_all_attempts_twice(clock: Any) -> None:
    @wrap_model_call
    def twice(request: Any, handler: Any) -> Any:
        handler(request)
        return handler(request)

    model = ScriptedModel(TimeoutError(), TimeoutError(), "draft", TimeoutError(), TimeoutError(), "final")
    assert run(create_agent(model, middleware=[twice, ModelRetry()]), "hi").text == "final"


def test_a_wrap_that_changes_the_request_after_a_failure_is_heard(clock: Any) -> None:
    @wrap_model_call
    def shorter(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except TimeoutError:
            return handler(request.override(messages=request.messages[-1:]))

    def answer(request: Request) -> Any:
        return TimeoutError() if len(request.messages) > 1 else "short"

    model = ScriptedModel(answer, repeat=True)
    agent = create_agent(model, middleware=[shorter, ModelRetry()])
    assert run(agent, [("user", "a"), ("user", "b")]).text == "short"  # type: ignore[list-item]


@pytest.mark.parametrize("call", ["invoke", "ainvoke"])
def test_it_works_under_langchains_own_factory(call: EntryPoint, clock: Any) -> None:
    model = ScriptedModel(TimeoutError(), TimeoutError(), "hello")
    ended = run(langchain_create_agent(model, middleware=[ModelRetry()]), "hi", entry=call)
    assert ended.text == "hello" and model.calls == 3
    down = langchain_create_agent(failing(TimeoutError()), middleware=[ModelRetry(on_failure="message")])
    assert run(down, "hi", entry=call).text.startswith("I could not get an answer")


class TestModelRetryContract(MiddlewareContract):
    def make(self) -> ModelRetry:
        return ModelRetry()


class TestModelRetryMessageContract(MiddlewareContract):
    handles_model_errors = True

    def make(self) -> ModelRetry:
        return ModelRetry(retry_on=Exception, on_failure="message", wait=wait_fixed(0))
