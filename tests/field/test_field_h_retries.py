"""Retries, fallback and tool errors, as users of agent frameworks reported them (family H), and their wishes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from typing import Annotated, Any, ClassVar

import pytest
from langchain.agents.middleware import ModelRetryMiddleware, ToolRetryMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeCancelledError
from langgraph.types import interrupt

from agentkit import Middleware, create_agent, thread
from agentkit.middleware import ModelRetry, ToolRetry
from agentkit.testing import EntryPoint, RunResult, ScriptedModel, ai, run, tool_call
from agentkit.tools import IdempotencyKey, tool


def results(ended: RunResult) -> list[ToolMessage]:
    return [m for m in ended.messages if isinstance(m, ToolMessage)]


def charging(*, idempotent: bool) -> tuple[list[int], BaseTool]:
    """A tool that takes effect and then times out."""
    charged: list[int] = []

    @tool(effect="write", idempotent=idempotent)
    def charge(amount: int) -> str:
        """Charge the card."""
        charged.append(amount)
        raise TimeoutError("read timed out")

    return charged, charge


def one_call(name: str, **args: Any) -> ScriptedModel:
    return ScriptedModel(ai("", tool_call(name, args, "c")), "done")


def test_lc_40688_a_call_that_timed_out_after_its_effect_is_not_repeated(entry: EntryPoint, clock: Any) -> None:
    charged, charge = charging(idempotent=False)
    agent = create_agent(one_call("charge", amount=5), [charge], middleware=[ToolRetry(attempts=3)])
    [told] = results(run(agent, "pay", entry=entry))
    assert charged == [5]
    assert "unknown" in told.text and "Do not repeat" in told.text and "try again" not in told.text.lower()


def test_lc_40688_declared_idempotent_it_is_repeated(entry: EntryPoint, clock: Any) -> None:
    charged, charge = charging(idempotent=True)
    agent = create_agent(one_call("charge", amount=5), [charge], middleware=[ToolRetry(attempts=3)])
    run(agent, "pay", entry=entry)
    assert charged == [5, 5, 5]


def test_lc_38893_what_is_not_retried_is_raised_at_once_whatever_the_policy(entry: EntryPoint, clock: Any) -> None:
    model = ScriptedModel(KeyError("x"), repeat=True)
    retry = ModelRetry(retry_on=TimeoutError, on_failure="message")
    assert isinstance(run(create_agent(model, middleware=[retry]), "hi", entry=entry, catch=True).error, KeyError)
    assert model.calls == 1


@pytest.mark.parametrize(
    "stack",
    [
        lambda: [ToolRetry(on_failure="raise", name="outer"), ToolRetry(on_failure="raise", name="inner")],
        lambda: [ToolRetry(), ToolRetryMiddleware(on_failure="error", initial_delay=0)],
        lambda: [ToolRetryMiddleware(on_failure="error", initial_delay=0), ToolRetry(on_failure="raise")],
    ],
    ids=["ours twice", "ours around LangChain's", "LangChain's around ours"],
)
def test_aux_292_nested_tool_retries_do_not_multiply(
    call: EntryPoint, stack: Callable[[], list[Any]], clock: Any
) -> None:
    charged, charge = charging(idempotent=True)
    agent = create_agent(one_call("charge", amount=5), [charge], middleware=stack())
    run(agent, "pay", entry=call, catch=True)
    assert charged == [5, 5, 5]


@pytest.mark.parametrize(
    "stack",
    [
        lambda: [ModelRetry(name="outer"), ModelRetry(name="inner")],
        lambda: [ModelRetry(), ModelRetryMiddleware(on_failure="error", initial_delay=0)],
        lambda: [ModelRetryMiddleware(on_failure="error", initial_delay=0), ModelRetry()],
    ],
    ids=["ours twice", "ours around LangChain's", "LangChain's around ours"],
)
def test_aux_292_nested_model_retries_do_not_multiply(
    call: EntryPoint, stack: Callable[[], list[Any]], clock: Any
) -> None:
    model = ScriptedModel(ConnectionError(), repeat=True)
    run(create_agent(model, middleware=stack()), "hi", entry=call, catch=True)
    assert model.calls == 3


class Throttled(Exception):
    def __init__(self, retry_after: str) -> None:
        super().__init__("slow down")
        self.response = type("Response", (), {"status_code": 429, "headers": {"Retry-After": retry_after}})()


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_trk_549_the_servers_wait_is_honoured(entry: EntryPoint, form: str, clock: Any) -> None:
    asked = "1" if form == "seconds" else formatdate(clock.now + 1, usegmt=True)
    model = ScriptedModel(Throttled(asked), "hello")
    assert run(create_agent(model, middleware=[ModelRetry()]), "hi", entry=entry).text == "hello"
    assert len(clock.waits) == 1 and clock.waits[0] >= 1


def test_trk_549_a_wait_beyond_the_cap_is_a_graceful_failure_at_once(entry: EntryPoint, clock: Any) -> None:
    model = ScriptedModel(Throttled("3600"), repeat=True)
    retry = ModelRetry(max_retry_after=60, on_failure="message")
    ended = run(create_agent(model, middleware=[retry]), "hi", entry=entry)
    assert ended.text and clock.waits == [] and model.calls == 1


class Strict(ScriptedModel):
    """Refuses settings that it does not know."""

    known: ClassVar[frozenset[str]] = frozenset({"temperature"})
    temperature: float | None = None

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        if unknown := kwargs.keys() - self.known:
            raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}")
        return super()._generate(messages, stop, run_manager, **kwargs)


class Thoughtful(Middleware):
    """Sets what only the first model knows, and what both know."""

    def wrap_model_call(self, request: Any) -> Any:
        return (yield request.override(model_settings={"reasoning_effort": "high", "temperature": 0.1}))


def test_daiv_681_a_fallback_is_not_given_settings_meant_for_the_first_model(call: EntryPoint, clock: Any) -> None:
    first, second = ScriptedModel(ConnectionError(), repeat=True), Strict(steps=["from the second"])
    agent = create_agent(first, middleware=[Thoughtful(), ModelRetry(fallbacks=[second])])
    assert run(agent, "hi", entry=call).text == "from the second"
    assert second.requests[0].kwargs == {"temperature": 0.1}


@pytest.mark.parametrize(
    ("error", "policy", "outcome"),
    [
        (ToolException("no such order"), "raise", "told"),
        (ToolException("no such order"), "tell", "told"),
        (ValueError("no such order"), "raise", "raised"),
        (ValueError("no such order"), "tell", "told"),
        (KeyboardInterrupt(), "tell", "raised"),
    ],
    ids=str,
)
def test_lg_6486_each_tool_says_what_becomes_of_its_exceptions(
    call: EntryPoint, error: BaseException, policy: Any, outcome: str
) -> None:
    @tool(on_error=policy)
    def find(order: int) -> str:
        """Find an order."""
        raise error

    agent = create_agent(one_call("find", order=1), [find])
    if outcome == "raised":
        with pytest.raises(type(error)):
            run(agent, "go", entry=call)
        return
    [told] = results(run(agent, "go", entry=call))
    assert told.status == "error" and "no such order" in told.text


async def test_lg_6486_a_cancellation_is_never_told() -> None:
    @tool(on_error="tell")
    async def find(order: int) -> str:
        """Find an order."""
        raise asyncio.CancelledError

    with pytest.raises(NodeCancelledError):
        await create_agent(one_call("find", order=1), [find]).ainvoke({"messages": "go"})


def test_lg_6486_a_pause_pauses_and_a_middlewares_bug_is_raised(call: EntryPoint) -> None:
    @tool(on_error="tell")
    def ask(order: int) -> str:
        """Ask."""
        return str(interrupt("which?"))

    agent = create_agent(one_call("ask", order=1), [ask], checkpointer=InMemorySaver())
    assert run(agent, "go", thread("t"), entry=call).interrupts

    class Buggy(Middleware):
        def wrap_tool_call(self, request: Any) -> Any:
            yield request
            raise ZeroDivisionError

    calm = tool("ask", description="Ask.", on_error="tell")(lambda order: "fine")
    agent = create_agent(one_call("ask", order=1), [calm], middleware=[Buggy()])
    assert isinstance(run(agent, "go", entry=call, catch=True).error, ZeroDivisionError)


async def test_pyd_4423_a_sibling_that_waits_for_its_place_does_not_outlive_a_failed_run() -> None:
    begun = []

    @tool(max_concurrency=1)
    async def slow(n: int) -> str:
        """Take long."""
        begun.append(n)
        await asyncio.sleep(10)
        return ""

    @tool
    async def broken(n: int) -> str:
        """Break."""
        await asyncio.sleep(0.005)
        raise ValueError("broken")

    asked = ai(
        "", tool_call("slow", {"n": 1}, "a"), tool_call("slow", {"n": 2}, "b"), tool_call("broken", {"n": 3}, "c")
    )
    with pytest.raises(ValueError, match="broken"):
        await create_agent(ScriptedModel(asked, "done"), [slow, broken]).ainvoke({"messages": "go"})
    assert asyncio.all_tasks() == {asyncio.current_task()} and begun == [1]


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("entry", ["ainvoke", "astream"])
def test_lg_8517_a_tools_own_limit_holds_in_async_code_too(entry: EntryPoint, limit: int) -> None:
    now, peak = 0, 0

    @tool(max_concurrency=limit)
    async def work(n: int) -> str:
        """Work."""
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        await asyncio.sleep(0.003)
        now -= 1
        return ""

    asked = ai("", *(tool_call("work", {"n": n}, f"c{n}") for n in range(5)))
    run(create_agent(ScriptedModel(asked, "done"), [work]), "go", entry=entry)
    assert peak == limit


def test_wish_15_a_repeated_effect_carries_the_same_key(entry: EntryPoint, clock: Any) -> None:
    ledger: dict[str, int] = {}

    @tool(effect="write", idempotent=True)
    def charge(amount: int, key: Annotated[str, IdempotencyKey]) -> str:
        """Charge the card."""
        first = key not in ledger
        ledger[key] = amount
        if first:
            raise TimeoutError
        return "charged"

    agent = create_agent(one_call("charge", amount=5), [charge], middleware=[ToolRetry()])
    assert results(run(agent, "pay", entry=entry))[0].text == "charged"
    assert list(ledger.values()) == [5]
