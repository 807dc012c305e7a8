"""The model, the tools and the bare loop that every contender on langchain-core gets.

Nothing here imports agentkit, LangChain or LangGraph, so that a new process can measure what each of them takes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import takewhile
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

PAUSE = 0.02


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def wait(a: int) -> int:
    """Wait 20 milliseconds."""
    time.sleep(PAUSE)
    return a


@tool("wait")
async def await_(a: int) -> int:
    """Wait 20 milliseconds."""
    await asyncio.sleep(PAUSE)
    return a


class Model(BaseChatModel):
    """Asks for its calls in all turns of a user turn but the last; otherwise as cheap as a model can be."""

    turns: int
    calls: int = 1
    tool: str = "add"

    @property
    def _llm_type(self) -> str:
        return "bench"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Bind them, with their schemas made as providers' packages do."""
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        since = sum(m.type == "ai" for m in takewhile(lambda m: m.type != "human", reversed(messages)))
        reply = AIMessage("Three.") if since >= self.turns - 1 else AIMessage("", tool_calls=self._asked(len(messages)))
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return self._generate(messages)

    def _asked(self, place: int) -> list[ToolCall]:
        given = {"a": 1, "b": 2} if self.tool == "add" else {"a": 1}
        return [ToolCall(name=self.tool, args=given, id=f"c{place}-{number}") for number in range(self.calls)]


class Bare:
    """The limit: a model with bound tools, called until it asks for nothing."""

    def __init__(self, model: BaseChatModel, tools: Sequence[BaseTool]) -> None:
        self._model = model.bind_tools(tools)
        self._tools = {one.name: one for one in tools}

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(8)

    def invoke(self, given: dict[str, Any]) -> list[BaseMessage]:
        """Run to the end."""
        messages: list[Any] = [*given["messages"]]
        while (answer := self._model.invoke(messages)).tool_calls:
            messages += [answer, *self._results(answer.tool_calls)]
        return [*messages, answer]

    def _results(self, calls: Sequence[ToolCall]) -> list[Any]:
        each = self._pool.map if len(calls) > 1 else map
        return list(each(lambda call: self._tools[call["name"]].invoke(call), calls))

    async def ainvoke(self, given: dict[str, Any]) -> list[BaseMessage]:
        """Run to the end."""
        messages: list[Any] = [*given["messages"]]
        while (answer := await self._model.ainvoke(messages)).tool_calls:
            results = (self._tools[call["name"]].ainvoke(call) for call in answer.tool_calls)
            messages += [answer, *await asyncio.gather(*results)]
        return [*messages, answer]
