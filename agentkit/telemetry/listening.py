"""Hears what goes on in a run, gathers it as facts, and tells a reporter.

Requests to models are heard through LangChain's callbacks, so each one counts, whatever wraps, retries and dialogues
are around it, and whoever makes it. The callback handler hangs on a context variable and not on the run's config: of
nested agents only the innermost that listens hears a request.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar, Token
from functools import cache
from threading import Lock
from time import perf_counter
from types import TracebackType
from typing import Any, Final
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.tracers.context import register_configure_hook
from langgraph.config import get_config
from opentelemetry import context as otel

from agentkit import events
from agentkit._compat import paused_tasks, task_of
from agentkit.events import Event
from agentkit.telemetry.endpoint import endpoint
from agentkit.telemetry.facts import ModelCall, RunFacts, ToolCall
from agentkit.telemetry.guard import guarded
from agentkit.telemetry.reading import (
    error_type,
    finish_reasons,
    is_rejected,
    model_of,
    provider_of,
    result_of,
    signal_outcome,
    usage_of,
)
from agentkit.telemetry.reporter import Reporter
from agentkit.watch import Outcome, Run

__all__ = ["Channel", "ModelScope", "Record", "RunScope", "ToolScope", "new_facts"]

_MODEL_NODE: Final = "model"
_RUN_ID: Final = "agentkit.run_id"  # in what is stored with a checkpoint
_SEGMENT: Final = "agentkit.run_segment"


class Channel:
    """Where one kind of telemetry keeps what belongs to the run at hand."""

    def __init__(self, name: str, *, logs: bool = False) -> None:
        """Make a channel; `logs` says that its reporter writes the log of events."""
        self.logs = logs
        self.hearing: ContextVar[_Hearing | None] = ContextVar(f"agentkit_{name}_hearing", default=None)
        self.slot: ContextVar[_Slot | None] = ContextVar(f"agentkit_{name}_slot", default=None)
        self.tool: ContextVar[ToolCall | None] = ContextVar(f"agentkit_{name}_tool", default=None)

    def record(self) -> Record | None:
        """The run at hand."""
        hearing = self.hearing.get()
        return None if hearing is None else hearing.record

    def listen(self) -> None:
        """Let LangChain know of the handler's context variable; once per process."""
        _register(self)


@cache
def _register(channel: Channel) -> None:
    register_configure_hook(channel.hearing, inheritable=False)


class _Slot:
    """The model step at hand: the context around it, and the requests that it made."""

    __slots__ = ("base", "calls", "model")

    def __init__(self, base: otel.Context, model: Any) -> None:
        self.base, self.model = base, model
        self.calls: list[tuple[UUID, ModelCall]] = []


