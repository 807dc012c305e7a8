"""A simulated shop and a simulated model with faults, the same for every loop that is measured.

All chance comes from a hash of the seed, the conversation and what is drawn for, so two loops that do the same meet the
same faults.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException, tool

from agentkit.testing import Request, ScriptedModel, ai, tool_call
from agentkit.tools import with_contract

CHARACTERS_PER_TOKEN = 4
SECONDS_PER_MODEL_CALL, SECONDS_PER_ANSWER_TOKEN, SECONDS_PER_TOOL_CALL = 1.0, 0.02, 0.5
SCHEMAS = 3_000
"""Characters of the tools' schemas, sent whenever tools are offered."""
INSTRUCTIONS = "You are the order assistant of a shop. " * 40
ASKS = ("What about my order {order}? I am {user}.", "Then refund order {order}, please.")
"""What the user says, turn by turn."""
_SUPERVISION = "A note from the agent's supervision"


@dataclass(frozen=True)
class Faults:
    """How often things go wrong."""

    repeat: float
    """A read that succeeded is called again, per step of the model."""
    malformed: float
    """The arguments of a call have a wrong name, per call; the next try is right."""
    failing: float
    """A tool times out, per execution. A write has taken effect by then in half of the cases."""
    stuck: float
    """After a failed call the model sends wrong arguments from then on, whatever it is told, per failure."""


class ShopTimeout(ToolException):
    """The shop did not answer in time, told to the model as it is."""


@dataclass
class Conversation:
    """One user's conversation: the shop they meet, the model that answers, and what it all took."""

    seed: int
    number: int
    faults: Faults
    tokens: int = 0
    seconds: float = 0.0
    model_calls: int = 0
    longest_turn: int = 0
    effects: Counter[str] = field(default_factory=Counter)
    executions: Counter[str] = field(default_factory=Counter)
    _tries: Counter[str] = field(default_factory=Counter)
    _stuck: set[str] = field(default_factory=set)
    _this_turn: int = 0

    @contextmanager
    def present(self) -> Iterator[None]:
        """Let the shop and the model serve this conversation."""
        token = _present.set(self)
        try:
            yield
        finally:
            _present.reset(token)

    @property
    def order(self) -> str:
        """The order that it is about."""
        return f"W{self.number:05}"

    @property
    def user(self) -> str:
        """Who asks."""
        return f"user{self.number:05}"

    def asks(self) -> list[str]:
        """What the user says, turn by turn."""
        return [text.format(order=self.order, user=self.user) for text in ASKS]

    def new_turn(self) -> None:
        """The user says something."""
        self._this_turn = 0

    def chance(self, rate: float, *drawn_for: object) -> bool:
        """Whether a fault happens."""
        text = json.dumps([self.seed, self.number, *map(str, drawn_for)])
        return int(sha256(text.encode()).hexdigest()[:13], 16) / 16**13 < rate

    # ---- the shop

    def execute(self, name: str, fault: type[Exception], effect: bool = False) -> int:
        """One execution of a tool: the how manieth it is. It may time out with `fault`, after its effect or before."""
        self.executions[name] += 1
        number = self.executions[name]
        self.seconds += SECONDS_PER_TOOL_CALL
        if self.chance(self.faults.failing, "fails", name, number):
            if effect and self.chance(0.5, "took effect", name, number):
                self.effects[self.order] += 1
            raise fault("the shop did not answer in time")
        return number

    # ---- the model

    def answer(self, request: Request) -> AIMessage:
        """What the model says to a request."""
        self.model_calls += 1
        self._this_turn += 1
        self.longest_turn = max(self.longest_turn, self._this_turn)
        reply = self._reply(request)
        prompt = sum(len(str(m.text)) + len(_calls(m)) for m in request.messages) + (SCHEMAS if request.tools else 0)
        written = (len(str(reply.text)) + len(_calls(reply))) // CHARACTERS_PER_TOKEN
        self.tokens += prompt // CHARACTERS_PER_TOKEN + written
        self.seconds += SECONDS_PER_MODEL_CALL + SECONDS_PER_ANSWER_TOKEN * written
        return reply

    def _reply(self, request: Request) -> AIMessage:
        if not request.tools:
            return ai("I could not finish this. Here is what I know so far.")
        wanted = _wanted(request.messages)
        done, failed = _results(request.messages)
        steps = ["find_user", "get_order", *(["refund"] if "refund" in wanted else [])]
        step = next((name for name in steps if name not in done), None)
        reads = [name for name in steps if name in done and name != "refund"]
        if reads and not failed and self.chance(self.faults.repeat, "repeat", self.model_calls):
            return self._call(reads[-1], well=True)
        if step is None:
            return ai(f"Done: order {self.order} was delivered" + (", and refunded." if "refund" in wanted else "."))
        if failed == step and self.chance(self.faults.stuck, "stuck", step, self._tries[step]):
            self._stuck.add(step)
        self._tries[step] += 1
        malformed = self.chance(self.faults.malformed, "malformed", step, self._tries[step])
        return self._call(step, well=step not in self._stuck and not malformed)

    def _call(self, name: str, *, well: bool) -> AIMessage:
        right: dict[str, dict[str, Any]] = {
            "find_user": {"name": self.user},
            "get_order": {"order_id": self.order},
            "refund": {"order_id": self.order, "amount": 42},
        }
        args = right[name] if well else {"id": self.order}
        return ai("", tool_call(name, args, f"c{self.number}-{self.model_calls}"))


