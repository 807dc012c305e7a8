"""Why a run ended: the record, how it travels in state, and the one accessor.

An answer and a structured answer can be seen from the result itself, so only the other reasons are written down, under
the private state key `exit`. It stays out of results (they compare equal to LangChain's) and rides on them instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from agentkit.transcript import last_turn

__all__ = ["Exit", "Reason", "exit_of"]

Reason = Literal[
    "answer",
    "structured",
    "return_direct",
    "jump",
    "step_budget",
    "token_budget",
    "cost_budget",
    "deadline",
    "failures",
    "repeated_call",
    "handoff",
    "rejected",
]


@dataclass(frozen=True, slots=True)
class Exit:
    """Why a run ended."""

    reason: Reason
    """One word, stable: for code, traces and dashboards."""

    detail: str = ""
    """One sentence for people."""

    source: str = ""
    """Who ended it: a hook (`NAME.hook`), a tool, `limits`, or `model`."""

    def record(self) -> dict[str, str]:
        """The exit as plain data, which any saver can store."""
        return asdict(self)


class Result(dict[str, Any]):
    """A run's result: equal to the plain dict, and carrying why the run ended.

    Inside a graph node it holds only the fields that the run changed; the others are still found by key, so that two
    agents side by side do not both write a field that neither touched.
    """

    __slots__ = ("exit", "unchanged")

    def __init__(
        self, values: Mapping[str, Any], ended: Exit | None, unchanged: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(values)
        self.exit = ended
        self.unchanged = unchanged or {}

    def __missing__(self, key: str) -> Any:
        return self.unchanged[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else self.unchanged.get(key, default)


@runtime_checkable
class _Snapshot(Protocol):
    @property
    def values(self) -> dict[str, Any] | Any: ...

    @property
    def next(self) -> tuple[str, ...]: ...


def exit_of(ended: Mapping[str, Any] | _Snapshot) -> Exit | None:
    """Why a run ended.

    Args:
        ended: What `invoke` or `ainvoke` returned, the last chunk of `stream_mode="values"`, a snapshot from
            `get_state`, or the state that an `after_agent` hook is given.

    Returns:
        The exit, or None if the run has not ended: it is paused, or was never started.

    Raises:
        TypeError: If it is none of these.
    """
    if isinstance(ended, Result):
        return ended.exit
    if isinstance(ended, Mapping):
        return None if ended.get("__interrupt__") else read_exit(ended)
    if isinstance(ended, _Snapshot):
        is_open = ended.next or getattr(ended, "tasks", ())  # a step that is done but not taken in has no `next`
        return None if is_open or not ended.values else read_exit(ended.values)
    raise TypeError(f"exit_of takes a result, a state or a snapshot, not {type(ended).__name__}")


def read_exit(state: Mapping[str, Any]) -> Exit | None:
    """The exit that a state speaks of: the one written down, else the answer that stands there."""
    if recorded := state.get("exit"):
        return Exit(**recorded)
    messages = state.get("messages")
    if messages is None:
        return None
    if state.get("structured_response") is not None:
        return Exit("structured", "the structured answer was given", "model")
    ai, results = last_turn(messages)
    if ai is None:
        return Exit("answer", "no answer of the model is left in the history", "model")
    if ai.tool_calls and results:  # the model was not asked again
        return Exit("return_direct", "the tools' results are the answer", ", ".join(str(r.name) for r in results))
    return Exit("answer", "the model answered without asking for a tool", "model")
