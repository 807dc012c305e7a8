"""Try an installed agentkit from outside the checkout: python smoke.py [FOLDER IT MUST NOT COME FROM].

Checks that the parts are there (the two mapped packages, the typing marker) and that an agent runs a tool and answers,
with nothing installed beyond what the package itself asks for.
"""

import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

import agentkit
import agentkit.middleware
import agentkit.tools


class Scripted(FakeMessagesListChatModel):
    """Answers from a list; binding tools changes nothing."""

    def bind_tools(self, tools: object, **kwargs: object) -> "Scripted":  # type: ignore[override]
        return self


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def main(checkout: str | None) -> None:
    for module in (agentkit, agentkit.middleware, agentkit.tools):
        where = Path(str(module.__file__)).resolve()
        if checkout and where.is_relative_to(Path(checkout).resolve()):
            sys.exit(f"{module.__name__} came from {where}, in the checkout, not from the installed package")
    if not files("agentkit").joinpath("py.typed").is_file():
        sys.exit("py.typed is missing: type checkers would ignore the package's types")

    call = {"name": "add", "args": {"a": 2, "b": 3}, "id": "call-1", "type": "tool_call"}
    model = Scripted(responses=[AIMessage("", tool_calls=[call]), AIMessage("It is 5.")])
    agent = agentkit.create_agent(model, [add])
    messages = agent.invoke({"messages": [("user", "What is 2 + 3?")]})["messages"]
    if [message.text for message in messages] != ["What is 2 + 3?", "", "5", "It is 5."]:
        sys.exit(f"the agent did not run its tool and answer: {messages!r}")
    print(f"smoke test: agentkit {version('agentkit')} in {Path(str(agentkit.__file__)).parent} works")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
