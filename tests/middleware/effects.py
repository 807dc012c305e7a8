"""Agents that record their effects, and tools that break off: what the tests of `EffectLedger` share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import create_agent
from agentkit.ledger import Ledger
from agentkit.middleware import EffectLedger
from agentkit.testing import ScriptedModel, ai, tool_call

NOW: Any = {"started_before": timedelta(0)}


class Once(Exception):
    """The process breaks off here, as far as the agent can tell."""


def breaking(*, after: bool) -> Any:
    """What a tool does that breaks off the first time, before or after its effect."""
    state = {"broken": False, "effects": 0}

    def does(x: int) -> str:
        if not after and not state["broken"]:
            state["broken"] = True
            raise Once
        state["effects"] += 1
        if after and not state["broken"]:
            state["broken"] = True
            raise Once
        return f"paid {x}"

    return does, state


def called(name: str, *amounts: int, **more: Any) -> AIMessage:
    return ai("", *(tool_call(name, {"x": amount, **more}, f"c{n}") for n, amount in enumerate(amounts)))


def answers(messages: Any) -> list[ToolMessage]:
    return [m for m in messages if isinstance(m, ToolMessage)]


def agent_of(ledger: Ledger, tools: Any, *steps: Any, around: Any = (), saver: Any = None, **options: Any) -> Any:
    return create_agent(
        ScriptedModel(*steps),
        tools,
        middleware=[*around, EffectLedger(ledger, **options)],
        checkpointer=saver or InMemorySaver(),
    )
