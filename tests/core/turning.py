"""What the tests of turns share: both forms of delivery, and an agent whose tool has an effect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from agentkit import create_agent
from agentkit.testing import ScriptedModel, ai, tool_call

Deliver = Callable[..., Any]


def sync_form(twin: Callable[..., Any]) -> Deliver:
    return lambda *args, **kwargs: asyncio.run(twin(*args, **kwargs))


@dataclass
class Payments:
    """A tool with an effect."""

    made: list[int] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)

    def pay(self, amount: int) -> str:
        """Pay."""
        if self.fails:
            raise self.fails.pop()
        self.made.append(amount)
        return f"paid {amount}"


def paying(payments: Payments, *script: Any, **kwargs: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(*(script or (ai("", tool_call("pay", {"amount": 5})), "paid")))
    return create_agent(model, [payments.pay], checkpointer=InMemorySaver(), **kwargs), model
