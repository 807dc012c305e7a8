"""The same scenario compiled by LangChain's factory and by ours: same results, same states seen, same requests.

Restricted to what both define alike. What LangChain itself gets wrong is left out by looking at its own run: requests
that a strict provider refuses, calls left open at the end, calls executed again, and its router's KeyError.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import assume, given, settings
from langchain.agents import create_agent as reference

from agentkit import Limits, create_agent
from agentkit.testing import EntryPoint, pairing_problems
from tests.property.conftest import cases
from tests.property.playing import Played, play
from tests.property.stacks import Stack
from tests.property.strategies import alike_stacks, calm_stacks

FORMS: dict[str, dict[str, Any]] = {
    "hook": {"granularity": "hook"},
    "turn": {"granularity": "turn", "heard": True},
    "whole": {"granularity": "turn"},
}
"""How agentkit runs: a step per hook, two steps a turn, and the whole run in one step."""

NO_BRAKE: Final = Limits(structured_retries=100)
"""LangChain asks for a structured answer as often as none is valid; a script of three invalid ones meets our brake."""


def reference_is_sound(played: Played) -> bool:
    """Whether LangChain ran a scenario as both define it."""
    executed = [(head, call) for head, call, _, _ in played.log.finished]
    return (
        not played.malformed
        and not any(pairing_problems(raw["messages"]) for raw in played.ended)
        and not any(who.endswith("after_agent") and _leaves_calls_open(state) for who, state in played.log.seen)
        and ("error", "KeyError") not in played.events
        and len(executed) == len(set(executed))
        and not _dispatches_again(played)
        and not played.log.faults
    )


def _dispatches_again(played: Played) -> bool:
    """Whether a call was dispatched twice, with nothing to resume: LangChain does where a hook removes its result."""
    outermost = min((who for who, _ in played.log.wrapped), default=None)
    dispatched = [call for who, call in played.log.wrapped if who == outermost]
    return len(dispatched) != len(set(dispatched)) and all(what == "ended" for what, _ in played.events)


def _leaves_calls_open(state: Any) -> bool:
    """Whether a run is about to end with calls that nothing answered; agentkit says then that they were not run."""
    answered = {message.get("tool_call_id") for message in state["messages"]}
    return any(call["id"] not in answered for message in state["messages"] for call in message.get("tool_calls", ()))


def differences(theirs: Played, ours: Played, *, saver: bool) -> str:
    """In what two runs differ, for reading.

    Which calls beside a failing one have begun is a matter of threads; without a saver none of them comes again.
    """
    a, b = theirs.summary(), ours.summary()
    failed = not saver and any(what == "error" for what, _ in theirs.events)
    keys = [key for key in a if not (failed and key in ("wrapped", "finished"))]
    return "\n".join(f"{key}:\n  LangChain {a[key]}\n  agentkit  {b[key]}" for key in keys if a[key] != b[key])


@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
@settings(max_examples=cases(30))
@given(stack=alike_stacks())
def test_same_as_langchain_where_steps_fail_and_pause(entry: EntryPoint, stack: Stack) -> None:
    """Resumed with `invoke(None)` and with answers, from a saver."""
    same_as_langchain(stack, entry, saver=True)


@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
@settings(max_examples=cases(30))
@given(stack=calm_stacks())
def test_same_as_langchain_without_a_saver(entry: EntryPoint, stack: Stack) -> None:
    same_as_langchain(stack, entry, saver=False)


@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
@settings(max_examples=cases(10))
@given(stack=alike_stacks())
def test_same_as_langchain_where_a_failure_or_a_pause_is_final(entry: EntryPoint, stack: Stack) -> None:
    same_as_langchain(stack, entry, saver=False)


def same_as_langchain(stack: Stack, entry: EntryPoint, *, saver: bool) -> None:
    """Play a scenario under LangChain's factory, and under ours at both granularities, and as a whole."""
    theirs = play(stack, reference, entry=entry, saver=saver)
    assume(reference_is_sound(theirs))
    for name, more in FORMS.items():
        if saver and name == "whole":
            continue  # somebody may look into the saver
        ours = play(stack, create_agent, entry=entry, saver=saver, limits=NO_BRAKE, **more)
        found = differences(theirs, ours, saver=saver)
        assert not found, f"in the form {name!r}\n{found}"
