"""What holds for every agent, whatever its middlewares, however the model misbehaves, at both granularities."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any, Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from agentkit import Limits, create_agent, exit_of, thread
from agentkit.exits import Reason
from agentkit.testing import ENTRY_POINTS, ScriptedModel, comparable
from tests.property.conftest import cases
from tests.property.playing import THREAD, Played, build, play
from tests.property.stacks import NodePart, Stack, WildReply, log_of_thread
from tests.property.strategies import alike_stacks, wild_stacks

Granularity = Literal["hook", "turn"]
GRANULARITIES = st.sampled_from(["hook", "turn"])


def acts(stack: Stack) -> set[str]:
    """All that the parts of a stack do."""
    return {part.act for part in stack.parts()}


@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
@settings(max_examples=cases(45))
@given(stack=wild_stacks(), granularity=GRANULARITIES)
def test_invariants_of_one_scenario(entry: Any, stack: Stack, granularity: Granularity) -> None:
    played = play(stack, create_agent, entry=entry, granularity=granularity)
    assert not played.malformed, "a request that a strict provider refuses"
    assert not played.log.faults, "a call that has a result was run"
    nothing_runs_twice(stack, played)
    nothing_malformed_runs(played)
    every_ending_is_complete(stack, played)
    no_foreign_errors(played)


def nothing_runs_twice(stack: Stack, played: Played) -> None:
    if acts(stack) & {"remove", "clear"}:
        return  # a hook that deletes a result opens the call again
    executed = [(head, call) for head, call, _, _ in played.log.finished]
    assert len(executed) == len(set(executed)), f"a call was executed again: {executed}"


def nothing_malformed_runs(played: Played) -> None:
    """The arguments of malformed calls are 98, 99 or no numbers; a wrap may have added 10 to a proper one."""
    for _, _, _, x in played.log.finished:
        assert isinstance(x, int)
        assert 0 <= x <= 19


def every_ending_is_complete(stack: Stack, played: Played) -> None:
    """Each ended run has a named reason, and passed each after_agent hook once."""
    for raw in played.ended:
        ended = exit_of(raw)
        assert ended is not None
        assert ended.reason in get_args(Reason)
        assert ended.source
    after = [
        (f"M{i}.after_agent", part.act)
        for i, parts in enumerate(stack.middleware)
        for part in parts
        if isinstance(part, NodePart) and part.phase == "after_agent"
    ]
    if any(act in ("jump", "crash", "ask") for _, act in after):
        return
    for node, _ in after:
        assert sum(who == node for who, _ in played.log.seen) == len(played.ended)


def no_foreign_errors(played: Played) -> None:
    """What leaves a run is what the test planned, or one of ours with a name; never a KeyError from within."""
    ours = {"Planned", "UndeclaredJump", "TruncatedReply", "MissingStructuredOutput", "GraphRecursionError"}
    assert {error for kind, error in played.events if kind == "error"} <= ours


@settings(max_examples=cases(20))
@given(stack=st.one_of(wild_stacks(), alike_stacks()), granularity=GRANULARITIES)
def test_every_entry_point_does_the_same(stack: Stack, granularity: Granularity) -> None:
    first, *others = (play(stack, create_agent, entry=e, granularity=granularity).summary() for e in ENTRY_POINTS)
    for entry, other in zip(ENTRY_POINTS[1:], others, strict=True):
        for key in first:
            assert other[key] == first[key], f"{entry} differs from invoke in {key}"


@settings(max_examples=cases(20))
@given(stack=wild_stacks())
def test_both_granularities_do_the_same(stack: Stack) -> None:
    by_hook, by_turn = (play(stack, create_agent, granularity=g).summary() for g in get_args(Granularity))
    for key in by_hook:
        assert by_turn[key] == by_hook[key], f"the granularities differ in {key}"


# ---- threads -------------------------------------------------------------------------------------------------------


def _by_turn(stack: Stack) -> ScriptedModel:
    """A model that answers by its place in the user turn, so that no thread depends on another's calls."""
    steps = [reply.step(number) for number, reply in enumerate(stack.script)]

    def answer(request: Any) -> Any:
        return steps[request.turn % len(steps)]

    return ScriptedModel(answer, repeat=True, stream=False)


def _stateless(stack: Stack) -> bool:
    return not acts(stack) & {"crash", "ask"} and not any(
        isinstance(reply, WildReply) and (reply.kind == "fails" or any(name == "ask" for name, _ in reply.calls))
        for reply in stack.script
    )


@settings(max_examples=cases(15))
@given(stack=wild_stacks(structured=False).filter(_stateless), granularity=GRANULARITIES, budget=st.integers(1, 4))
def test_threads_that_share_an_agent_do_not_count_each_other(
    stack: Stack, granularity: Granularity, budget: int
) -> None:
    def made() -> Any:
        arguments = {**stack.arguments(log_of_thread("unused")), "model": _by_turn(stack)}
        limits = Limits(model_calls=budget)
        return create_agent(**arguments, checkpointer=InMemorySaver(), limits=limits, granularity=granularity)

    def ask(agent: Any, name: str, turn: int) -> Any:
        try:
            result = agent.invoke({"messages": f"{name} {turn}"}, thread(name, recursion_limit=100))
        except Exception as error:
            return type(error).__name__
        return comparable(dict(result)), exit_of(result)

    logs = [log_of_thread(name) for name in ("a", "b")]  # kept: the tools find them by their thread
    shared = made()
    mixed = [(name, turn, ask(shared, name, turn)) for turn in range(2) for name in ("a", "b")]
    for name in ("a", "b"):
        agent = made()
        alone = [ask(agent, name, turn) for turn in range(2)]
        assert [outcome for who, _, outcome in mixed if who == name] == alone
    assert len(logs) == 2


# ---- leaks ---------------------------------------------------------------------------------------------------------


def _context() -> dict[Any, Any]:
    return dict(contextvars.copy_context())


@settings(max_examples=cases(20))
@given(stack=wild_stacks(), granularity=GRANULARITIES, chunks=st.integers(0, 4))
def test_nothing_is_left_behind_sync(stack: Stack, granularity: Granularity, chunks: int) -> None:
    context, threads = _context(), set(threading.enumerate())
    play(stack, create_agent, granularity=granularity)
    agent, _log, _ = build(stack, create_agent, saver=True, granularity=granularity)
    stream = agent.stream({"messages": "hello"}, thread(THREAD))
    try:
        for _ in range(chunks):
            next(stream, None)
    except Exception as error:
        assert type(error).__module__ != "builtins"
    stream.close()
    assert _context() == context
    assert set(threading.enumerate()) == threads


@settings(max_examples=cases(20))
@given(stack=wild_stacks(), granularity=GRANULARITIES, chunks=st.integers(0, 4))
def test_nothing_is_left_behind_async(stack: Stack, granularity: Granularity, chunks: int) -> None:
    async def abandon() -> None:
        context = _context()
        agent, _log, _ = build(stack, create_agent, saver=True, granularity=granularity)
        stream = agent.astream({"messages": "hello"}, thread(THREAD))
        try:
            for _ in range(chunks):
                await anext(stream, None)
        except Exception as error:
            assert type(error).__module__ != "builtins"
        await stream.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert _context() == context

    threads = set(threading.enumerate())
    play(stack, create_agent, entry="ainvoke", granularity=granularity)
    asyncio.run(abandon())
    assert set(threading.enumerate()) == threads
