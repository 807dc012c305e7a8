"""S4: a real provider package, langchain-openai, whose HTTP client answers by itself, with 20 tools."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool

from bench.turns.factories import FACTORIES
from bench.turns.model import Bare
from bench.turns.scenario import Bench, Prepared, Row, Scenario, cpu, import_or_leave_out

TURNS = 10
TOOLS = 20


def _tools() -> list[BaseTool]:
    def work(a: int, b: int, note: str = "") -> int:
        """Work on two numbers."""
        return a + b

    return [StructuredTool.from_function(work, name=f"work_{number}") for number in range(TOOLS)]


def reply(request: Any) -> dict[str, Any]:
    """A chat completion: a call in all turns but the last."""
    messages = json.loads(request.content)["messages"]
    asked = sum(message["role"] == "assistant" for message in messages)
    message: dict[str, Any] = {"role": "assistant", "content": "Three."}
    if asked < TURNS - 1:
        function = {"name": f"work_{asked}", "arguments": '{"a": 1, "b": 2}'}
        call = {"id": f"call_{asked}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    ending = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "local",
        "choices": [{"index": 0, "message": message, "finish_reason": ending}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def _prepare(bench: Bench) -> Prepared:
    openai: Any = import_or_leave_out("langchain_openai", "langchain-openai")
    httpx: Any = import_or_leave_out("httpx", "httpx")
    client = httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(200, json=reply(request))))
    bench.closing.callback(client.close)

    def model() -> Any:
        return openai.ChatOpenAI(model="local", api_key="none", http_client=client, max_retries=0)

    agents = {name: make(model(), _tools()) for name, make in FACTORIES.items()}
    agents["bare"] = Bare(model(), _tools())
    given = {"messages": [HumanMessage("1 + 2?")]}
    found = {name: cpu(partial(agent.invoke, given), TURNS) for name, agent in agents.items()}
    return Prepared([Row("S4", f"{TURNS} turns, ChatOpenAI on a local transport, {TOOLS} tools")], found)


SCENARIOS = (Scenario("S4", f"{TURNS} turns, ChatOpenAI on a local transport, {TOOLS} tools", _prepare),)
