"""Call the shop's tools the way an agent's tool node calls them."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from examples.order_assistant.shop import Shop
from examples.order_assistant.tools import ShopContext, make_tools

EMMA, LUKAS, WANG = "C-1001", "C-1002", "C-1003"


@dataclass(frozen=True)
class Answer:
    """A tool's answer, taken apart."""

    text: str
    failed: bool

    @property
    def data(self) -> dict[str, Any]:
        assert not self.failed, self.text
        loaded: dict[str, Any] = json.loads(self.text)
        return loaded


@cache
def _tools(shop: Shop) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in make_tools(shop)}


def runtime_for(customer: str | None, call_id: str = "call-1", thread: str = "thread-1") -> ToolRuntime[Any, Any]:
    """What a tool node hands to a tool."""
    return ToolRuntime(
        state={},
        context=ShopContext(customer) if customer else None,
        config={"configurable": {"thread_id": thread}},
        stream_writer=lambda _: None,
        tool_call_id=call_id,
        store=None,
    )


def call_tool(
    shop: Shop, customer: str | None, name: str, call_id: str = "call-1", thread: str = "thread-1", **arguments: object
) -> Answer:
    """Run one tool, arguments checked and errors turned into results as in an agent."""
    runtime = runtime_for(customer, call_id, thread)
    message = _tools(shop)[name].invoke(
        {"type": "tool_call", "name": name, "id": call_id, "args": {**arguments, "runtime": runtime}}
    )
    assert isinstance(message, ToolMessage)
    return Answer(str(message.text), message.status == "error")
