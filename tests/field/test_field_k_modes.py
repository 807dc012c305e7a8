"""Field reports, family K: sync and async, streaming, shared objects."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware, PIIMiddleware, dynamic_prompt
from langchain.tools import ToolRuntime
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.constants import TAG_NOSTREAM
from langgraph.types import Command

from agentkit import create_agent
from agentkit.testing import EntryPoint, Request, ScriptedModel, ai, arun, assert_paired, run, tool_call

Maker = Callable[..., Any]


class Guard(AgentMiddleware[Any, Any, Any]):
    """Base of guards that note that they were applied."""

    def __init__(self) -> None:
        super().__init__()
        self.applied = 0


class SyncHook(Guard):
    def before_model(self, state: Any, runtime: Any) -> None:
        self.applied += 1


class AsyncHook(Guard):
    async def abefore_model(self, state: Any, runtime: Any) -> None:
        self.applied += 1


class SyncModelWrap(Guard):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self.applied += 1
        return handler(request)


class AsyncModelWrap(Guard):
    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        self.applied += 1
        return await handler(request)


class SyncToolWrap(Guard):
    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        self.applied += 1
        return handler(request)


class AsyncToolWrap(Guard):
    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        self.applied += 1
        return await handler(request)


GUARDS = [SyncHook, AsyncHook, SyncModelWrap, AsyncModelWrap, SyncToolWrap, AsyncToolWrap]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda g: g.__name__)
def test_lc_33474_a_guard_is_applied_or_named_but_never_skipped(entry: EntryPoint, add: Any, guard: Any) -> None:
    guarding = guard()
    model = ScriptedModel(ai("", tool_call("add", {"a": 1, "b": 2})), "done")
    outcome = run(create_agent(model, [add.tool], middleware=[guarding]), "hi", entry=entry, catch=True)
    if outcome.error is None:
        assert guarding.applied > 0
        assert outcome.text == "done"
    else:
        assert isinstance(outcome.error, NotImplementedError | TypeError)
        assert guard.__name__ in str(outcome.error)
        assert add.ran == []
    right_mode = guard.__name__.startswith("Async") == entry.startswith("a")
    if right_mode or guard is SyncHook:
        assert outcome.error is None


WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@pytest.mark.parametrize("wrapped", [True, False])
def test_neu_1357_context_reaches_a_sync_tool(entry: EntryPoint, act: Maker, wrapped: bool) -> None:
    seen: list[str] = []

    def note(x: int) -> str:
        seen.append(WHO.get())
        return "looked"

    look = act("look", note)
    middleware = [PassesOn()] if wrapped else []
    agent = create_agent(ScriptedModel(ai("", tool_call("look")), "done"), [look.tool], middleware=middleware)

    def inside() -> None:
        WHO.set("anna")
        run(agent, "hi", entry=entry)

    contextvars.copy_context().run(inside)
    assert seen == ["anna"]


class PassesOn(AgentMiddleware[Any, Any, Any]):
    """A wrap in both forms that does nothing."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


@pytest.mark.parametrize("mode", ["values", "updates", "messages", ["messages", "values"], "debug"], ids=str)
@pytest.mark.parametrize("entry", ["stream", "astream"])
def test_lc_40767_redacting_what_is_shown_leaves_what_is_run(act: Maker, entry: str, mode: Any) -> None:
    sent: list[str] = []

    @tool
    def mail(to: str) -> str:
        """Send a mail."""
        sent.append(to)
        return "sent"

    call = ai("I will write to jo@example.com.", tool_call("mail", {"to": "jo@example.com"}))
    redact = PIIMiddleware("email", strategy="redact", apply_to_input=False, apply_to_output=True)
    agent = create_agent(ScriptedModel(call, "Sent to jo@example.com."), [mail], middleware=[redact])
    given: Any = {"messages": [("user", "hi")]}

    async def consume() -> None:
        async for _ in agent.astream(given, stream_mode=mode):
            pass

    if entry == "stream":
        list(agent.stream(given, stream_mode=mode))
    else:
        asyncio.run(consume())
    assert sent == ["jo@example.com"]


