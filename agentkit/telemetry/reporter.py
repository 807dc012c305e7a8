"""Who is told of a run: spans and metrics, events, a log."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from opentelemetry import context as otel

from agentkit.events import Event
from agentkit.telemetry.facts import ModelCall, RunFacts, ToolCall
from agentkit.watch import Outcome

__all__ = ["Reporter"]


class Reporter:
    """Makes something of the facts: spans, metrics, a log. What it does not care for, it leaves as it is here."""

    def run_started(self, facts: RunFacts) -> otel.Context | None:
        """A run starts; what is returned is the context in which it goes on."""

    def run_ended(self, facts: RunFacts, outcome: Outcome) -> None:
        """It ended or paused."""

    def model_started(self, facts: RunFacts, call: ModelCall, parent: otel.Context) -> otel.Context | None:
        """A request is sent; what is returned is the context in which that happens."""

    def model_chunk(self, call: ModelCall, since: float) -> None:
        """A further chunk of the reply arrived, this many seconds after the one before."""

    def model_ended(self, facts: RunFacts, call: ModelCall) -> None:
        """The reply is there, or the request failed."""

    def tool_started(self, facts: RunFacts, call: ToolCall) -> otel.Context | None:
        """A tool is called; what is returned is the context in which that happens."""

    def tool_ended(self, facts: RunFacts, call: ToolCall) -> None:
        """The call is over."""

    def happened(self, facts: RunFacts, event: Event) -> None:
        """Somebody reported an event."""

    def failed(self, site: str) -> bool:
        """Telemetry failed there; whether it was counted."""
        return False

    def scope(self) -> AbstractContextManager[Any] | None:
        """Entered whenever the run goes on."""
        return None
