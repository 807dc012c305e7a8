"""What runs of agents are like, for those who look at how they are recorded: one function per scenario.

Each builds its agents with the `create` that it is given, agentkit's or LangChain's, and runs them to the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

from langchain.agents.middleware import ModelCallLimitMiddleware, ModelRetryMiddleware, ToolRetryMiddleware
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agentkit.testing import ScriptedModel, ai, tool_call

__all__ = ["CANARY", "SCENARIOS", "Create"]

Create = Callable[..., Any]
"""`create(model, tools, name=..., middleware=..., checkpointer=...)`."""

CANARY: Final = "canary-7f3a"
"""Stands in prompts, arguments, results and exception texts, and must be found nowhere."""
_THREAD: Final[Any] = {"configurable": {"thread_id": "t-1"}}
_SAID: Final[Any] = {"messages": [("user", f"hello {CANARY}")]}


@tool
def slow_a(text: str) -> str:
    """Look something up."""
    return f"a {text}"


@tool
def slow_b(text: str) -> str:
    """Look something else up."""
    return f"b {text}"


@tool
def ask(text: str) -> str:
    """Ask a person."""
    return f"they said {interrupt(f'may I? {text}')}"


@tool
def broken(text: str) -> str:
    """Fail."""
    raise ValueError(f"boom {text}")


def flaky() -> BaseTool:
    """A tool that fails the first time."""
    runs: list[str] = []

    @tool("flaky")
    def once(text: str) -> str:
        """Fail once."""
        runs.append(text)
        if len(runs) == 1:
            raise ConnectionError(f"reset {text}")
        return "there"

    return once


class Stalling(ScriptedModel):
    """Sends the first chunk of its reply, and then nothing."""

    async def _astream(self, *args: Any, **kwargs: Any) -> Any:
        async for chunk in super()._astream(*args, **kwargs):
            yield chunk
            await asyncio.sleep(30)


def script(*steps: Any) -> ScriptedModel:
    """A model with a name."""
    return ScriptedModel(*steps, metadata={"ls_model_name": "fake-1"})


def calls(*names: str, **more: Any) -> Any:
    """An answer that calls tools."""
    each = [tool_call(name, {"text": CANARY}, f"c{number}") for number, name in enumerate(names, 1)]
    return ai("", *each, usage=(10, 7), finish_reason="tool_calls", model_name="fake-1", **more)


def done(text: str = f"done {CANARY}") -> Any:
    """The last answer."""
    return ai(text, usage=(20, 3), finish_reason="stop", model_name="fake-1")


def _parallel(create: Create) -> Any:
    return create(script(calls("slow_a", "slow_b"), done()), [slow_a, slow_b], name="root")


def sync(create: Create) -> None:
    """Two parallel tools, `invoke`."""
    _parallel(create).invoke(_SAID)


def async_(create: Create) -> None:
    """Two parallel tools, `ainvoke`."""
    asyncio.run(_parallel(create).ainvoke(_SAID))


def stream(create: Create) -> None:
    """Two parallel tools, `stream`."""
    list(_parallel(create).stream(_SAID, stream_mode=["messages", "updates"]))


def astream(create: Create) -> None:
    """Two parallel tools, `astream`."""

    async def run() -> None:
        async for _ in _parallel(create).astream(_SAID, stream_mode=["messages", "updates"]):
            pass

    asyncio.run(run())


def abandoned(create: Create) -> None:
    """A consumer that leaves while the reply is still streamed."""

    async def run() -> None:
        agent = create(Stalling(steps=[done()], metadata={"ls_model_name": "fake-1"}), [slow_a], name="root")
        async with aclosing(agent.astream(_SAID, stream_mode="messages")) as chunks:
            async for _ in chunks:
                break

    asyncio.run(run())


def sub_agent(create: Create) -> None:
    """An agent that is a tool of another."""
    inner = create(script(calls("slow_a"), done()), [slow_a], name="helper")

    @tool
    def delegate(text: str) -> str:
        """Ask the helper."""
        return str(inner.invoke({"messages": [("user", text)]})["messages"][-1].text)

    create(script(calls("delegate"), done()), [delegate], name="root").invoke(_SAID)


def model_retry(create: Create) -> None:
    """Two failed requests to the model, then an answer."""
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    model = script(TimeoutError(CANARY), TimeoutError(CANARY), done())
    create(model, [], name="root", middleware=[retry]).invoke(_SAID)


def tool_retry(create: Create) -> None:
    """One failed execution of a tool, then a good one."""
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    create(script(calls("flaky"), done()), [flaky()], name="root", middleware=[retry]).invoke(_SAID)


def model_error(create: Create) -> None:
    """A model that fails for good."""
    with suppress(TimeoutError):
        create(script(TimeoutError(CANARY)), [], name="root").invoke(_SAID)


def tool_error(create: Create) -> None:
    """A tool that fails for good."""
    with suppress(ValueError):
        create(script(calls("broken"), done()), [broken], name="root").invoke(_SAID)


def interrupted(create: Create) -> None:
    """A question to a person inside a tool, and the run going on with the answer."""
    model = script(calls("ask", "slow_b"), done())
    agent = create(model, [ask, slow_b], name="root", checkpointer=InMemorySaver())
    agent.invoke(_SAID, _THREAD)
    agent.invoke(Command(resume="yes"), _THREAD)


def limit(create: Create) -> None:
    """A limit that ends the run."""
    brake = ModelCallLimitMiddleware(run_limit=1, exit_behavior="end")
    create(script(calls("slow_a"), done()), [slow_a], name="root", middleware=[brake]).invoke(_SAID)


def cancelled(create: Create) -> None:
    """A task that is cancelled while the model works."""

    async def run() -> None:
        asked = asyncio.Event()

        async def slowly(request: Any) -> Any:
            asked.set()
            await asyncio.sleep(30)

        agent = create(script(calls("slow_a"), slowly), [slow_a], name="root")
        task = asyncio.ensure_future(agent.ainvoke(_SAID))
        await asked.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(run())


SCENARIOS: Final[Sequence[Callable[[Create], None]]] = (
    sync,
    async_,
    stream,
    astream,
    abandoned,
    sub_agent,
    model_retry,
    tool_retry,
    model_error,
    tool_error,
    interrupted,
    limit,
    cancelled,
)
