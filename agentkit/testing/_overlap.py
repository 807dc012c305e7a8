"""Runs that overlap: each waits for the others at every model call, so that what one leaves behind hits the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from inspect import isawaitable
from typing import Any

from agentkit.testing._trial import Trial
from agentkit.testing.model import Request
from agentkit.testing.running import RunResult

_RENDEZVOUS = 5.0  # seconds that one run waits for the other before both go on alone

Answer = Callable[[Request], Any]


def in_threads(prompts: Mapping[str, str], answer: Answer, build: Callable[..., Trial]) -> dict[str, dict[str, Any]]:
    """Run all prompts at once, each in a thread; they meet in lookups as well.

    Args:
        prompts: What is said, by conversation thread.
        answer: The scripted model's answer.
        build: Makes the trial that all of them share.
    """
    barrier = threading.Barrier(len(prompts))

    def meet() -> None:
        with suppress(threading.BrokenBarrierError):  # the other run has fewer calls and is over
            barrier.wait(_RENDEZVOUS)

    def meeting_answer(request: Request) -> Any:
        meet()
        return answer(request)

    def lookup(key: str) -> str:
        meet()
        return f"value of {key}"

    def one(thread: str) -> RunResult:
        try:
            return trial.run(prompts[thread], "invoke", thread)
        finally:
            barrier.abort()

    trial = build(answer=meeting_answer, lookup=lookup)
    with ThreadPoolExecutor(len(prompts)) as pool:
        outcomes = dict(zip(prompts, pool.map(one, prompts), strict=True))
    return {thread: trial.result(outcome, thread) for thread, outcome in outcomes.items()}


def in_one_loop(prompts: Mapping[str, str], answer: Answer, build: Callable[..., Trial]) -> dict[str, dict[str, Any]]:
    """Run all prompts at once in one event loop; otherwise like `in_threads`."""
    barrier = asyncio.Barrier(len(prompts))

    async def meeting_answer(request: Request) -> Any:
        with suppress(asyncio.BrokenBarrierError, TimeoutError):  # the other run has fewer calls and is over
            await asyncio.wait_for(barrier.wait(), _RENDEZVOUS)
        given = answer(request)
        return await given if isawaitable(given) else given

    async def one(thread: str) -> RunResult:
        try:
            return await trial.arun(prompts[thread], thread)
        finally:
            await barrier.abort()

    async def together() -> list[RunResult]:
        return await asyncio.gather(*map(one, prompts))

    trial = build(answer=meeting_answer)
    outcomes = asyncio.run(together())
    return {thread: trial.result(outcome, thread) for thread, outcome in zip(prompts, outcomes, strict=True)}
