"""How often one call has been executed, whatever retries around it: so that nested retries do not multiply.

The loop opens a ledger around the wraps of each tool call and each model step and notes every execution in it. Wraps
run inside and can ask. Outside of the loop (under LangChain's own factory) there is no ledger, and nothing is known.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from typing import Any

__all__ = ["abandon", "abandoned", "executed", "is_told", "keep", "kept", "ledger", "note", "settle", "share", "tell"]


class _Ledger:
    def __init__(self) -> None:
        self.executed: dict[Hashable, int] = {}
        self.abandoned: list[tuple[Any, Exception]] = []
        self.told: list[Exception] = []
        self.beside: dict[int, dict[str, Any]] = {}
        self.shared: dict[str, None] = {}


_current: ContextVar[_Ledger | None] = ContextVar("agentkit_executions", default=None)


class _Opened(AbstractContextManager[None]):
    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token: Token[_Ledger | None] = _current.set(_Ledger())

    def __exit__(self, *raised: object) -> None:
        _current.reset(self._token)


def ledger() -> AbstractContextManager[None]:
    """Keep a ledger for what runs inside."""
    return _Opened()


def note(key: Hashable) -> None:
    """Note that something is executed once more."""
    if (kept := _current.get()) is not None:
        kept.executed[key] = kept.executed.get(key, 0) + 1


def executed(key: Hashable) -> int:
    """How often it has been executed in this ledger; 0 where there is none."""
    kept = _current.get()
    return kept.executed.get(key, 0) if kept is not None else 0


def settle(key: Hashable) -> None:
    """Note that it succeeded: what comes now is another matter."""
    if (kept := _current.get()) is not None:
        kept.executed.pop(key, None)


def abandon(request: Any, error: Exception) -> None:
    """Note that a retry gave a request up with this error."""
    if (kept := _current.get()) is not None:
        kept.abandoned.append((request, error))


def abandoned(request: Any) -> Exception | None:
    """The error with which this very request was given up, if a retry further out sends it again."""
    kept = _current.get()
    found = kept.abandoned if kept is not None else ()
    return next((error for given, error in found if given is request), None)


def tell(error: Exception) -> None:
    """Note that this exception of a tool is for the model, if no wrap handles it."""
    if (kept := _current.get()) is not None:
        kept.told.append(error)


def is_told(error: Exception) -> bool:
    """Whether an exception is one that a tool wants told to the model."""
    kept = _current.get()
    return kept is not None and any(error is one for one in kept.told)


def keep(update: dict[str, Any], writer: object) -> bool:
    """Note state fields that are to be written beside the result; False where there is no ledger to note them in.

    Of one writer only the last note counts: a wrap further out may have called it again.
    """
    if (ledger := _current.get()) is None:
        return False
    ledger.beside[id(writer)] = update
    return True


def share(calls: Iterable[str]) -> bool:
    """Note calls that are to be answered with the same result; False where there is no ledger to note them in."""
    if (ledger := _current.get()) is None:
        return False
    ledger.shared.update(dict.fromkeys(calls))
    return True


def kept() -> tuple[list[dict[str, Any]], list[str]]:
    """What `keep` and `share` noted."""
    ledger = _current.get()
    return (list(ledger.beside.values()), list(ledger.shared)) if ledger is not None else ([], [])
