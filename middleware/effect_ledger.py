"""`EffectLedger`: no writing call is executed twice, and none is lost unnoticed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from uuid import NAMESPACE_URL, uuid5

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from agentkit.contract import AGENT
from agentkit.errors import ConfigurationError
from agentkit.events import emit
from agentkit.ledger import Call, Claim, Doubt, Found, Ledger, Settlement
from agentkit.middleware.effect_doubts import (
    OnDoubt,
    in_words,
    other_arguments,
    question,
    recorded,
    schema,
    settlement,
)
from agentkit.middleware_base import Blocking, Named, Paused, Placement
from agentkit.pause import Delivery, ask
from agentkit.tools import contract_of, idempotency_key
from agentkit.transcript import UNKNOWN_OUTCOME

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["EffectLedger", "OnDoubt"]

_REMEMBERED = 1000  # doubts that were reported
_NAMED = uuid5(NAMESPACE_URL, "agentkit:named-effect")


class EffectLedger(Named):
    """Writes down each writing call before it is executed, and what came of it.

    ```python
    create_agent(model, tools, middleware=[EffectLedger("sqlite:///effects.db")], checkpointer=saver)
    ```

    A call that was finished is answered with its recorded result. Of one that was started and has no end, after a crash
    or a time-out, an idempotent tool is called again with the same key; of any other a person is asked.
    """

    tool_placement = Placement(inside=("Approval", "Reuse", "ToolRetry", "ToolRetryMiddleware"))

    def __init__(
        self,
        store: Ledger | Engine | str,
        *,
        on_doubt: OnDoubt = "ask",
        key: Callable[[ToolCallRequest], str | None] | None = None,
        unknown: Literal["write", "read"] = "write",
        name: str = "EffectLedger",
    ) -> None:
        """Use this ledger.

        Args:
            store: A `Ledger`, or what makes one: a URL or a SQLAlchemy `Engine`.
            on_doubt: What happens when it is unknown whether an effect happened: `"ask"` pauses for a person, which
                needs a checkpointer; `"tell"` tells the model not to repeat it; a function of the `Doubt` returns a
                `Settlement` (in async code it is called in a thread). Default: `"ask"`.
            key: Names the effect of a call, for example `refund` by its order's number: calls of one tool with the same
                name are one effect, in all threads, and it happens once. None, or a function that returns None: each
                call is an effect of its own. Default: None.
            unknown: How tools are treated that do not say what they do. Default: as if they wrote.
            name: The middleware's name, for several instances in one agent.

        Raises:
            ConfigurationError: If an option is none of these.
        """
        super().__init__(name)
        if not callable(on_doubt) and on_doubt not in ("ask", "tell"):
            raise ConfigurationError(f"{name}: on_doubt is 'ask', 'tell' or a function, not {on_doubt!r}.")
        if unknown not in ("write", "read"):
            raise ConfigurationError(f"{name}: unknown is 'write' or 'read', not {unknown!r}.")
        self.ledger = store if isinstance(store, Ledger) else Ledger(store)
        self.pauses_tools = on_doubt == "ask"
        self._on_doubt = on_doubt
        self._key = key
        self._unknown = unknown
        self._reported: set[tuple[str, str | None]] = set()

    def wrap_tool_call(self, request: ToolCallRequest) -> Generator[Any, Any, Any]:
        """Execute the call if it is to be, and record it."""
        if not self._covers(request):
            return (yield request)
        call = self._call(request)
        if self.ledger.is_open(call):
            return (yield request)
        claim = yield from self._claimed(call)
        if isinstance(claim, Claim):
            return (yield from self._executed(request, claim))
        return claim

    def _covers(self, request: ToolCallRequest) -> bool:
        """Whether the call may have an effect here. An agent as a tool has none itself: its own tools do."""
        tool = request.tool
        if tool is None or AGENT in (tool.metadata or {}):
            return False
        return (contract_of(tool).effect or self._unknown) == "write"

    def _call(self, request: ToolCallRequest) -> Call:
        contract, tool = contract_of(request.tool), request.tool_call["name"]
        own, name = idempotency_key(request), self._key(request) if self._key is not None else None
        config = getattr(request.runtime, "config", None) or {}
        return Call(
            key=own if name is None else str(uuid5(_NAMED, f"{tool}\x1f{name}")),
            call_key=own,
            effect_name=name,
            thread_id=config.get("configurable", {}).get("thread_id"),
            call_id=request.tool_call["id"],
            tool=tool,
            args=request.tool_call["args"],
            repeatable=contract.repeatable,
            transactional=contract.transactional,
        )

    # ---- before: may it be executed?

    def _claimed(self, call: Call) -> Generator[Any, Any, Any]:
        """The right to execute the call, or what answers it instead."""
        while True:
            claim: Claim | Found = yield Blocking(partial(self.ledger.claim, call))
            if isinstance(claim, Claim):
                return claim
            effect = claim.effect
            if claim.verdict == "other_arguments":
                return other_arguments(effect, call)
            if claim.verdict == "recorded":
                yield Blocking(partial(self.ledger.serve, call))
                text = f"{call.tool} is answered with its recorded result"
                emit("ledger.served", text, tool=call.tool, tool_call_id=call.call_id)
                return recorded(effect, call)
            doubt = Doubt(effect, call)
            settled: Settlement | None = yield from self._settled(doubt)
            if settled is None or settled.outcome == "unknown":
                return in_words(doubt)
            yield Blocking(partial(self.ledger.settle_attempt, effect, settled))

    def _settled(self, doubt: Doubt) -> Generator[Any, Any, Settlement | None]:
        if self._on_doubt == "ask":
            return self._answered(doubt)
        self._report(doubt)
        if callable(self._on_doubt):
            settled: Settlement = yield Blocking(partial(self._on_doubt, doubt))
            return settled
        return None

    def _answered(self, doubt: Doubt) -> Settlement:
        """What a person says of it."""
        while True:  # answers to earlier doubts about this call come again when the step runs again
            report = partial(self._report, doubt)
            about, answer = ask(question(doubt), _checked, schema(), asker=self.name, asking=report)
            if about == doubt.id:
                return answer

    def _report(self, doubt: Doubt) -> None:
        """Report it once: a step that waits runs again with each answer to a question beside it."""
        call = doubt.call
        if (told := (doubt.id, call.call_id)) in self._reported:
            return
        if len(self._reported) >= _REMEMBERED:
            self._reported.clear()
        self._reported.add(told)
        text = f"whether {call.tool} took effect is in doubt"
        emit("ledger.in_doubt", text, level=logging.WARNING, tool=call.tool, tool_call_id=call.call_id)

    # ---- around the execution

    def _executed(self, request: ToolCallRequest, claim: Claim) -> Generator[Any, Any, Any]:
        try:
            with self.ledger.opened(claim):
                result = yield request
        except Paused:
            yield Blocking(partial(self.ledger.take_back, claim))
            raise
        except Exception as error:
            yield Blocking(partial(self.ledger.break_off, claim, error))
            raise
        answer = _answer(result, str(claim.call.call_id))
        if answer is not None and answer.additional_kwargs.get(UNKNOWN_OUTCOME):
            yield Blocking(partial(self.ledger.break_off, claim, TimeoutError()))
            return result
        failed = answer is not None and answer.status == "error"
        yield Blocking(partial(self.ledger.finish, claim, result, failed=failed))
        return result


def _checked(answer: Any, came: Delivery) -> tuple[str, Settlement]:
    return settlement(answer)


def _answer(result: Any, call_id: str) -> ToolMessage | None:
    """The result message of the call, among what it gave."""
    for part in result if isinstance(result, list) else [result]:
        update = part.update if isinstance(part, Command) and isinstance(part.update, dict) else {}
        messages = (
            [part, *(update.get("messages") or [])] if isinstance(update.get("messages"), list | None) else [part]
        )
        for message in messages:
            if isinstance(message, ToolMessage) and message.tool_call_id == call_id:
                return message
    return None
