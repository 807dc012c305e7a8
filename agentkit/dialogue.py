"""One exchange with the model: what is sent, and what is asked again because the reply cannot be used.

The policy is a generator, written once: it yields attempts and is sent replies. What it asks again never enters the
history; only the reply that stands does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Final, NoReturn

from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from pydantic import ValidationError

from agentkit._compat import is_empty_stream
from agentkit.binding import Binding
from agentkit.errors import MissingStructuredOutput, TruncatedReply, UnreadableReply
from agentkit.limits import Limits
from agentkit.reply import is_cut_off, is_empty, refuse_unsafe_calls
from agentkit.transcript import well_formed

__all__ = ["Attempt", "converse"]

_NUDGE_EMPTY: Final = "Your last answer was empty. Answer now, in words, from the results above; do not call tools."
_NUDGE_STRUCTURED: Final = "Give your answer by calling one of the answer tools ({names}), not in plain text."
_NUDGE_UNREADABLE: Final = (
    "Your last answer could not be read: {problem}. The arguments of a tool call must be one JSON object."
)
_MOST_TRIES: Final = 10  # also without limits: an exchange ends


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of the model."""

    messages: Sequence[AnyMessage]
    with_tools: bool = True


@dataclass(frozen=True, slots=True)
class _Again:
    """Why a reply is not taken, and how it is asked for again."""

    limit: int
    give_up: Callable[[int], AIMessage]
    """What becomes of the exchange when it was asked for that often; may raise."""
    added: tuple[AnyMessage, ...] = ()
    """Said to the model, in that request only."""
    with_tools: bool = True


def converse(
    binding: Binding, messages: Sequence[AnyMessage], limits: Limits, *, checked: bool = False
) -> Generator[Attempt, AIMessage, AIMessage]:
    """Ask the model until its reply can be used.

    Args:
        binding: How the request is put to the model.
        messages: What is sent, without the system message.
        limits: How often each fault is asked again.
        checked: Whether the messages are known to be well-formed.

    Returns:
        The reply, with no call in it that must not run.

    Raises:
        TruncatedReply: If the reply broke off each time.
        UnreadableReply: If the reply could not be built each time.
        MissingStructuredOutput: If a structured answer was required and the model answered in plain text each time.
    """
    sent = messages if checked else well_formed(messages)
    attempt = Attempt(sent)
    tries: dict[str, int] = {}
    while True:
        try:
            reply = yield attempt
        except (ValueError, AssertionError) as error:  # pydantic's ValidationError is a ValueError
            fault, again = _unreadable(error, limits)
        else:
            unusable = _unusable(reply, sent, binding, limits)
            if unusable is None:
                return refuse_unsafe_calls(reply)
            fault, again = unusable
        tries[fault] = tries.get(fault, 0) + 1
        if tries[fault] >= min(again.limit, _MOST_TRIES):
            return again.give_up(tries[fault])
        attempt = Attempt(well_formed([*sent, *again.added]), again.with_tools)


def _unreadable(error: Exception, limits: Limits) -> tuple[str, _Again]:
    """What to do about a reply that could not even be built; raises the error if it is none of that kind."""

    def give_up(tries: int) -> NoReturn:
        raise UnreadableReply(tries, _problem(error)) from error

    if is_empty_stream(error):
        return "cut off", _Again(limits.malformed_answers, _truncated)
    if isinstance(error, JSONDecodeError):  # a chunk that arrived corrupt
        return "unreadable", _Again(limits.malformed_answers, give_up)
    if isinstance(error, ValidationError) and error.title == "AIMessage":
        told = HumanMessage(_NUDGE_UNREADABLE.format(problem=_problem(error)))
        return "unreadable", _Again(limits.malformed_answers, give_up, (told,))
    raise error


def _problem(error: Exception) -> str:
    """What was wrong with a reply that could not be built, without its content."""
    if not isinstance(error, ValidationError):
        return type(error).__name__
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _unusable(
    reply: AIMessage, sent: Sequence[AnyMessage], binding: Binding, limits: Limits
) -> tuple[str, _Again] | None:
    """Why a reply cannot be taken as it is, if so."""
    if is_cut_off(reply):
        return "cut off", _Again(limits.malformed_answers, _truncated)
    if reply.tool_calls or reply.invalid_tool_calls:
        return None
    if isinstance(binding.strategy, ToolStrategy):
        told = HumanMessage(_NUDGE_STRUCTURED.format(names=", ".join(binding.offered)))
        return "plain text", _Again(limits.structured_retries, _unstructured, (reply, told))
    if is_empty(reply) and binding.strategy is None and sent and isinstance(sent[-1], ToolMessage):
        fallback = _Fallback(reply, [m for m in sent if isinstance(m, ToolMessage)])
        return "empty", _Again(2, fallback, (HumanMessage(_NUDGE_EMPTY),), with_tools=False)
    return None


def _truncated(tries: int) -> NoReturn:
    raise TruncatedReply(tries)


def _unstructured(tries: int) -> NoReturn:
    raise MissingStructuredOutput(tries, "the model answered in plain text")


@dataclass(frozen=True, slots=True)
class _Fallback:
    """What stands in for an answer that stayed empty: the results that were found, in few words."""

    reply: AIMessage
    results: Sequence[ToolMessage]

    def __call__(self, tries: int) -> AIMessage:
        found = [f"- {result.name or 'result'}: {_short(result.text)}" for result in self.results[-5:]]
        text = "\n".join(["I could not put an answer into words. This is what was found:", *found])
        return self.reply.model_copy(update={"content": text})


def _short(text: str, length: int = 200) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
