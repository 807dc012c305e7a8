"""Field reports, family A: hooks, jumps and the ways a run ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from typing import Any, NotRequired

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelCallLimitMiddleware,
    ModelResponse,
    ToolCallLimitMiddleware,
    hook_config,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from agentkit import Limits, Middleware, Outcome, Run, create_agent, exit_of, thread
from agentkit.testing import ENTRY_POINTS, EntryPoint, ScriptedModel, ai, assert_paired, invalid_call, run, tool_call

Maker = Callable[..., Any]


class Answer(BaseModel):
    value: int


class Noting(AgentMiddleware[Any, Any, Any]):
    """Writes each node hook that runs into a list."""

    def __init__(self, label: str, log: list[str]) -> None:
        super().__init__()
        self.label, self.log = label, log

    @property
    def name(self) -> str:
        return self.label

    def before_agent(self, state: Any, runtime: Any) -> None:
        self.log.append(f"{self.label}.before_agent")

    def before_model(self, state: Any, runtime: Any) -> None:
        self.log.append(f"{self.label}.before_model")

    def after_model(self, state: Any, runtime: Any) -> None:
        self.log.append(f"{self.label}.after_model")

    def after_agent(self, state: Any, runtime: Any) -> None:
        self.log.append(f"{self.label}.after_agent")


class CountsEndings(AgentMiddleware[Any, Any, Any]):
    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def after_agent(self, state: Any, runtime: Any) -> None:
        self.n += 1


def jumper(hook: str, target: str) -> AgentMiddleware[Any, Any, Any]:
    """A middleware whose hook always jumps."""

    @hook_config(can_jump_to=[target])  # type: ignore[list-item]
    def jump(self: Any, state: Any, runtime: Any) -> Any:
        return {"jump_to": target}

    jumps: AgentMiddleware[Any, Any, Any] = type(f"Jumps_{hook}", (AgentMiddleware,), {hook: jump})()
    return jumps


@pytest.mark.parametrize("with_tools", [True, False])
def test_lc_40136_the_first_before_model_may_jump_to_the_model(entry: EntryPoint, add: Any, with_tools: bool) -> None:
    class JumpsOnce(AgentMiddleware[Any, Any, Any]):
        n = 0

        @hook_config(can_jump_to=["model"])
        def before_model(self, state: Any, runtime: Any) -> Any:
            self.n += 1
            return {"jump_to": "model"} if self.n == 1 else None

    hook, model = JumpsOnce(), ScriptedModel("answer")
    agent = create_agent(model, [add.tool] if with_tools else [], middleware=[hook])
    assert run(agent, "hi", entry=entry).text == "answer"
    assert (hook.n, model.calls) == (2, 1)


class ReadyMade(AgentMiddleware[Any, Any, Any]):
    """Answers the first model call itself, with a tool call and its result."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def _ready(self) -> ModelResponse[Any] | None:
        self.n += 1
        if self.n > 1:
            return None
        call = ai("", tool_call("add", {"a": 1, "b": 1}, "ready"))
        return ModelResponse(result=[call, ToolMessage("2", tool_call_id="ready", name="add")])

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return self._ready() or handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return self._ready() or await handler(request)


@pytest.mark.parametrize(
    ("tools", "hooks", "wrap", "structured"), list(itertools.product([True, False], repeat=4)), ids=str
)
def test_lc_38351_every_target_of_a_router_exists(
    call: EntryPoint, add: Any, tools: bool, hooks: bool, wrap: bool, structured: bool
) -> None:
    middleware: list[Any] = [ReadyMade()] if wrap else []
    middleware += [Noting("notes", [])] if hooks else []
    last = ai("", tool_call("Answer", {"value": 1}, "s")) if structured else "done"
    model = ScriptedModel(last, repeat=True)
    agent = create_agent(
        model,
        [add.tool] if tools else [],
        middleware=middleware,
        response_format=ToolStrategy(Answer) if structured else None,
    )
    ended = run(agent, "hi", entry=call)
    assert_paired(model, ended.messages)
    assert add.ran == []
    if structured:
        assert ended.values["structured_response"] == Answer(value=1)
    else:
        assert ended.text == "done"


