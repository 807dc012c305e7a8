"""What gates count: plain data that any saver can store, and how it grows.

All functions are pure. A batch of parallel calls counts once, and so does an answer, however many gates look at it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from agentkit.transcript import SYNTHETIC, last_turn
from agentkit.usage import Used, used

__all__ = [
    "Counts",
    "Mark",
    "Spent",
    "Usage",
    "after_call",
    "before_call",
    "is_error",
    "new_turn",
    "with_calls",
    "with_time",
]

Failed = Callable[[ToolMessage], bool]
"""Whether a result means that its call failed."""


class Usage(TypedDict):
    """Tokens of one model, as the provider reported them."""

    calls: int
    input: int
    output: int
    cached: int  # those of `input` that the provider read from its cache


class Spent(TypedDict):
    """What a user turn, or a thread, has used up."""

    steps: int  # answers of the model
    tool_calls: dict[str, int]  # calls that went to the tools, by tool, whatever became of them
    usage: dict[str, Usage]  # by model
    without_usage: int  # replies for which no usage was reported


class Mark(TypedDict):
    """How often one call, same tool and same arguments, was seen."""

    tool: str
    times: int
    result: str  # digest of the result it gave last


class Counts(TypedDict):
    """All that is counted for one `Gates`. Everything but `thread` starts anew with each user turn."""

    run: Spent
    thread: Spent
    elapsed: float  # seconds at work, pauses left out
    since: float  # when `elapsed` was last brought up to date, seconds since the epoch
    failed_answers: int  # answers in a row of which every call failed
    failed_tools: dict[str, int]  # answers in a row in which every call of the tool failed
    failed_calls: dict[str, Mark]  # failures of one call, none of it succeeding between
    same_calls: dict[str, Mark]  # one call with the same result, no successful write between
    phase: str  # what was counted last: "start", "asked" (before a model call) or "answered" (after it)
    replies: int  # AI messages in the history when the model was asked last
    closing: dict[str, str] | None  # why the run ends, while its closing call is made


def new_turn(before: Counts | None, now: float) -> Counts:
    """The counts of a user turn that starts.

    Args:
        before: The thread's counts so far.
        now: Seconds since the epoch.
    """
    return Counts(
        run=_nothing(),
        thread=before["thread"] if before else _nothing(),
        elapsed=0.0,
        since=now,
        failed_answers=0,
        failed_tools={},
        failed_calls={},
        same_calls={},
        phase="start",
        replies=0,
        closing=None,
    )


def with_time(counts: Counts, now: float, began: float) -> Counts:
    """The counts with the time since they were last brought up to date.

    Args:
        counts: The counts.
        now: Seconds since the epoch.
        began: When this invocation began. What lies before it is a pause, or another process's.
    """
    worked = max(0.0, now - max(counts["since"], began))
    return {**counts, "elapsed": counts["elapsed"] + worked, "since": now}


def before_call(
    counts: Counts,
    messages: Sequence[AnyMessage],
    failed: Failed,
    writers: Collection[str],
    asked_again: Sequence[Used] = (),
) -> Counts:
    """The counts before a model call: with the results of the last answer's calls.

    Args:
        counts: The counts.
        messages: The history.
        failed: Whether a result means that its call failed.
        writers: Names of the tools whose success changes something.
        asked_again: What the replies used that did not stand; counted where the last answer has not been yet.
    """
    replies = sum(isinstance(message, AIMessage) for message in messages)
    reply, results = last_turn(messages)
    if reply is not None and counts["phase"] == "asked" and replies > counts["replies"]:
        counts = after_call(counts, messages, asked_again)  # a jump led here past the hook that counts answers
    if reply is not None and counts["phase"] == "answered":
        counts = _with_results(counts, _outcomes(reply, results, failed), writers)
    return {**counts, "phase": "asked", "replies": replies}


def after_call(counts: Counts, messages: Sequence[AnyMessage], asked_again: Sequence[Used] = ()) -> Counts:
    """The counts after a model call: with its answer, one step, and its tokens.

    Args:
        counts: The counts.
        messages: The history.
        asked_again: What the replies used that did not stand.
    """
    reply, _ = last_turn(messages)
    if reply is None or counts["phase"] == "answered":
        return {**counts, "phase": "answered"}
    made_up = bool(reply.response_metadata.get(SYNTHETIC))
    replies = [*asked_again, *([] if made_up else [used(reply)])]
    run, thread = (_answered(counts[per], replies, steps=0 if made_up else 1) for per in ("run", "thread"))
    return {**counts, "run": run, "thread": thread, "phase": "answered"}


def with_calls(counts: Counts, asked: Counter[str]) -> Counts:
    """The counts with calls, by tool, that are let through to the tools."""
    if not asked:
        return counts
    grown = [
        Spent({**spent, "tool_calls": dict(Counter(spent["tool_calls"]) + asked)})
        for spent in (counts["run"], counts["thread"])
    ]
    return {**counts, "run": grown[0], "thread": grown[1]}


# ---- inner


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one call."""

    tool: str
    failed: bool
    result: str


