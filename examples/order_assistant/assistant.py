"""Put the assistant together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from agentkit import AgentMiddleware, create_agent
from agentkit.ledger import Ledger
from agentkit.middleware import (
    Approval,
    ApprovalRule,
    ConsecutiveFailures,
    EffectLedger,
    Gates,
    Handoff,
    ModelRetry,
    RepeatedCall,
    Reuse,
    SameCallFailed,
    StepBudget,
    ToolRetry,
)
from examples.order_assistant.database import ledger_of
from examples.order_assistant.offline_model import DialoguePlanner
from examples.order_assistant.shop import Shop
from examples.order_assistant.tools import ShopContext, make_tools

__all__ = ["SYSTEM_PROMPT", "build", "guards"]

SYSTEM_PROMPT = """\
You are the order assistant of a small online shop. You help one signed-in customer with their orders, parcels and \
refunds, and with the shop's products and reviews.

- Answer in the customer's language: English or Chinese (中文). Be brief and friendly; use plain text.
- Take every fact from a tool result. Never invent an order, a date, a price or a tracking event.
- The tools know who the customer is. An order they do not find is not this customer's; say so and ask for the number.
- Amounts come as text for people and as minor units (cents, fen); write the text, compute with the minor units.
- Look up several things at once when they do not depend on each other, for example the reviews of two products.
- Before refund_order, name the order and the amount and wait for the customer's yes. Refund only what they confirmed.
- If a tool refuses, explain why in one sentence and say what is possible instead. Do not repeat the same call.
"""


def guards(ledger: Ledger) -> list[AgentMiddleware]:
    """What keeps a run in bounds, beside the loop's own first gate: the task is done when no tool is asked for.

    A budget of steps, after which the assistant answers with what it has; and safety: failures in a row, a call that
    failed before, or the same question over and over go to a person. What moves money waits for the shop's consent,
    which takes a checkpointer. Below the gates, passing outages are retried without the model noticing, and what was
    looked up in this turn is not looked up again. Refunds are recorded in the shop's own database, so that a run that
    is killed and resumed pays once and knows it.
    """
    safety = ConsecutiveFailures(3) | SameCallFailed(2) | RepeatedCall(3)
    return [
        Gates(StepBudget(10), on_trip="wrap_up"),
        Gates(safety, on_trip=Handoff("customer service"), name="Safety"),
        Approval(ApprovalRule(risk="money")),
        Reuse(),
        ToolRetry(attempts=2),
        EffectLedger(ledger, unknown="read"),
        ModelRetry(),
    ]


def build(
    db_path: str | Path,
    model: str | BaseChatModel | None = None,
    checkpointer: Checkpointer = None,
    **kwargs: Any,
) -> CompiledStateGraph[Any, ShopContext, Any, Any]:
    """Compile the order assistant.

    Run it with `context=ShopContext(customer_id=...)`; that is the customer whose orders its tools see.

    Args:
        db_path: The shop's SQLite file; created and seeded on first use.
        model: A chat model, or a name for LangChain's `init_chat_model`; None is the offline `DialoguePlanner`.
        checkpointer: Keeps the conversations; without one, every run stands alone.
        **kwargs: Passed on to `create_agent`, for example `middleware`, which by default is `guards(...)`.

    Raises:
        DatabaseUnusable: `db_path` cannot be opened or created.
    """
    shop = Shop.open(db_path)
    ledger = None if "middleware" in kwargs else ledger_of(shop.path)
    tools = make_tools(shop, ledger)
    if ledger is not None:
        kwargs["middleware"] = guards(ledger)
    return create_agent(
        model or DialoguePlanner(),
        tools,
        system_prompt=SYSTEM_PROMPT,
        context_schema=ShopContext,
        checkpointer=checkpointer,
        name="order_assistant",
        **kwargs,
    )