def endings() -> Iterator[tuple[str, list[Callable[[], Any]], Any, dict[str, Any]]]:
    """Name, middlewares besides the counting one, the model's step, arguments of create_agent."""
    again = ai("", tool_call("add", {"a": 1, "b": 1}))
    yield "answer", [], "ok", {}
    for hook in ("before_agent", "before_model", "after_model"):
        yield f"jump from {hook}", [lambda hook=hook: jumper(hook, "end")], "ok", {}  # type: ignore[misc]
    yield "model call limit", [lambda: ModelCallLimitMiddleware(run_limit=1, exit_behavior="end")], again, {}
    yield "tool call limit", [lambda: ToolCallLimitMiddleware(run_limit=1, exit_behavior="end")], again, {}
    yield "return_direct", [], ai("", tool_call("direct", {"x": 1})), {}
    yield "structured", [], ai("", tool_call("Answer", {"value": 1})), {"response_format": ToolStrategy(Answer)}
    yield "step budget", [], again, {"limits": Limits(model_calls=2)}
    yield "unreadable calls", [], ai("", invalid_call("add")), {}
    yield "the same call failed", [], ai("", tool_call("unknown")), {}


@pytest.mark.parametrize("counter_first", [True, False], ids=["counter-first", "counter-last"])
@pytest.mark.parametrize(("others", "step", "options"), [e[1:] for e in endings()], ids=[e[0] for e in endings()])
def test_lcjs_11207_every_ending_runs_after_agent_once(
    call: EntryPoint, add: Any, act: Maker, others: Any, step: Any, options: Any, counter_first: bool
) -> None:
    counter = CountsEndings()
    made = [make() for make in others]
    agent = create_agent(
        ScriptedModel(step, repeat=True),
        [add.tool, act("direct", return_direct=True).tool],
        middleware=[counter, *made] if counter_first else [*made, counter],
        **options,
    )
    ended = run(agent, "hi", entry=call)
    assert counter.n == 1
    assert exit_of(ended.raw) is not None


def test_lcjs_11241_a_limit_per_run_starts_anew_and_one_per_thread_does_not(entry: EntryPoint, add: Any) -> None:
    def second_turn_calls(**options: Any) -> int:
        def answer(request: Any) -> Any:
            return "fine" if request.turn else ai("", tool_call("add", {"a": 1, "b": 1}))

        model = ScriptedModel(answer, repeat=True)
        agent = create_agent(model, [add.tool], checkpointer=InMemorySaver(), **options)
        run(agent, "one", thread("t"), entry=entry)
        before = model.calls
        run(agent, "two", thread("t"), entry=entry)
        return model.calls - before

    assert second_turn_calls(middleware=[ModelCallLimitMiddleware(run_limit=1)]) == 1
    assert second_turn_calls(middleware=[ModelCallLimitMiddleware(thread_limit=1)]) == 0
    assert second_turn_calls(limits=Limits(model_calls=1)) == 1


@pytest.mark.parametrize("counter_first", [True, False])
@pytest.mark.parametrize("with_tools", [True, False])
def test_lcjs_11652_a_jump_to_the_model_passes_before_model(
    entry: EntryPoint, add: Any, with_tools: bool, counter_first: bool
) -> None:
    class SendsBackDrafts(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["model"])
        def after_model(self, state: Any, runtime: Any) -> Any:
            return {"jump_to": "model"} if state["messages"][-1].text == "draft" else None

    log: list[str] = []
    middleware: list[Any] = [Noting("notes", log), SendsBackDrafts()]
    model = ScriptedModel("draft", "final")
    agent = create_agent(
        model, [add.tool] if with_tools else [], middleware=middleware if counter_first else middleware[::-1]
    )
    assert run(agent, "hi", entry=entry).text == "final"
    assert model.calls == 2
    assert log.count("notes.before_model") == 2


