"""A policy that waits: once written, for sync and async, without holding a thread."""

import asyncio
import threading
from collections.abc import Generator
from typing import Any

from langchain.agents import create_agent as langchain_create_agent

from agentkit import Middleware, create_agent
from agentkit.middleware_base import Sleep
from agentkit.testing import ScriptedModel


class Patient(Middleware):
    def wrap_model_call(self, request: Any) -> Generator[Any, Any, Any]:
        assert (yield Sleep(7)) is None
        response = yield request
        yield Sleep(3)
        return response


def test_a_wrap_may_wait_under_both_factories(clock: Any) -> None:
    factories: list[Any] = [create_agent, langchain_create_agent]
    for create in factories:
        agent = create(ScriptedModel("one", "two"), middleware=[Patient()])
        agent.invoke({"messages": [("user", "hi")]})
        asyncio.run(agent.ainvoke({"messages": [("user", "hi")]}))
    assert clock.waits == [7, 3] * 4


async def test_many_waits_in_one_loop_hold_no_thread() -> None:
    class Short(Middleware):
        def wrap_model_call(self, request: Any) -> Generator[Any, Any, Any]:
            yield Sleep(0.01)
            return (yield request)

    before = threading.active_count()
    peak = [before]

    async def watch() -> None:
        while True:
            peak.append(threading.active_count())
            await asyncio.sleep(0.002)

    watcher = asyncio.create_task(watch())
    agent = create_agent(ScriptedModel("hello", repeat=True), middleware=[Short()])
    await asyncio.gather(*(agent.ainvoke({"messages": "hi"}) for _ in range(50)))
    watcher.cancel()
    assert max(peak) - before < 10
