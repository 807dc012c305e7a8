"""Field reports, family D: budgets, loop gates, graceful exit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelCallLimitMiddleware,
    ToolCallLimitMiddleware,
)
from langchain.agents.structured_output import StructuredOutputError, ToolStrategy
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from agentkit import Limits, create_agent, exit_of, thread
from agentkit.errors import MissingStructuredOutput
from agentkit.testing import EntryPoint, Request, RunResult, ScriptedModel, ai, assert_paired, run, tool_call

Maker = Callable[..., Any]


class Answer(BaseModel):
    value: int


def reason(ended: RunResult) -> object:
    ending = exit_of(ended.raw)
    return ending and ending.reason


def fresh(name: str, args: Any = None) -> Callable[[Request], Any]:
    """A step that makes the same call for ever, each time with a new id."""
    return lambda request: ai("", tool_call(name, args, f"c{len(request.messages)}"))


@pytest.mark.parametrize("limit", [1, 3])
def test_lc_40753_an_invalid_structured_answer_is_asked_again_within_its_limit(entry: EntryPoint, limit: int) -> None:
    model = ScriptedModel(ai("", tool_call("Answer", {"value": "many"})), repeat=True)
    agent = create_agent(model, [], response_format=ToolStrategy(Answer), limits=Limits(structured_retries=limit))
    with pytest.raises(MissingStructuredOutput) as raised:
        run(agent, "hi", entry=entry)
    assert isinstance(raised.value, StructuredOutputError)
    assert model.calls == limit
    assert_paired(model)


def test_lc_40753_an_answer_within_the_limit_is_taken(entry: EntryPoint) -> None:
    wrong, right = ai("", tool_call("Answer", {"value": "many"})), ai("", tool_call("Answer", {"value": 4}))
    model = ScriptedModel(wrong, wrong, right)
    ended = run(create_agent(model, [], response_format=ToolStrategy(Answer)), "hi", entry=entry)
    assert ended.values["structured_response"] == Answer(value=4)
    assert_paired(model, ended.messages)


def test_lc_37961_looking_for_a_tool_that_does_not_exist_ends(entry: EntryPoint, add: Any) -> None:
    model = ScriptedModel(fresh("open_browser", {"url": "x"}), repeat=True)
    ended = run(create_agent(model, [add.tool], limits=Limits(same_call_failures=3)), "hi", entry=entry)
    assert model.calls <= 4
    assert reason(ended) == "repeated_call"
    assert ended.messages[-1].type == "ai" and ended.text
    assert_paired(model, ended.messages)


def test_lc_37961_the_default_brake_needs_no_configuration(call: EntryPoint, add: Any) -> None:
    model = ScriptedModel(fresh("open_browser"), repeat=True)
    ended = run(create_agent(model, [add.tool]), "hi", entry=call)
    assert model.calls <= 6
    assert reason(ended) == "repeated_call"


@pytest.mark.parametrize("then", ["answer", ""])
def test_lcjs_10090_an_empty_answer_after_results_is_not_the_end(entry: EntryPoint, act: Maker, then: str) -> None:
    look = act("look")
    steps = [ai("", tool_call("look", {"x": i}, f"c{i}")) for i in (1, 2)]
    model = ScriptedModel(*steps, "", then)
    limit = ToolCallLimitMiddleware(tool_name="look", run_limit=1)
    ended = run(create_agent(model, [look.tool], middleware=[limit]), "hi", entry=entry)
    assert look.ran == [1]
    assert model.calls == 4
    assert model.requests[3].tools == []
    if then:
        assert ended.text == "answer"
    else:
        assert "look 1" in ended.text
    assert_paired(model, ended.messages)


@pytest.mark.parametrize(("behaviour", "starts"), [("continue", 2), ("end", 0)])
def test_pyd_2978_a_budget_is_decided_before_the_batch_starts(
    entry: EntryPoint, add: Any, behaviour: Any, starts: int
) -> None:
    batch = ai("", *[tool_call("add", {"a": i, "b": i}, f"c{i}") for i in range(4)])
    model = ScriptedModel(batch, "done")
    limit = ToolCallLimitMiddleware(tool_name="add", run_limit=2, exit_behavior=behaviour)
    ended = run(create_agent(model, [add.tool], middleware=[limit]), "hi", entry=entry)
    assert len(add.ran) == starts
    assert_paired(model, ended.messages)


def failing(act: Maker) -> Any:
    """A tool that fails in the way that the model is told about."""

    def does(x: int) -> str:
        raise ToolException("not found")

    made = act("fetch", does)
    made.tool.handle_tool_error = True
    return made


def test_pyd_2311_a_batch_of_failures_counts_once(entry: EntryPoint, act: Maker) -> None:
    fetch, look = failing(act), act("look")
    batch = ai("", *[tool_call("fetch", {"x": i}, f"c{i}") for i in range(10)])
    model = ScriptedModel(batch, ai("", tool_call("look")), "done")
    ended = run(create_agent(model, [fetch.tool, look.tool], limits=Limits(failed_turns=2)), "hi", entry=entry)
    assert len(fetch.ran) == 10
    assert (ended.text, reason(ended)) == ("done", "answer")


def test_pyd_4940_an_unknown_name_beside_a_good_call_does_not_end_the_run(entry: EntryPoint, act: Maker) -> None:
    look = act("look")
    mixed = [ai("", tool_call("unknown", id="u"), tool_call("look", {"x": x}, "l")) for x in (1, 2)]
    model = ScriptedModel(*mixed, "done")
    ended = run(create_agent(model, [look.tool], limits=Limits(failed_turns=2)), "hi", entry=entry)
    assert look.ran == [1, 2]
    assert (ended.text, reason(ended)) == ("done", "answer")
    assert_paired(model, ended.messages)


def test_pyd_6388_a_call_that_fails_is_counted(entry: EntryPoint, act: Maker) -> None:
    fetch = failing(act)
    model = ScriptedModel(fresh("fetch"), fresh("fetch"), fresh("fetch"), "done")
    limit = ToolCallLimitMiddleware(tool_name="fetch", run_limit=2)
    ended = run(create_agent(model, [fetch.tool], middleware=[limit]), "hi", entry=entry)
    assert len(fetch.ran) == 2
    assert ended.text == "done"
    assert_paired(model, ended.messages)


def test_deer_2511_polling_with_the_same_arguments_may_go_on(entry: EntryPoint, act: Maker) -> None:
    answers = iter(["pending"] * 11 + ["done"])
    poll = act("poll", lambda x: next(answers))

    def answer(request: Request) -> Any:
        last = request.messages[-1]
        return "finished" if isinstance(last, ToolMessage) and last.text == "done" else fresh("poll")(request)

    model = ScriptedModel(answer, repeat=True)
    ended = run(create_agent(model, [poll.tool]), "hi", entry=entry)
    assert len(poll.ran) == 12
    assert (ended.text, reason(ended)) == ("finished", "answer")
    assert_paired(model, ended.messages)


def test_atr_80_the_order_of_arguments_does_not_make_another_call(entry: EntryPoint) -> None:
    def answer(request: Request) -> Any:
        args = {"a": 1, "b": 2} if request.turn % 2 else {"b": 2, "a": 1}
        return ai("", tool_call("unknown", args, f"c{request.turn}"))

    model = ScriptedModel(answer, repeat=True)
    ended = run(create_agent(model, [tool(_noop)], limits=Limits(same_call_failures=4)), "hi", entry=entry)
    assert model.calls == 4
    assert reason(ended) == "repeated_call"


def test_atr_80_a_new_turn_starts_at_one(entry: EntryPoint) -> None:
    def answer(request: Request) -> Any:
        return "no such tool" if request.turn == 2 else ai("", tool_call("unknown", {"a": 1}, f"c{request.turn}"))

    model = ScriptedModel(answer, repeat=True)
    agent = create_agent(model, [tool(_noop)], limits=Limits(same_call_failures=3), checkpointer=InMemorySaver())
    for _ in range(3):
        ended = run(agent, "hi", thread("t"), entry=entry)
        assert (ended.text, reason(ended)) == ("no such tool", "answer")
    assert model.calls == 9


def _noop() -> str:
    """Nothing."""
    return "nothing"


def test_da_1698_an_inner_agent_gets_no_more_than_what_is_left(call: EntryPoint, act: Maker) -> None:
    again = act("again")
    inner_model = ScriptedModel(lambda r: ai("", tool_call("again", {"x": r.turn}, f"c{r.turn}")), repeat=True)
    inner = create_agent(inner_model, [again.tool])

    @tool
    def delegate() -> str:
        """Ask another agent."""
        return str(inner.invoke({"messages": [("user", "go on")]})["messages"][-1].text)

    outer_model = ScriptedModel(ai("", tool_call("delegate")), "done")
    ended = run(create_agent(outer_model, [delegate]), "hi", {"recursion_limit": 10}, entry=call)
    assert inner_model.calls <= 10
    assert ended.text == "done"


class Looks(AgentMiddleware[Any, Any, Any]):
    """Four hooks that do nothing."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    @property
    def name(self) -> str:
        return f"looks-{self.number}"

    def before_agent(self, state: Any, runtime: Any) -> None:
        return None

    def before_model(self, state: Any, runtime: Any) -> None:
        return None

    def after_model(self, state: Any, runtime: Any) -> None:
        return None

    def after_agent(self, state: Any, runtime: Any) -> None:
        return None