_present: ContextVar[Conversation] = ContextVar("conversation")


def shop_tools(fault: type[Exception] = ShopTimeout) -> list[BaseTool]:
    """The shop's tools, for whichever conversation is present; each says whether it reads or writes.

    Args:
        fault: What a tool raises that times out.
    """

    @tool
    def find_user(name: str) -> str:
        """Find a user by name."""
        here = _present.get()
        here.execute("find_user", fault)
        return json.dumps({"user_id": name, "address": "12 Long Road, Leeds", "orders": [here.order]} | _PADDING)

    @tool
    def get_order(order_id: str) -> str:
        """Look an order up."""
        _present.get().execute("get_order", fault)
        return json.dumps({"order_id": order_id, "status": "delivered", "amount": 42} | _PADDING)

    @tool
    def refund(order_id: str, amount: int) -> str:
        """Refund an order."""
        number = _present.get().execute("refund", fault, effect=True)
        _present.get().effects[order_id] += 1
        return receipt(order_id, amount, number)

    reads: list[BaseTool] = [find_user, get_order]
    return [*(with_contract(read, effect="read") for read in reads), with_contract(refund, effect="write")]


def receipt(order_id: str, amount: int, number: int) -> str:
    """What the shop answers to a refund."""
    return json.dumps({"refunded": amount, "order_id": order_id, "receipt": f"R{number}"})


def shop_model() -> ScriptedModel:
    """The model, for whichever conversation is present."""
    return ScriptedModel(lambda request: _present.get().answer(request), repeat=True, stream=False)


def refunds_made(order_id: str) -> int:
    """How often the shop has refunded an order, by its own books."""
    return _present.get().effects[order_id]


_PADDING = {"note": "parcel left with the neighbour at number 14; signature on file. " * 8}


def _calls(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return "".join(call["name"] + json.dumps(call["args"]) for call in calls)


def _wanted(messages: Sequence[BaseMessage]) -> str:
    said = [str(m.text) for m in messages if isinstance(m, HumanMessage)]
    return next(text for text in reversed(said) if not text.startswith(_SUPERVISION))


def _results(messages: Sequence[BaseMessage]) -> tuple[set[str], str | None]:
    """The tools that have succeeded, as far as the model is shown, and the last one if it has just failed."""
    names = {call["id"]: call["name"] for m in messages if isinstance(m, AIMessage) for call in m.tool_calls}
    done: set[str] = set()
    last: str | None = None
    for message in messages:
        if isinstance(message, ToolMessage):
            name = names.get(message.tool_call_id, "")
            worked = '{"' in str(message.text)  # a ledger says something before it
            done |= {name} if worked else set()
            last = None if worked else name
    return done, last
