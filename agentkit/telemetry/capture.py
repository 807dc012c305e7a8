"""Where the content of a conversation goes, as the environment and the options say: nowhere, unless one asks for it."""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

__all__ = ["MODES", "Capture", "Mode", "asked_for", "emits_events"]

Mode: TypeAlias = Literal["NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT"]

MODES: Final[tuple[str, ...]] = get_args(Mode)

_CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_EMIT: Final = "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT"
_LOG: Final = logging.getLogger("agentkit")


class Capture(NamedTuple):
    """Where content goes."""

    on_spans: bool
    on_events: bool


_MEANT: Final = {
    "NO_CONTENT": Capture(False, False),
    "SPAN_ONLY": Capture(True, False),
    "EVENT_ONLY": Capture(False, True),
    "SPAN_AND_EVENT": Capture(True, True),
}
_NOWHERE: Final = _MEANT["NO_CONTENT"]


def asked_for(given: bool | Mode | None) -> Capture:
    """What the option says, or else the environment."""
    if isinstance(given, str):
        return _MEANT[given]
    if given is not None:
        return Capture(given, False)
    named = os.environ.get(_CAPTURE)
    return _read(named) if named else _NOWHERE


def emits_events(given: bool | None, capture: Capture) -> bool:
    """Whether each request is an event too: as the option says, or the environment; else if content is to be on it."""
    if given is not None:
        return given
    named = os.environ.get(_EMIT, "").strip().lower()
    return named == "true" if named else capture.on_events


@lru_cache(maxsize=8)
def _read(named: str) -> Capture:
    mode = named.strip().upper()
    if mode and mode not in _MEANT:
        # The value is not repeated: whoever mixed up two variables may have put a secret here.
        _LOG.warning("%s is none of %s; no content is captured", _CAPTURE, ", ".join(MODES))
    return _MEANT.get(mode, _NOWHERE)