@pytest.mark.parametrize("hooks", [0, 6])
def test_lc_36351_a_budget_counts_model_calls_whatever_the_number_of_hooks(
    call: EntryPoint, act: Maker, hooks: int
) -> None:
    again = act("again")
    model = ScriptedModel(lambda r: ai("", tool_call("again", {"x": r.turn}, f"c{r.turn}")), repeat=True)
    middleware = [Looks(i) for i in range(hooks)]
    agent = create_agent(model, [again.tool], middleware=middleware, limits=Limits(model_calls=7))
    ended = run(agent, "hi", entry=call)
    assert model.calls == 7
    assert reason(ended) == "step_budget"
    assert ended.text
    assert_paired(model, ended.messages)


def test_lc_36351_a_model_that_ignores_a_tool_limit_is_stopped_by_default(call: EntryPoint, act: Maker) -> None:
    again = act("again")
    model = ScriptedModel(lambda r: ai("", tool_call("again", {"x": r.turn}, f"c{r.turn}")), repeat=True)
    limit = ToolCallLimitMiddleware(run_limit=2, exit_behavior="continue")
    ended = run(create_agent(model, [again.tool], middleware=[limit]), "hi", entry=call)
    assert len(again.ran) == 2
    assert model.calls <= 100
    assert reason(ended) in ("failures", "step_budget", "repeated_call")


