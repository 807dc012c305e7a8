"""The planner's next step, found by going through the whole conversation again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from langchain_core.messages import BaseMessage

from examples.order_assistant.planner.goals import GOALS, Said
from examples.order_assistant.planner.history import Call, Result, Turn, turns
from examples.order_assistant.planner.understand import Memory, understand

__all__ = ["Step", "next_step"]


@dataclass(frozen=True)
class Step:
    """What the planner does next: call tools side by side, or speak."""

    text: str = ""
    calls: tuple[Call, ...] = ()


def next_step(messages: Sequence[BaseMessage], tools: Collection[str]) -> Step:
    """Decide from the messages alone.

    Args:
        messages: The conversation so far.
        tools: Names of the tools that may be called.
    """
    memory = Memory()
    step: Said | tuple[Call, ...] = Said(GREETING)
    for turn in turns(messages):
        language, step = _play(turn, memory)
        memory = _remember(replace(memory, language=language), step)
    if isinstance(step, Said):
        return Step(text=step.text)
    missing = next((call.tool for call in step if call.tool not in tools), None)
    if missing is not None:
        return Step(text=understand("", memory).phrases.say["no_tool"].format(tool=missing))
    return Step(calls=step)


GREETING = understand("", Memory()).phrases.say["greet"]


def _play(turn: Turn, memory: Memory) -> tuple[str, Said | tuple[Call, ...]]:
    """Run a turn's plan on the results that are there; what it returns or wants next, and the turn's language."""
    request = understand(turn.text, memory)
    plan = GOALS[request.goal](request, memory)
    rounds = iter(turn.rounds)
    try:
        calls = next(plan)
        for results in rounds:
            calls = plan.send(_fit(results, len(calls)))
    except StopIteration as end:
        said: Said = end.value
        return request.language, said
    plan.close()
    return request.language, calls


def _fit(results: tuple[Result, ...], wanted: int) -> tuple[Result, ...]:
    """As many results as the plan asked for, though somebody may have changed the calls on their way."""
    missing = (Result({}, "other", "the call was not made"),) * (wanted - len(results))
    return (*results[:wanted], *missing)


def _remember(memory: Memory, step: Said | tuple[Call, ...]) -> Memory:
    if not isinstance(step, Said):
        return replace(memory, draft=None)
    return replace(
        memory, order=step.order or memory.order, products=step.products or memory.products, draft=step.draft
    )