def test_saa_4421_declaring_a_jump_does_not_jump(entry: EntryPoint, add: Any) -> None:
    log: list[str] = []

    def declared(name: str) -> Any:
        @hook_config(can_jump_to=["end"])
        def hook(self: Any, state: Any, runtime: Any) -> None:
            log.append(name)

        return hook

    hooks = ("before_agent", "before_model", "after_model", "after_agent")
    declares = type("Declares", (AgentMiddleware,), {name: declared(name) for name in hooks})()
    model = ScriptedModel(ai("", tool_call("add", {"a": 1, "b": 2})), "done")
    assert run(create_agent(model, [add.tool], middleware=[declares]), "hi", entry=entry).text == "done"
    assert add.ran == [(1, 2)]
    assert log == ["before_agent", "before_model", "after_model", "before_model", "after_model", "after_agent"]


class Observed(Middleware):
    """Keeps what is told at the end of each run."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        self.outcomes: list[Outcome] = []

    def before_agent(self, state: Any, runtime: Any) -> None:
        self.log.append("open")

    def around_run(self, run: Run) -> Generator[None, Outcome, None]:
        outcome = yield
        self.outcomes.append(outcome)
        self.log.append("close")


def test_lc_34165_one_finish_signal_with_the_reason_on_every_path(entry: EntryPoint, add: Any) -> None:
    def finished(*others: Any, **options: Any) -> tuple[str, object]:
        observed = Observed()
        again = ai("", tool_call("add", {"a": 1, "b": 1}))
        model = ScriptedModel(again, repeat=True) if options else ScriptedModel("ok")
        run(create_agent(model, [add.tool], middleware=[observed, *others], **options), "hi", entry=entry)
        (outcome,) = observed.outcomes
        return outcome.status, outcome.exit and outcome.exit.reason

    assert finished() == ("success", "answer")
    assert finished(jumper("before_model", "end")) == ("success", "jump")
    assert finished(limits=Limits(model_calls=2)) == ("limit", "step_budget")


def test_adk_7080_the_hook_sequence_is_that_of_the_script_on_all_entry_points(add: Any) -> None:
    class EndsInTheSecondRound(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["end"])
        def before_model(self, state: Any, runtime: Any) -> Any:
            return {"jump_to": "end"} if len(state["messages"]) > 1 else None

    def hooks(entry: EntryPoint, *more: Any) -> list[str]:
        log: list[str] = []
        model = ScriptedModel(ai("", tool_call("add", {"a": 1, "b": 2})), "done")
        agent = create_agent(model, [add.tool], middleware=[Noting("a", log), Noting("b", log), *more])
        run(agent, "hi", entry=entry)
        return log

    turn = ["a.before_model", "b.before_model", "b.after_model", "a.after_model"]
    start, end = ["a.before_agent", "b.before_agent"], ["b.after_agent", "a.after_agent"]
    for entry in ENTRY_POINTS:
        assert hooks(entry) == [*start, *turn, *turn, *end]
        assert hooks(entry, EndsInTheSecondRound()) == [*start, *turn, *turn[:2], *end]


def test_oswe_1281_what_was_opened_is_closed_when_the_model_fails(entry: EntryPoint) -> None:
    observed, broken = Observed(), RuntimeError("the provider is down")
    agent = create_agent(ScriptedModel(broken), [], middleware=[observed])
    with pytest.raises(RuntimeError, match="the provider is down") as raised:
        run(agent, "hi", entry=entry)
    assert raised.value is broken
    assert observed.log == ["open", "close"]
    assert observed.outcomes[0].status == "error"
    assert observed.outcomes[0].error is broken


class Visits(AgentState[Any]):
    visits: NotRequired[int]


@pytest.mark.parametrize("hook", ["before_agent", "before_model", "after_model", "after_agent"])
def test_lcjs_10291_what_a_hook_writes_is_stored_without_the_help_of_another(entry: EntryPoint, hook: str) -> None:
    seen: list[int] = []

    def count(self: Any, state: Any, runtime: Any) -> Any:
        seen.append(state.get("visits", 0))
        return {"visits": state.get("visits", 0) + 1}

    counts = type("Counts", (AgentMiddleware,), {hook: count, "state_schema": Visits})()
    agent = create_agent(ScriptedModel("a", "b"), [], middleware=[counts], checkpointer=InMemorySaver())
    run(agent, "one", thread("t"), entry=entry)
    ended = run(agent, "two", thread("t"), entry=entry)
    assert seen == [0, 1]
    assert ended.values["visits"] == 2