class Record:
    """One run, or one part of it up to a pause, as it is heard."""

    def __init__(self, channel: Channel, reporter: Reporter, facts: RunFacts, *, whole: bool = True) -> None:
        """Prepare to hear.

        Args:
            channel: Where it is kept.
            reporter: Who is told.
            facts: What is known so far.
            whole: Whether the whole run is heard, or only a single call, as under LangChain's own factory.
        """
        self.channel = channel
        self.reporter = reporter
        self.facts = facts
        self.whole = whole
        self.context: otel.Context | None = None
        self.hearing = _Hearing(self)
        self._open: dict[UUID, ModelCall] = {}
        self._attempts: dict[str, int] = {}
        self._lock = Lock()

    # ---- the run

    @guarded
    def start(self) -> None:
        """The run starts."""
        self.context = self.reporter.run_started(self.facts)

    @guarded
    def end(self, outcome: Outcome) -> None:
        """The run is over; requests that nobody saw ending end with it."""
        for request in list(self._open):
            self.model_ended(request, error=outcome.error or asyncio.CancelledError())
        self.facts.ended = perf_counter()
        self.reporter.run_ended(self.facts, outcome)

    @guarded
    def happened(self, event: Event) -> None:
        """Somebody reported an event."""
        if event.name == "model.fallback":
            self.facts.degraded = "fallback_model"
        elif event.name == "agent.degraded":
            self.facts.degraded = str(event.fields.get("reason_code", "degraded"))
        self.reporter.happened(self.facts, event)

    # ---- requests to models

    @guarded
    def model_started(self, request: UUID, messages: Any, metadata: dict[str, Any], parameters: dict[str, Any]) -> None:
        """A request is sent."""
        step, attempt = self._counted(metadata)
        slot = self.channel.slot.get()
        call = ModelCall(
            model=model_of(metadata, parameters),
            provider=provider_of(metadata),
            parameters=parameters,
            defaults=metadata,
            messages=messages,
            server=endpoint(slot.model) if slot is not None else None,
            step=step,
            attempt=attempt,
        )
        parent = slot.base if slot is not None else otel.get_current()
        context = self.reporter.model_started(self.facts, call, parent)
        self._open[request] = call
        if slot is not None:
            slot.calls.append((request, call))
            if context is not None:
                otel.attach(context)  # the scope around the model step sets back what was there before

    def _counted(self, metadata: dict[str, Any]) -> tuple[int | None, int]:
        """The number of the model step, and of the request within it."""
        own = self.whole and metadata.get("langgraph_node") == _MODEL_NODE
        with self._lock:
            self.facts.model_calls += 1
            if not own:
                return None, 1
            task = str(metadata.get("langgraph_checkpoint_ns"))
            self._attempts[task] = self._attempts.get(task, 0) + 1
            if self._attempts[task] == 1:
                self.facts.steps += 1
            return self.facts.steps, self._attempts[task]

    @guarded
    def model_chunk(self, request: UUID) -> None:
        """A chunk of a reply arrived."""
        if (call := self._open.get(request)) is None:
            return
        now = perf_counter()
        if call.last_chunk is None:
            call.first_chunk = now
        else:
            self.reporter.model_chunk(call, now - call.last_chunk)
        call.last_chunk = now

    @guarded
    def model_ended(self, request: UUID, reply: AIMessage | None = None, error: BaseException | None = None) -> None:
        """A reply is there, or the request failed."""
        if (call := self._open.pop(request, None)) is None:
            return
        call.ended, call.reply, call.error = perf_counter(), reply, error
        call.cancelled = self._is_left(error)
        if reply is not None:
            call.usage, call.finish_reasons = usage_of(reply), finish_reasons(reply)
        with self._lock:
            self.facts.usage = self.facts.usage.plus(call.usage)
            if call.model:
                self.facts.models.add(call.model)
            if call.step is not None:
                self.facts.finish_reasons = call.finish_reasons
        self.reporter.model_ended(self.facts, call)

    # ---- calls of tools

    @guarded
    def tool_started(self, call: ToolCall) -> otel.Context | None:
        """A tool is called."""
        with self._lock:
            self.facts.tool_calls += 1
        return self.reporter.tool_started(self.facts, call)

    @guarded
    def tool_ended(self, call: ToolCall, error: BaseException | None) -> None:
        """The call is over."""
        call.ended, call.error = perf_counter(), error
        call.outcome = self._outcome(call, error)
        if error is not None and call.outcome == "error":
            call.failure = error_type(error)
        self.reporter.tool_ended(self.facts, call)

    def _outcome(self, call: ToolCall, error: BaseException | None) -> str:
        if error is not None:
            return "cancelled" if self._is_left(error) else signal_outcome(error) or "error"
        if call.result is None or call.result.status != "error":
            return "success"
        return "rejected" if is_rejected(call.result) else "error"

    def _is_left(self, error: BaseException | None) -> bool:
        """Whether something was broken off because the caller left the stream."""
        return error is not None and self.facts.run.left and isinstance(error, asyncio.CancelledError | GeneratorExit)


def new_facts(run: Run, saved: Any, parent: Record | None) -> RunFacts:
    """What is known at the start of a run, or at its resumption."""
    stored = (saved.metadata if saved is not None else None) or {}
    known, before = stored.get(_RUN_ID), stored.get(_SEGMENT)
    run.id = known if isinstance(known, str) else run.id
    segment = before + 1 if isinstance(before, int) else 1
    if run.stored:
        run.config.setdefault("metadata", {}).update({_RUN_ID: run.id, _SEGMENT: segment})
    thread = (run.config.get("configurable") or {}).get("thread_id")
    return RunFacts(
        run=run,
        agent=run.agent,
        thread=None if thread is None else str(thread),
        segment=segment,
        parent=parent.facts.id if parent is not None else None,
        saved=saved,
        paused=paused_tasks(saved),
        resumed=saved is not None,
    )


