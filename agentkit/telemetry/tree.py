"""A recorded run as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agentkit.telemetry.records import SpanRecord, totals

__all__ = ["tree"]

_SHOWN: Final = (
    "agentkit.gate.name",
    "agentkit.gate.decision",
    "agentkit.gate.reason_code",
    "agentkit.limit.name",
    "agentkit.retry.attempt",
    "agentkit.fallback.to_model",
    "agentkit.handoff.to",
    "agentkit.interrupt.kind",
    "error.type",
)


def tree(root: SpanRecord) -> Iterator[str]:
    """A run as lines of text: durations, tokens, outcomes, and what happened in between."""
    yield f"{root.name}{_told(root)}"
    yield from _under(root, "")


def _under(span: SpanRecord, indent: str) -> Iterator[str]:
    parts: list[Any] = sorted([*span.children, *span.events], key=_when)
    for number, part in enumerate(parts, 1):
        last = number == len(parts)
        branch, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if isinstance(part, SpanRecord):
            yield f"{indent}{branch}{part.name}{_told(part)}"
            yield from _under(part, indent + below)
        else:
            told = [str(part["attributes"][key]) for key in _SHOWN if key in part["attributes"]]
            yield f"{indent}{branch}* {part['name'].removeprefix('agentkit.')} {' '.join(told)}".rstrip()


def _when(part: Any) -> int:
    return int(part.start if isinstance(part, SpanRecord) else part["time"])


def _told(span: SpanRecord) -> str:
    told = span.attributes
    sent, received = totals(span)
    first = told.get("gen_ai.response.time_to_first_chunk")
    outcome, reason = told.get("agentkit.outcome"), told.get("agentkit.outcome.reason")
    parts = [
        f"{span.seconds:.2f} s" if span.seconds >= 1 else f"{span.seconds * 1000:.0f} ms",
        f"{sent} → {received} tokens" if sent or received else "",
        f"first chunk {first * 1000:.0f} ms" if isinstance(first, float) else "",
        f"attempt {told['agentkit.attempt']}" if "agentkit.attempt" in told else "",
        f"{outcome}{f' ({reason})' if reason else ''}" if outcome and outcome != "success" else "",
        f"✗ {told.get('error.type')}" if span.failed else "",
    ]
    return "  " + "  ".join(part for part in parts if part)