class RedactsTheWord(AgentMiddleware[Any, Any, Any]):
    """An output guard at the end of the run."""

    def after_agent(self, state: Any, runtime: Any) -> Any:
        last = state["messages"][-1]
        return {"messages": [last.model_copy(update={"content": last.text.replace("limit", "[redacted]")})]}


def test_oai_4393_the_text_of_a_gate_passes_the_same_guards(entry: EntryPoint, add: Any) -> None:
    limit = ModelCallLimitMiddleware(run_limit=1, exit_behavior="end")
    model = ScriptedModel(fresh("add", {"a": 1, "b": 1}), repeat=True)
    agent = create_agent(model, [add.tool], middleware=[RedactsTheWord(), limit], checkpointer=InMemorySaver())
    ended = run(agent, "hi", thread("t"), entry=entry)
    assert "[redacted]" in ended.text
    assert agent.get_state(thread("t")).values["messages"][-1].text == ended.text


def test_oai_4393_the_text_of_our_own_limit_passes_the_same_guards(entry: EntryPoint, add: Any) -> None:
    model = ScriptedModel(fresh("add", {"a": 1, "b": 1}), repeat=True)

    class Shouts(AgentMiddleware[Any, Any, Any]):
        def after_agent(self, state: Any, runtime: Any) -> Any:
            last = state["messages"][-1]
            return {"messages": [last.model_copy(update={"content": last.text.upper()})]}

    agent = create_agent(
        model, [add.tool], middleware=[Shouts()], limits=Limits(model_calls=1), checkpointer=InMemorySaver()
    )
    ended = run(agent, "hi", thread("t"), entry=entry)
    assert ended.text == ended.text.upper() != ""
    assert agent.get_state(thread("t")).values["messages"][-1].text == ended.text