def _nothing() -> Spent:
    return Spent(steps=0, tool_calls={}, usage={}, without_usage=0)


def _answered(spent: Spent, replies: Sequence[Used], steps: int) -> Spent:
    usage, without = dict(spent["usage"]), spent["without_usage"]
    for reply in replies:
        if (reported := reply["usage"]) is None:
            without += 1
            continue
        so_far = usage.get(reply["model"]) or Usage(calls=0, input=0, output=0, cached=0)
        usage[reply["model"]] = Usage(
            calls=so_far["calls"] + 1,
            input=so_far["input"] + reported["input_tokens"],
            output=so_far["output"] + reported["output_tokens"],
            cached=so_far["cached"] + ((reported.get("input_token_details") or {}).get("cache_read") or 0),
        )
    return {**spent, "steps": spent["steps"] + steps, "usage": usage, "without_usage": without}


def _outcomes(reply: AIMessage, results: Sequence[ToolMessage], failed: Failed) -> dict[str, _Outcome]:
    """What became of the calls, by call; of identical ones, a success counts. Open calls are left out."""
    found: dict[str, _Outcome] = {}
    answers = {result.tool_call_id: result for result in results}
    for call in reply.tool_calls:
        answer = answers.get(call["id"] or "")
        if answer is not None:
            key = _digest(call["name"], call["args"])
            outcome = _Outcome(call["name"], failed(answer), _digest(answer.status, answer.content))
            found[key] = outcome if key not in found or not outcome.failed else found[key]
    for invalid in reply.invalid_tool_calls:
        name = invalid["name"] or "unknown"
        found[_digest(name, invalid["args"])] = _Outcome(name, True, _digest("unreadable", invalid["error"]))
    return found


def _with_results(counts: Counts, outcomes: dict[str, _Outcome], writers: Collection[str]) -> Counts:
    if not outcomes:
        return counts
    worked = {outcome.tool for outcome in outcomes.values() if not outcome.failed}
    return {
        **counts,
        "failed_answers": 0 if worked else counts["failed_answers"] + 1,
        "failed_tools": _failed_tools(counts["failed_tools"], outcomes.values(), worked),
        "failed_calls": _failed_calls(counts["failed_calls"], outcomes),
        "same_calls": _same_calls(counts["same_calls"], outcomes, writers),
    }


def _failed_tools(before: dict[str, int], outcomes: Iterable[_Outcome], worked: set[str]) -> dict[str, int]:
    kept = {tool: times for tool, times in before.items() if tool not in worked}
    for tool in {outcome.tool for outcome in outcomes} - worked:
        kept[tool] = kept.get(tool, 0) + 1
    return kept


def _failed_calls(before: dict[str, Mark], outcomes: dict[str, _Outcome]) -> dict[str, Mark]:
    kept = {key: mark for key, mark in before.items() if key not in outcomes or outcomes[key].failed}
    for key, outcome in outcomes.items():
        if outcome.failed:
            times = kept[key]["times"] + 1 if key in kept else 1
            kept[key] = Mark(tool=outcome.tool, times=times, result=outcome.result)
    return kept


def _same_calls(before: dict[str, Mark], outcomes: dict[str, _Outcome], writers: Collection[str]) -> dict[str, Mark]:
    """A successful write starts all calls anew, except its own: a write that is repeated is a loop too."""
    written = {key for key, outcome in outcomes.items() if outcome.tool in writers and not outcome.failed}
    kept = {key: mark for key, mark in before.items() if not written or key in written}
    for key, outcome in outcomes.items():
        again = key in kept and kept[key]["result"] == outcome.result
        kept[key] = Mark(tool=outcome.tool, times=kept[key]["times"] + 1 if again else 1, result=outcome.result)
    return kept


def _digest(*parts: Any) -> str:
    """A short text that is the same for equal parts, whatever the order of keys."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_error(result: ToolMessage) -> bool:
    """Whether a tool call failed, as far as its result says."""
    return result.status == "error"