class _Hearing(BaseCallbackHandler):
    """Hears requests to models, and why a tool failed."""

    run_inline = True
    ignore_chain = ignore_retriever = ignore_retry = ignore_custom_event = True

    def __init__(self, record: Record) -> None:
        self.record = record

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.record.model_started(
            run_id, messages[0], kwargs.get("metadata") or {}, kwargs.get("invocation_params") or {}
        )

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.record.model_chunk(run_id)

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        found = response.generations[0] if response.generations else ()
        message = getattr(found[0], "message", None) if found else None
        self.record.model_ended(run_id, message if isinstance(message, AIMessage) else None)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self.record.model_ended(run_id, error=error)

    def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        if (call := self.record.channel.tool.get()) is not None and signal_outcome(error) is None:
            call.failure = error_type(error)


class RunScope:
    """Entered whenever the run goes on, and left each time: everything in it is heard."""

    __slots__ = ("_context", "_heard", "_record", "_scope", "_token")

    def __init__(self, record: Record) -> None:
        self._record = record
        self._heard = events.heard_by(record.happened, logs=record.channel.logs)

    def __enter__(self) -> None:
        record = self._record
        self._token = record.channel.hearing.set(record.hearing)
        self._heard.__enter__()
        self._scope = record.reporter.scope()
        if self._scope is not None:
            self._scope.__enter__()
        self._context = otel.attach(record.context) if record.context is not None else None

    def __exit__(self, *error: object) -> None:
        if self._context is not None:
            otel.detach(self._context)
        if self._scope is not None:
            self._scope.__exit__(None, None, None)
        self._heard.__exit__(None, None, None)
        self._record.channel.hearing.reset(self._token)


class ModelScope:
    """Around a model step: sets the context back, and ends requests that were broken off without a word."""

    __slots__ = ("_context", "_hearing", "_model", "_record", "_slot", "_token")

    def __init__(self, record: Record, model: Any) -> None:
        self._record = record
        self._model = model if record.facts.run.entrypoint else None  # elsewhere a wrap further in may ask another

    def __enter__(self) -> None:
        base = otel.get_current()
        self._slot = _Slot(base, self._model)
        self._token = self._record.channel.slot.set(self._slot)
        self._hearing = self._record.channel.hearing.set(self._record.hearing)
        self._context = otel.attach(base)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        otel.detach(self._context)
        self._record.channel.slot.reset(self._token)
        self._record.channel.hearing.reset(self._hearing)
        for request, call in self._slot.calls:
            if call.ended is None:
                self._record.model_ended(request, error=error)


class ToolScope:
    """Around a tool call."""

    __slots__ = ("_call", "_context", "_hearing", "_record", "_token")

    def __init__(self, record: Record, request: Any) -> None:
        self._record = record
        call = request.tool_call
        self._call = ToolCall(
            name=call["name"],
            id=call["id"],
            arguments=call["args"],
            tool=request.tool,
            reexecuted=bool(record.facts.paused) and task_of(get_config()) in record.facts.paused,
        )

    def __enter__(self) -> ToolScope:
        channel = self._record.channel
        context = self._record.tool_started(self._call)
        self._token: Token[ToolCall | None] = channel.tool.set(self._call)
        self._hearing = channel.hearing.set(self._record.hearing)
        self._context = otel.attach(context) if context is not None else None
        return self

    def done(self, returned: Any) -> Any:
        """Take note of what the call gave, and hand it on."""
        self._call.result = result_of(returned, self._call.id)
        return returned

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        channel = self._record.channel
        if self._context is not None:
            otel.detach(self._context)
        channel.tool.reset(self._token)
        channel.hearing.reset(self._hearing)
        self._record.tool_ended(self._call, error)
