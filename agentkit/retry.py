"""Retrying, as a policy that model and tool retries share: what is retried, how often, after what wait.

Stop and wait strategies are tenacity's. The policy is a generator that yields what is to be called, and `Sleep`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from tenacity import RetryCallState, Retrying, stop_after_attempt, stop_before_delay, wait_random_exponential
from tenacity.stop import stop_base
from tenacity.wait import wait_base

from agentkit import clock, executions
from agentkit.chain import Sleep
from agentkit.errors import ConfigurationError
from agentkit.events import emit
from agentkit.transient import RetryOn, is_transient, matches, retry_after, status_of

__all__ = ["OnFailure", "RetryPolicy", "Tries", "add_counts"]

OnFailure: TypeAlias = Literal["message", "raise"] | Callable[[Exception], str]
"""What becomes of a failure that remains: a message, the exception, or a message with the text of a function."""

_WAIT: Final = wait_random_exponential(multiplier=0.5, max=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """When and how often something is tried again."""

    attempts: int = 3
    """Executions of one call in all, the first included, whatever other retries there are around or inside."""
    retry_on: RetryOn = is_transient
    """Which errors: types, or a function of the exception."""
    wait: wait_base | None = None
    """Seconds before the next attempt, as a tenacity strategy. Default: random, up to 0.5, 1, 2, ... 30."""
    stop: stop_base | None = None
    """When to stop earlier, as a tenacity strategy."""
    deadline: float | None = 60.0
    """Seconds since the first attempt after which no other is begun; None: no limit. A running one is not cut short."""
    max_retry_after: float = 60.0
    """The longest wait, in seconds, that a server may ask for; if it asks for more, the call is given up."""

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be meant.

        Raises:
            ConfigurationError: If one is.
        """
        if self.attempts < 1:
            raise ConfigurationError(f"attempts={self.attempts!r}: there is always a first attempt; give at least 1.")
        for name in ("deadline", "max_retry_after"):
            if (value := getattr(self, name)) is not None and value < 0:
                raise ConfigurationError(f"{name}={value!r} is a number of seconds; give 0 or more.")

    def tries(
        self,
        target: Literal["model", "tool"],
        key: Hashable,
        what: str,
        *,
        budget: int | None = None,
        repeatable: bool = True,
    ) -> Tries:
        """The attempts at one call.

        Args:
            target: Whether a model or a tool is called.
            key: What is executed, as the loop notes it: a call's id, the identity of a model.
            what: Its name, for what is reported.
            budget: How many retries the run has left; None: no limit.
            repeatable: Whether it may be executed again at all.
        """
        return Tries(self, target, key, what, budget, repeatable)

    def takes(self, error: Exception) -> bool:
        """Whether an error is one of those that are retried."""
        return matches(error, self.retry_on)


@dataclass(slots=True)
class Tries:
    """The attempts at one call, one after the other."""

    policy: RetryPolicy
    target: Literal["model", "tool"]
    key: Hashable
    what: str
    budget: int | None
    repeatable: bool
    retries: int = 0
    """How often it was tried again."""
    why: str = ""
    """Why it was given up."""
    _state: RetryCallState = field(init=False)

    def __post_init__(self) -> None:
        stop: stop_base = stop_after_attempt(self.policy.attempts)
        for other in (self.policy.stop, self.policy.deadline):
            if other is not None:
                stop = stop | (stop_before_delay(other) if isinstance(other, int | float) else other)
        self._state = RetryCallState(Retrying(stop=stop, wait=self.policy.wait or _WAIT), None, (), {})
        self._state.start_time = clock.monotonic()

    @property
    def made(self) -> int:
        """Executions so far, those of retries inside included."""
        return max(self.retries + 1, executions.executed(self.key))

    def over(self, request: Any) -> Generator[Any, Any, Any]:
        """Yield the request until it succeeds; what is yielded besides is `Sleep`.

        Raises:
            Exception: The last error, when it is given up; `why` says why.
        """
        if (known := executions.abandoned(request)) is not None:  # a retry further out sends it again
            self.why = "it was retried already"
            raise known
        while True:
            try:
                result = yield request
            except Exception as error:
                wait = self._next_wait(error)
                if wait is None:
                    if self.policy.takes(error):
                        executions.abandon(request, error)
                        self._report(error, f"given up: {self.why}", exhausted=True)
                    raise
                self._report_retry(error, wait)
            else:
                executions.settle(self.key)
                return result
            yield Sleep(wait)
            self.retries += 1

    def _next_wait(self, error: Exception) -> float | None:
        """Seconds to wait before the next attempt; None if there is none."""
        if not self.policy.takes(error):
            self.why = "it is not an error that passes by itself"
        elif not self.repeatable:
            self.why = "it may not be repeated"
        elif self.budget is not None and self.retries >= self.budget:
            self.why = "the run's budget for retries is spent"
        else:
            return self._strategy(error)
        return None

    def _strategy(self, error: Exception) -> float | None:
        """What the strategies and the server say."""
        state, asked = self._state, retry_after(error)
        if asked is not None and asked > self.policy.max_retry_after:
            allowed = self.policy.max_retry_after
            self.why = f"the server asks for a wait of {asked:g} s, more than the {allowed:g} s allowed"
            return None
        state.attempt_number = self.made
        state.set_exception((type(error), error, error.__traceback__))
        state.outcome_timestamp = clock.monotonic()
        wait = float(state.retry_object.wait(state))
        if asked is not None:  # never sooner than asked, and not all at the same moment
            wait = max(wait, asked + random.uniform(0, min(1.0, asked / 10)))
        state.upcoming_sleep = wait
        if state.retry_object.stop(state):
            times = "once" if self.made == 1 else f"{self.made} times"
            self.why = f"it was tried {times}"
            return None
        state.prepare_for_next_attempt()
        return wait

    def _report_retry(self, error: Exception, wait: float) -> None:
        self._report(error, f"next attempt in {wait:.1f} s", delay_s=round(wait, 3), exhausted=False)

    def _report(self, error: Exception, outcome: str, **fields: Any) -> None:
        failed = type(error).__name__
        emit(
            f"{self.target}.retry",
            f"{self.what} failed with {failed}, {outcome}",
            level=logging.WARNING,
            target=self.target,
            subject=self.what,
            attempt=self.made,
            max_attempts=self.policy.attempts,
            error_type=failed,
            status=status_of(error),
            **fields,
        )


def add_counts(old: dict[str, int] | None, new: dict[str, int] | None) -> dict[str, int]:
    """A reducer for counters that parallel calls write: their sum by key; None starts anew."""
    if new is None:
        return {}
    counts = dict(old or {})
    for key, value in new.items():
        counts[key] = counts.get(key, 0) + value
    return counts
