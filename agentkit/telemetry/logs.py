"""Log events: what `RunLog` makes of the facts of one run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from opentelemetry import context as otel

from agentkit.events import Event
from agentkit.logging import get_logger, in_context
from agentkit.telemetry import content
from agentkit.telemetry.attributes import run_outcome
from agentkit.telemetry.facts import ModelCall, RunFacts, ToolCall
from agentkit.telemetry.metrics import waited
from agentkit.telemetry.propagation import predecessor
from agentkit.telemetry.reading import decisions, error_type, interrupt_kind
from agentkit.telemetry.reporter import Reporter
from agentkit.telemetry.settings import DROP, Kind, Telemetry
from agentkit.watch import Outcome

__all__ = ["LogReporter"]

_STANDARD: Final = logging.getLogger("agentkit")
_LOGGER: Final = get_logger()


class LogReporter(Reporter):
    """Writes one run to the log."""

    def __init__(self, settings: Telemetry) -> None:
        """Write one run; the settings say whether with content."""
        self._settings = settings
        self._about: dict[str, Any] = {}
        self._log: Any = _LOGGER

    def scope(self) -> AbstractContextManager[Any]:
        """What a record of anybody inside the run carries too, if it goes through structlog."""
        return in_context(**self._about)

    def _say(self, level: int, event: str, fields: Mapping[str, Any]) -> None:
        if _STANDARD.isEnabledFor(level):
            self._log.log(level, event, **{key: value for key, value in fields.items() if value is not None})

    # ---- the run

    def run_started(self, facts: RunFacts) -> otel.Context | None:
        """Say that it starts, or goes on."""
        about = {"run_id": facts.id, "agent": facts.agent, "thread_id": facts.thread, "parent_run_id": facts.parent}
        self._about = {key: value for key, value in about.items() if value is not None}
        self._log = _LOGGER.bind(**self._about)
        if not facts.resumed:
            self._say(logging.INFO, "agent.run.started", {"segment": facts.segment, "entrypoint": facts.run.entrypoint})
            return None
        wait, before = waited(facts), predecessor(facts)
        told = {"segment": facts.segment, "wait_s": wait and round(wait, 3)}
        previous = f"{before.trace_id:032x}" if before is not None else None
        told |= decisions(facts.run.input)
        self._say(logging.INFO, "agent.run.resumed", {**told, "prev_trace_id": previous})
        return None

    def run_ended(self, facts: RunFacts, outcome: Outcome) -> None:
        """Say how it ended."""
        status, reason = run_outcome(facts, outcome)
        told: dict[str, Any] = {"duration_s": round(facts.duration, 3), "steps": facts.steps}
        if status == "interrupted":
            kind, count = interrupt_kind(outcome.interrupts), len(outcome.interrupts)
            told |= {"kind": kind, "interrupt_count": count, "checkpoint_id": outcome.checkpoint_id}
            self._say(logging.INFO, "agent.run.interrupted", told)
        elif status == "cancelled":
            why = "stream_left" if facts.run.left else "cancelled"
            self._say(logging.INFO, "agent.run.cancelled", {**told, "reason": why})
        elif status == "error":
            level = logging.ERROR if facts.parent is None else logging.DEBUG  # the outermost agent reports it
            failed = error_type(outcome.error) if outcome.error is not None else None
            self._say(level, "agent.run.failed", {**told, "error_type": failed})
        else:
            if status == "limit" and outcome.exit is not None:
                limit = {"limit": outcome.exit.reason, "source": outcome.exit.source}
                self._say(logging.WARNING, "agent.limit.reached", limit)
            counts = {"model_calls": facts.model_calls, "tool_calls": facts.tool_calls}
            tokens = {"input_tokens": facts.usage.input, "output_tokens": facts.usage.output}
            ended = {"outcome": status, "reason": reason}
            self._say(logging.INFO, "agent.run.completed", {**ended, **told, **counts, **tokens})

    # ---- its calls

    def model_started(self, facts: RunFacts, call: ModelCall, parent: otel.Context) -> otel.Context | None:
        """Say that a request is sent."""
        told = {"model": call.model, "provider": call.provider, "step": call.step, "attempt": call.attempt}
        self._say(logging.DEBUG, "model.call.started", {**told, "message_count": len(call.messages)})
        return None

    def model_ended(self, facts: RunFacts, call: ModelCall) -> None:
        """Say that the reply is there, or that the request failed; a retry is reported by who makes it."""
        about = {"model": call.model, "step": call.step, "attempt": call.attempt}
        told: dict[str, Any] = {**about, "duration_s": round(call.duration, 3)}
        if call.error is not None or call.cancelled:
            failed = "cancelled" if call.cancelled or call.error is None else error_type(call.error)
            self._say(logging.DEBUG, "model.call.failed", {**told, "error_type": failed})
            return
        first = round(call.first_chunk - call.started, 3) if call.first_chunk is not None else None
        usage, reasons = call.usage, call.finish_reasons
        told |= {"ttfc_s": first, "finish_reason": reasons[0] if reasons else None}
        told |= {"input_tokens": usage.input, "output_tokens": usage.output}
        if call.reply is not None:
            told |= self._content("output", "content_reply", content.output_messages, call.reply)
        self._say(logging.DEBUG, "model.call.completed", told)

    def tool_started(self, facts: RunFacts, call: ToolCall) -> otel.Context | None:
        """Say that a tool is called."""
        told = {"tool": call.name, "tool_call_id": call.id}
        given = self._content("tool_args", "content_arguments", dict, call.arguments)
        self._say(logging.DEBUG, "tool.call.started", {**told, **given})
        return None

    def tool_ended(self, facts: RunFacts, call: ToolCall) -> None:
        """Say how the call ended."""
        told: dict[str, Any] = {"tool": call.name, "tool_call_id": call.id, "duration_s": round(call.duration, 3)}
        if call.outcome == "error":
            self._say(logging.WARNING, "tool.call.failed", {**told, "error_type": call.error_type})
            return
        if call.result is not None:
            told["result_chars"] = len(str(call.result.content))
            told |= self._content("tool_result", "content_result", str, call.result.content)
        self._say(logging.DEBUG, "tool.call.completed", {**told, "outcome": call.outcome})

    def happened(self, facts: RunFacts, event: Event) -> None:
        """Write an event that somebody reported."""
        self._say(event.level, event.name, {**event.fields, "detail": event.text})

    def _content(self, kind: Kind, field: str, shape: Any, value: Any) -> dict[str, Any]:
        """Content as a field, if it was asked for and somebody would see it."""
        if not self._settings.capture_content or not _STANDARD.isEnabledFor(logging.DEBUG):
            return {}
        text = content.written(self._settings, kind, shape(value), {})
        return {} if text is DROP else {field: text}
