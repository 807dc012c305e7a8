"""Every recorded conversation again, turn by turn on a checkpointed thread: the same prompts, the same history."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import convert_to_openai_messages
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import create_agent, thread
from agentkit.testing import ScriptedModel, pairing_problems
from tests.tau.record import Conversation, as_recorded
from tests.tau.shop import Shop
from tests.wire.driving import Drive
from tests.wire.strict import refusals

END = "Goodbye."


def _from_the_record(conversation: Conversation, tools: list[BaseTool]) -> list[BaseTool]:
    """Tools that answer what was recorded, failures included; no conversation has two calls at once."""
    results = conversation.results

    def answer(**arguments: Any) -> str:
        return next(results)

    return [
        StructuredTool.from_function(answer, name=tool.name, description=tool.description, args_schema=tool.args_schema)
        for tool in tools
    ]


@pytest.mark.parametrize("drive", ["invoke", "astream"], indirect=True)  # the tasks go through all four
def test_every_conversation(drive: Drive, shop: Shop, conversations: list[Conversation], policy: str) -> None:
    for conversation in conversations:
        shop.reset()
        tools = _from_the_record(conversation, shop.tools()) if conversation.flaky else shop.tools()
        # a recording that stops at a tool result gets the answer that its agent had no time to give
        model = ScriptedModel(*conversation.replies, *[END] * conversation.open_ended)
        agent = create_agent(model, tools, system_prompt=policy, checkpointer=InMemorySaver())
        config = thread(conversation.name)
        for words in conversation.says:
            drive(agent, words, config)

        expected = [*conversation.answered, *[{"role": "assistant", "content": END}] * conversation.open_ended]
        assert as_recorded(agent.get_state(config).values["messages"]) == expected, conversation.name
        _assert_prompts(model, policy, expected)


def _assert_prompts(model: ScriptedModel, policy: str, history: list[dict[str, Any]]) -> None:
    """Each prompt is the policy and the history so far, and no strict provider would refuse it."""
    answers = [at for at, message in enumerate(history) if message["role"] == "assistant"]
    assert model.calls == len(answers)
    for request, at in zip(model.requests, answers, strict=True):
        assert as_recorded(request.messages) == [{"role": "system", "content": policy}, *history[:at]]
        assert pairing_problems(request.messages) == []
        assert refusals({"messages": convert_to_openai_messages(request.messages)}) == []
