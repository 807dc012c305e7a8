"""The agent: a small offline model, one tool that writes, and a rule that a person decides above 1,000."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, ToolException
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from agentkit import AgentGraph, create_agent
from agentkit.middleware import Approval, ApprovalRule
from agentkit.tools import IdempotencyKey, tool
from examples.transfer_approval.bank import Bank, Refused

__all__ = ["LIMIT", "opened", "teller"]

LIMIT = 1_000
"""Above this, a person decides."""

_ORDER = re.compile(r"(?P<amount>\d[\d,]*(?:\.\d+)?)\s+(?:euros?\s+)?to\s+(?P<to>\w+)", re.IGNORECASE)


class Clerk(BaseChatModel):
    """Understands one kind of sentence: "transfer 1,500 to Ann"."""

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_answer(messages))])


def _answer(messages: Sequence[BaseMessage]) -> AIMessage:
    if isinstance(last := messages[-1], ToolMessage):
        lines = last.text.splitlines()  # a note of the approval may stand before a result, and after a rejection
        why = lines[0].removeprefix("Not executed: ")
        return AIMessage(f"Not transferred: {why}" if last.status == "error" else f"Done: {lines[-1]}.")
    found = _ORDER.search(last.text) if isinstance(last, HumanMessage) else None
    if found is None:
        return AIMessage('Say it like this: "transfer 250 to Ann".')
    args = {"amount": float(found["amount"].replace(",", "")), "to": found["to"].lower()}
    call = {"name": "transfer", "args": args, "id": f"call-{len(messages)}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def is_large(args: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
    """Whether a person has to decide."""
    return bool(args["amount"] > LIMIT)


def teller(bank: Bank, saver: BaseCheckpointSaver[Any]) -> AgentGraph:
    """The agent, on a bank and a place where its conversations are kept."""
    approval = Approval(ApprovalRule(tool="transfer", when=is_large, label=f"above {LIMIT:,}"))
    return create_agent(Clerk(), [_transfer(bank)], middleware=[approval], checkpointer=saver, name="teller")


def _transfer(bank: Bank) -> BaseTool:
    @tool(effect="write", idempotent=True)
    def transfer(amount: float, to: str, key: Annotated[str, IdempotencyKey]) -> str:
        """Transfer money from the house to an account."""
        try:
            return bank.transfer(key, to, amount)
        except Refused as error:
            raise ToolException(str(error)) from error

    return transfer


@contextmanager
def opened(folder: Path) -> Iterator[tuple[AgentGraph, Bank]]:
    """The teller and its bank, both in SQLite files of a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    bank = Bank(folder / "bank.db")
    with SqliteSaver.from_conn_string(str(folder / "threads.db")) as saver:
        yield teller(bank, saver), bank
