"""What goes on in a run besides its result: the one door through which the loop and every middleware report it.

`emit` tells whoever listens to the run (`heard_by`), and writes one record to the logger `agentkit`, with the fields as
its `extra`. Fields are sizes, counts, names and codes; never a prompt, an argument, a result or an exception's text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

__all__ = ["Event", "Listener", "emit", "heard_by"]

_LOG: Final = logging.getLogger("agentkit")
_LOG.addHandler(logging.NullHandler())  # a library is silent until the application sets up logging
_TAKEN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    name: str
    """What, as a dotted word that stays the same: `gate.decision`, `tool.retry`, ..."""

    text: str
    """One sentence for people."""

    level: int = logging.INFO
    """How much it matters, as `logging` counts."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    """What is known of it: plain values."""


Listener: TypeAlias = Callable[[Event], object]


@dataclass(frozen=True, slots=True)
class _Audience:
    listeners: tuple[Listener, ...] = ()
    logged: bool = False
    """Whether one of them writes the log."""


_NOBODY: Final = _Audience()
_audience: ContextVar[_Audience] = ContextVar("agentkit_events", default=_NOBODY)


def emit(name: str, text: str, /, *, level: int = logging.INFO, **fields: Any) -> None:
    """Report that something happened.

    Args:
        name: What; see `Event`.
        text: One sentence for people, without content of the conversation.
        level: A level of `logging`.
        **fields: What is known of it. Never content: names, counts, codes.
    """
    audience = _audience.get()
    if audience.listeners:
        event = Event(name, text, level, fields)
        for listener in audience.listeners:
            try:
                listener(event)
            except Exception as error:  # who listens must not break what it listens to
                _LOG.warning("a listener failed on %s with %s", name, type(error).__name__)
    if not audience.logged and _LOG.isEnabledFor(level):
        extra = {f"{key}_" if key in _TAKEN else key: value for key, value in fields.items()}
        _LOG.log(level, "%s", text, extra={**extra, "event": name})


def heard_by(*listeners: Listener, logs: bool = False) -> AbstractContextManager[None]:
    """Let listeners hear what is emitted inside, in threads and tasks of the run too.

    ```python
    with heard_by(lambda event: print(event.name)):
        agent.invoke({"messages": "hi"})
    ```

    Args:
        *listeners: Each is called with every `Event`, beside those that hear already. One that raises is ignored.
        logs: Whether these listeners write the log, so that the plain record on the logger `agentkit` is left out.
    """
    return _Heard(listeners, logs)


class _Heard(AbstractContextManager[None]):
    """Entered again for every step of a run, so it remembers what it put together."""

    __slots__ = ("_before", "_listeners", "_logs", "_token", "_with")

    def __init__(self, listeners: tuple[Listener, ...], logs: bool) -> None:
        self._listeners = listeners
        self._logs = logs
        self._before: _Audience | None = None

    def __enter__(self) -> None:
        before = _audience.get()
        if before is not self._before:
            self._before = before
            self._with = _Audience((*before.listeners, *self._listeners), before.logged or self._logs)
        self._token = _audience.set(self._with)

    def __exit__(self, *error: object) -> None:
        _audience.reset(self._token)
