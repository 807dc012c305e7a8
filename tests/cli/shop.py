"""Agents for the tests of the command line; copied next to where the commands run."""

import asyncio
from pathlib import Path
from typing import Any

from langgraph.types import interrupt

from agentkit import AgentGraph, create_agent
from agentkit.middleware import ApprovalRule, Gates, StepBudget, standard
from agentkit.testing import ScriptedModel, ai, tool_call


def order_status(order_id: str) -> str:
    """Look up the status of an order."""
    return f"order {order_id} was shipped"


def refund(order_id: str, euros: float) -> str:
    """Refund an order."""
    return f"refunded {euros} euros for {order_id}"


async def slow(order_id: str) -> str:
    """Look up an order in a slow archive; the second try is quick."""
    mark = Path("asked")
    if not mark.exists():
        mark.touch()
        await asyncio.sleep(60)
    return f"order {order_id} is in the archive"


def confirm() -> str:
    """Ask whoever is there."""
    return f"somebody said {interrupt('Shall I go on?')!r}"


_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "Refund": ("refund", {"order_id": "A-17", "euros": 80.0}),
    "Archive": ("slow", {"order_id": "A-1"}),
    "Confirm": ("confirm", {}),
}


def answer(request: Any) -> Any:
    """Stands in for a model: calls the tool that the user speaks of, then tells the result."""
    last = request.messages[-1]
    if last.type == "tool":
        return f"Done: {last.text}."
    if last.text.startswith("Fail"):
        raise ConnectionError("the provider is away")
    name, args = _CALLS.get(last.text.split()[0], ("order_status", {"order_id": "A-17"}))
    return ai("Let me see.", tool_call(name, args))


def model() -> ScriptedModel:
    return ScriptedModel(answer, repeat=True)


tools: list[Any] = [order_status, refund, slow, confirm]
support = create_agent(
    model(),
    tools,
    middleware=standard(approve=[ApprovalRule(tool="refund", among=["ann"], label="refunds")]),
)
endless = create_agent(
    ScriptedModel(lambda request: ai("", tool_call("order_status", {"order_id": "A-17"})), repeat=True),
    tools,
    middleware=[Gates(StepBudget(2), on_trip="stop")],
)


def make() -> AgentGraph:
    return create_agent(model(), [order_status])


async def make_async(checkpointer: Any = None) -> AgentGraph:
    await asyncio.sleep(0)
    return create_agent(model(), [order_status], checkpointer=checkpointer)


def make_for(customer: str) -> AgentGraph:
    return create_agent(model(), [order_status], name=customer)


def make_badly() -> AgentGraph:
    raise LookupError("no such configuration")
