"""ToolRetry: what is tried again, what never, and what the model is told."""

import json
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as plain_tool
from langgraph.types import interrupt
from tenacity import stop_after_attempt, wait_fixed

from agentkit import create_agent
from agentkit.errors import ConfigurationError, TruncatedReply
from agentkit.middleware import ToolRetry
from agentkit.testing import ENTRY_POINTS, EntryPoint, MiddlewareContract, ScriptedModel, ai, run, tool_call
from agentkit.tools import tool, with_contract


class HttpError(Exception):
    """As HTTP clients raise them: the status and the headers stand on a response."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"HTTP {status}")
        self.response = type("Response", (), {"status_code": status, "headers": headers})()


class Flaky:
    """A tool that does each of the steps in turn, and then succeeds."""

    def __init__(self, *steps: Exception | None, **contract: Any) -> None:
        self.runs = 0
        self._steps = list(steps)
        self.tool: BaseTool = tool("fetch", description="Fetch it.", **contract)(self._do)

    def _do(self, x: int = 0) -> str:
        self.runs += 1
        step = self._steps.pop(0) if self._steps else None
        if step is not None:
            raise step
        return "fetched"


def agent_of(tools: list[BaseTool], *middleware: Any, calls: int = 1, **kwargs: Any) -> Any:
    asked = [tool_call(tools[0].name, {"x": n}, f"c{n}") for n in range(calls)]
    return create_agent(ScriptedModel(ai("", *asked), "done"), tools, middleware=middleware, **kwargs)


def results(ended: Any) -> list[ToolMessage]:
    return [m for m in ended.messages if isinstance(m, ToolMessage)]


@pytest.fixture(params=ENTRY_POINTS)
def entry(request: pytest.FixtureRequest) -> EntryPoint:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "contract", [{"effect": "read"}, {"idempotent": True}, {"effect": "write", "idempotent": True}]
)
def test_a_harmless_call_is_tried_again_and_the_model_sees_one_result(
    entry: EntryPoint, contract: dict[str, Any], clock: Any
) -> None:
    flaky = Flaky(TimeoutError(), ConnectionError(), **contract)
    ended = run(agent_of([flaky.tool], ToolRetry()), "go", entry=entry)
    assert flaky.runs == 3
    assert [(m.text, m.status) for m in results(ended)] == [("fetched", "success")]
    assert len(clock.waits) == 2


@pytest.mark.parametrize("contract", [{}, {"effect": "write"}])
def test_any_other_call_is_never_repeated_and_its_outcome_is_called_unknown(
    entry: EntryPoint, contract: dict[str, Any], clock: Any
) -> None:
    flaky = Flaky(TimeoutError("read timed out"), **contract)
    ended = run(agent_of([flaky.tool], ToolRetry()), "go", entry=entry)
    [told] = results(ended)
    assert flaky.runs == 1 and clock.waits == []
    assert told.status == "error" and "outcome is unknown" in told.text and "try again" not in told.text.lower()


def test_a_plain_langchain_tool_promises_nothing(clock: Any) -> None:
    runs = []

    @plain_tool
    def pay(x: int) -> str:
        """Pay."""
        runs.append(x)
        raise TimeoutError

    run(agent_of([pay], ToolRetry()), "go")
    assert runs == [0]
    run(agent_of([with_contract(pay, idempotent=True)], ToolRetry()), "go")
    assert runs == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionResetError(),
        HttpError(429),
        HttpError(500),
        HttpError(503),
        TruncatedReply(3),
        json.JSONDecodeError("cut", "{", 1),
        ExceptionGroup("both", [TimeoutError(), HttpError(502)]),
    ],
    ids=repr,
)
def test_transient_errors_are_tried_again(error: Exception, clock: Any) -> None:
    flaky = Flaky(error, effect="read")
    assert results(run(agent_of([flaky.tool], ToolRetry()), "go"))[0].text == "fetched"
    assert flaky.runs == 2


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        ValueError("x"),
        HttpError(400),
        HttpError(404),
        ExceptionGroup("one", [TimeoutError(), KeyError()]),
    ],
    ids=repr,
)
def test_other_errors_are_raised_at_once_as_they_are(entry: EntryPoint, error: Exception, clock: Any) -> None:
    flaky = Flaky(error, effect="read")
    ended = run(agent_of([flaky.tool], ToolRetry()), "go", entry=entry, catch=True)
    assert ended.error is error
    assert flaky.runs == 1 and clock.waits == []


def test_what_is_retried_can_be_chosen(clock: Any) -> None:
    by_type, by_function = Flaky(KeyError("x"), effect="read"), Flaky(KeyError("x"), effect="read")
    run(agent_of([by_type.tool], ToolRetry(retry_on=KeyError)), "go")
    run(agent_of([by_function.tool], ToolRetry(retry_on=lambda e: isinstance(e, LookupError))), "go")
    assert (by_type.runs, by_function.runs) == (2, 2)


def test_a_time_out_of_the_contract_is_tried_again_only_where_that_is_harmless(clock: Any) -> None:
    runs = {"look": 0, "pay": 0}

    def made(name: str, **contract: Any) -> BaseTool:
        async def do(x: int) -> str:
            import asyncio

            runs[name] += 1
            await asyncio.sleep(5)
            return ""

        return tool(name, description="Do it.", timeout=0.05, **contract)(do)

    for one in (made("look", effect="read"), made("pay", effect="write")):
        ended = run(agent_of([one], ToolRetry()), "go", entry="ainvoke")
        assert "did not answer within 0.05 s" in results(ended)[0].text
    assert runs == {"look": 3, "pay": 1}


def test_what_remains_after_the_last_attempt_is_told_without_an_invitation(entry: EntryPoint, clock: Any) -> None:
    flaky = Flaky(*[HttpError(503)] * 9, effect="read")
    ended = run(agent_of([flaky.tool], ToolRetry()), "go", entry=entry)
    [told] = results(ended)
    assert flaky.runs == 3 and ended.text == "done"
    assert told.status == "error" and "HTTP 503" in told.text and "tried 3 times" in told.text
    assert "try again" not in told.text.lower()


def test_what_remains_can_be_raised_or_worded(clock: Any) -> None:
    raised = Flaky(*[TimeoutError()] * 9, effect="read")
    error = run(agent_of([raised.tool], ToolRetry(on_failure="raise")), "go", catch=True).error
    assert isinstance(error, TimeoutError)
    assert any("ToolRetry gave up" in note for note in error.__notes__)
    worded = Flaky(*[TimeoutError()] * 9, effect="read")
    ended = run(agent_of([worded.tool], ToolRetry(on_failure=lambda e: f"no {type(e).__name__}")), "go")
    assert results(ended)[0].text == "no TimeoutError"


def test_waits_grow_at_random_below_a_bound(clock: Any) -> None:
    flaky = Flaky(*[TimeoutError()] * 5, effect="read")
    run(agent_of([flaky.tool], ToolRetry(attempts=6)), "go")
    bounds = [0.5, 1, 2, 4, 8]
    assert all(0 <= wait <= bound for wait, bound in zip(clock.waits, bounds, strict=True))
    assert len(set(clock.waits)) == 5


def test_tenacity_strategies_are_taken(clock: Any) -> None:
    flaky = Flaky(*[TimeoutError()] * 9, effect="read")
    run(agent_of([flaky.tool], ToolRetry(attempts=9, wait=wait_fixed(7), stop=stop_after_attempt(4))), "go")
    assert clock.waits == [7, 7, 7]


def test_no_attempt_begins_after_the_deadline(clock: Any) -> None:
    flaky = Flaky(*[TimeoutError()] * 9, effect="read")
    run(agent_of([flaky.tool], ToolRetry(attempts=9, wait=wait_fixed(20), deadline=50)), "go")
    assert clock.waits == [20, 20]


@pytest.mark.parametrize(("asked", "least"), [("3", 3), ("date", 40)])
def test_retry_after_is_honoured_as_seconds_and_as_a_date(asked: str, least: float, clock: Any) -> None:
    header = formatdate(clock.now + 40, usegmt=True) if asked == "date" else asked
    flaky = Flaky(HttpError(429, **{"Retry-After": header}), effect="read")
    run(agent_of([flaky.tool], ToolRetry(wait=wait_fixed(0))), "go")
    [waited] = clock.waits
    assert least <= waited <= least + 1


def test_a_retry_after_beyond_the_cap_gives_up_without_waiting(clock: Any) -> None:
    flaky = Flaky(HttpError(429, **{"Retry-After": "3600"}), effect="read")
    [told] = results(run(agent_of([flaky.tool], ToolRetry(max_retry_after=60)), "go"))
    assert flaky.runs == 1 and clock.waits == []
    assert "3600 s" in told.text and told.status == "error"


def test_the_budget_counts_over_the_turn_and_starts_anew_with_the_next(entry: EntryPoint, clock: Any) -> None:
    runs = []

    @tool(effect="read")
    def fetch(x: int) -> str:
        """Fetch it."""
        runs.append(x)
        raise TimeoutError

    turn = [ai("", tool_call("fetch", {"x": n}, f"c{n}")) for n in range(3)]
    from langgraph.checkpoint.memory import InMemorySaver

    model = ScriptedModel(*turn, "done", *turn, "done")
    agent = create_agent(model, [fetch], middleware=[ToolRetry(budget=3)], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    for _ in range(2):
        runs.clear()
        run(agent, "go", config, entry=entry)
        assert runs == [0, 0, 0, 1, 1, 2]  # two retries, then the last one, then none


def test_parallel_retries_are_all_counted(entry: EntryPoint, clock: Any) -> None:
    runs = []

    @tool(effect="read")
    def fetch(x: int) -> str:
        """Fetch it."""
        runs.append(x)
        raise TimeoutError

    both = ai("", tool_call("fetch", {"x": 0}, "c0"), tool_call("fetch", {"x": 1}, "c1"))
    after = ai("", tool_call("fetch", {"x": 2}, "c2"))
    agent = create_agent(ScriptedModel(both, after, "done"), [fetch], middleware=[ToolRetry(budget=4)])
    run(agent, "go", entry=entry)
    assert sorted(runs) == [0, 0, 0, 1, 1, 1, 2]


@pytest.mark.parametrize(
    "stack",
    [
        lambda: [ToolRetry(on_failure="raise", name="a"), ToolRetry(on_failure="raise", name="b")],
        lambda: [ToolRetry(name="a"), ToolRetry(name="b")],
        lambda: [ToolRetry(), ToolRetryMiddleware(on_failure="error", initial_delay=0)],
        lambda: [ToolRetry(), ToolRetryMiddleware(initial_delay=0)],
        lambda: [ToolRetryMiddleware(initial_delay=0), ToolRetry(on_failure="raise")],
        lambda: [ToolRetryMiddleware(initial_delay=0), ToolRetry()],
    ],
)
@pytest.mark.parametrize("call", ["invoke", "ainvoke"])
def test_nested_retries_do_not_multiply(stack: Callable[[], list[Any]], call: EntryPoint, clock: Any) -> None:
    flaky = Flaky(*[TimeoutError()] * 20, effect="read")
    ended = run(agent_of([flaky.tool], *stack()), "go", entry=call, catch=True)
    assert flaky.runs == 3
    assert ended.error is None or isinstance(ended.error, TimeoutError)


def test_an_attempt_is_no_failure(clock: Any) -> None:
    from agentkit import Limits, exit_of

    flaky = Flaky(TimeoutError(), TimeoutError(), effect="read")
    agent = agent_of([flaky.tool], ToolRetry(), limits=Limits(failed_turns=1, same_call_failures=1))
    ended = exit_of(run(agent, "go").raw)
    assert ended is not None and ended.reason == "answer"


@pytest.mark.parametrize("call", ["invoke", "ainvoke"])
def test_a_pause_is_neither_retried_nor_told(call: EntryPoint, clock: Any) -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    asked = []

    @tool(effect="read")
    def ask(x: int) -> str:
        """Ask."""
        asked.append(x)
        return str(interrupt("well?"))

    agent = agent_of([ask], ToolRetry(), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    assert run(agent, "go", config, entry=call).interrupts and asked == [0]
    assert results(run(agent, Command(resume="yes"), config, entry=call))[0].text == "yes"
    assert clock.waits == []


def test_retries_are_logged_without_arguments(clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "agentkit")
    flaky = Flaky(HttpError(503, secret="s3cret"), effect="read")
    run(agent_of([flaky.tool], ToolRetry()), "go")
    [record] = caplog.records
    assert (record.event, record.subject, record.attempt, record.status) == ("tool.retry", "fetch", 1, 503)  # type: ignore[attr-defined]
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("call", ["invoke", "ainvoke"])
def test_it_works_under_langchains_own_factory(call: EntryPoint, clock: Any) -> None:
    flaky = Flaky(TimeoutError(), TimeoutError(), effect="read")
    model = ScriptedModel(ai("", tool_call("fetch", {"x": 1}, "c")), "done")
    ended = run(langchain_create_agent(model, [flaky.tool], middleware=[ToolRetry()]), "go", entry=call)
    assert [m.text for m in results(ended)] == ["fetched"] and flaky.runs == 3 and ended.text == "done"


@pytest.mark.parametrize("bad", [{"attempts": 0}, {"deadline": -1}, {"max_retry_after": -1}])
def test_numbers_that_cannot_be_meant_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(bad))):
        ToolRetry(**bad)


class TestToolRetryContract(MiddlewareContract):
    def make(self) -> ToolRetry:
        return ToolRetry()
