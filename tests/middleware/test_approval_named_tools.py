"""`Approval` on a tool that the agent does not have is refused, unless somebody may supply the tool."""

from typing import Any

from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import Middleware, create_agent, thread
from agentkit.middleware import Approval, pending_approvals
from agentkit.testing import ScriptedModel, ai, tool_call


@tool
def refund(order_id: str) -> str:
    """Refund an order."""
    return f"refunded {order_id}"


class Supplies(Middleware):
    """Offers a tool that `create_agent` does not know of, and runs it."""

    def wrap_model_call(self, request: Any) -> Any:
        return (yield request.override(tools=[*request.tools, refund]))

    def wrap_tool_call(self, request: Any) -> Any:
        return (yield request.override(tool=refund))


def test_a_tool_that_a_wrap_supplies_is_asked_about() -> None:
    model = ScriptedModel(ai("", tool_call("refund", {"order_id": "A-17"})), "Done.")
    agent = create_agent(model, middleware=[Supplies(), Approval("refund")], checkpointer=InMemorySaver())
    (asked,) = pending_approvals(agent.invoke({"messages": "Refund A-17."}, thread("t-1")))
    assert asked.args == {"order_id": "A-17"}


def test_a_tool_of_the_provider_may_be_named() -> None:
    search = {"type": "web_search", "name": "web_search"}
    agent = create_agent(ScriptedModel("Done."), [search], middleware=[Approval("web_search")])
    assert agent.invoke({"messages": "Hi."})["messages"][-1].text == "Done."