@pytest.mark.parametrize("entry", ["stream", "astream"])
def test_lg_4372_every_result_is_streamed_once(entry: EntryPoint, act: Maker) -> None:
    @tool
    def remember(runtime: ToolRuntime) -> Command[Any]:
        """Return a command."""
        return Command(update={"messages": [ToolMessage("remembered", tool_call_id=str(runtime.tool_call_id))]})

    both = ai("", tool_call("remember", id="r"), tool_call("look", id="l"))
    agent = create_agent(ScriptedModel(both, "done"), [remember, act("look").tool])
    ended = run(agent, "hi", entry=entry)
    shown = [part[0] for mode, part in ended.streamed if mode == "messages" and isinstance(part[0], ToolMessage)]
    assert sorted((m.tool_call_id, m.text) for m in shown) == [("l", "look 0"), ("r", "remembered")]


def echo_agent() -> tuple[Any, ScriptedModel]:
    """An agent whose system prompt names the user, and a model that repeats it after some waiting."""

    @dynamic_prompt
    def greets(request: Any) -> str:
        return f"You speak with {request.state['messages'][0].text}."

    async def answer(request: Request) -> str:
        await asyncio.sleep(random.random() / 200)
        (system,) = [m for m in request.messages if isinstance(m, SystemMessage)]
        return system.text

    model = ScriptedModel(answer, repeat=True)
    return create_agent(model, [], middleware=[greets]), model


async def test_lcjs_9983_concurrent_runs_see_their_own_prompt() -> None:
    agent, _ = echo_agent()
    ended = await asyncio.gather(*(arun(agent, f"user {i}") for i in range(50)))
    assert [e.text for e in ended] == [f"You speak with user {i}." for i in range(50)]


def test_lcjs_9983_concurrent_threads_see_their_own_prompt() -> None:
    agent, _ = echo_agent()
    with ThreadPoolExecutor(10) as pool:
        texts = list(pool.map(lambda i: run(agent, f"user {i}").text, range(50)))
    assert texts == [f"You speak with user {i}." for i in range(50)]


def test_lal_111_what_was_given_is_not_changed(entry: EntryPoint, add: Any) -> None:
    def answer(request: Request) -> Any:
        return "done" if request.turn else ai("", tool_call("add", {"a": 1, "b": 2}))

    model = ScriptedModel(answer, repeat=True)
    retry = ModelRetryMiddleware(max_retries=1)
    guard = PIIMiddleware("email")
    tools, middleware = [add.tool], [retry, guard]

    def snapshot() -> Any:
        return [
            {name: getattr(model, name) for name in ScriptedModel.model_fields},
            add.tool.model_dump(),
            dict(vars(retry)),
            dict(vars(guard)),
            list(tools),
            list(middleware),
        ]

    before = snapshot()
    agents = [create_agent(model, tools, middleware=middleware, name=name) for name in ("one", "two")]
    for agent in agents * 3:
        ended = run(agent, "hi", entry=entry)
        assert ended.text == "done"
        assert ended.messages[-1].name == agent.name
    assert snapshot() == before
    assert_paired(model)


class Judge(AgentMiddleware[Any, Any, Any]):
    """Asks a model of its own before each answer."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def before_model(self, state: Any, runtime: Any) -> None:
        self.model.invoke("Is this fine?")


@pytest.mark.parametrize("granularity", ["hook", "turn"])
def test_lc_34382_the_tokens_of_a_middlewares_own_model_stay_out_of_the_stream(granularity: Any) -> None:
    judge = ScriptedModel("a verdict", repeat=True)
    agent = create_agent(
        ScriptedModel("the answer"),
        middleware=[Judge(judge.with_config(tags=[TAG_NOSTREAM]))],
        granularity=granularity,
    )
    parts = agent.stream({"messages": "hi"}, stream_mode="messages")
    assert "".join(str(message.text) for message, _ in parts) == "the answer"
    assert judge.calls == 1
