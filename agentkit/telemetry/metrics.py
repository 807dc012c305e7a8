"""Metrics: what is added to the instruments of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from threading import Lock
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from agentkit.events import Event
from agentkit.telemetry.attributes import run_outcome
from agentkit.telemetry.facts import ModelCall, RunFacts, ToolCall, Usage
from agentkit.telemetry.instruments import INSTRUMENTS
from agentkit.telemetry.reading import error_type, interrupt_kind
from agentkit.telemetry.semconv import GenAI, Own
from agentkit.watch import Outcome

__all__ = ["Metrics", "waited"]

_SETS: Final = 256  # of attributes that are kept: a process has a handful of agents, models and tools

_USED: Final = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read.input_tokens",
    "cache_write": "cache_write.input_tokens",
    "reasoning": "reasoning.output_tokens",
}
"""Fields of `Usage`, and what the conventions' head calls them."""


class _Active:
    """The runs that go on, by agent; looked at when metrics are collected, which is cheaper than two records a run."""

    _known: ClassVar[WeakKeyDictionary[MeterProvider, _Active]] = WeakKeyDictionary()

    def __init__(self, meter: Meter) -> None:
        """Create the instrument."""
        name = "agentkit.agent.active"
        told = INSTRUMENTS[name]
        self._runs: Counter[str | None] = Counter()
        self._lock = Lock()
        meter.create_observable_up_down_counter(name, [self._observed], told.unit, told.description)

    @classmethod
    def of(cls, provider: MeterProvider, meter: Meter) -> _Active:
        """Those of a provider: a second instrument of the name would contradict the first."""
        if provider not in cls._known:
            cls._known[provider] = cls(meter)
        return cls._known[provider]

    def add(self, agent: str | None, number: int) -> None:
        """Another run, or one less."""
        with self._lock:
            self._runs[agent] += number

    def _observed(self, options: CallbackOptions) -> list[Observation]:
        with self._lock:
            return [Observation(number, _agent(agent)) for agent, number in self._runs.items()]


class Metrics:
    """The instruments of one meter provider."""

    _known: ClassVar[WeakKeyDictionary[MeterProvider, dict[str, Metrics]]] = WeakKeyDictionary()

    def __init__(self, provider: MeterProvider, layer: str, version: str) -> None:
        """Create the instruments of a layer; see `Telemetry.metrics_semconv`."""
        meter = provider.get_meter("agentkit", version)
        self._active = _Active.of(provider, meter)
        self._is_next = layer != "current"
        self._record: dict[str, Callable[..., None]] = {}
        for name, told in INSTRUMENTS.items():
            observed = told.kind == "observable_up_down_counter"
            if observed or ("both" not in (layer, told.layer) and layer != told.layer):
                continue
            more = {"explicit_bucket_boundaries_advisory": told.buckets} if told.buckets else {}
            made = getattr(meter, f"create_{told.kind}")(name, told.unit, told.description, **more)
            self._record[name] = made.record if told.kind == "histogram" else made.add

    @classmethod
    def of(cls, provider: MeterProvider, layer: str, version: str) -> Metrics:
        """The instruments of a provider, created once."""
        known = cls._known.setdefault(provider, {})
        if layer not in known:
            known[layer] = cls(provider, layer, version)
        return known[layer]

    def _add(self, name: str, value: float, told: Mapping[str, Any], context: Context | None = None) -> None:
        if (record := self._record.get(name)) is not None:
            record(value, told, context)

    # ---- runs

    def run_started(self, facts: RunFacts) -> None:
        """A run starts."""
        self._active.add(facts.agent, 1)
        if facts.resumed and (wait := waited(facts)) is not None:
            self._add("agentkit.approval.wait", wait, _agent(facts.agent))

    def run_ended(self, facts: RunFacts, outcome: Outcome, context: Context | None) -> None:
        """It is over, or pauses."""
        agent = _agent(facts.agent)
        status, reason = run_outcome(facts, outcome)
        failed = error_type(outcome.error) if status == "error" and outcome.error is not None else None
        told = _failed(_run(facts.agent, facts.run.model, status), failed)
        self._active.add(facts.agent, -1)
        self._add("gen_ai.invoke_agent.duration", facts.duration, told, context)
        self._add("gen_ai.invoke_agent.inference_calls", facts.model_calls, agent, context)
        self._add("gen_ai.invoke_agent.tool_calls", facts.tool_calls, agent, context)
        if status == "interrupted":
            kind = interrupt_kind(outcome.interrupts)
            self._add(
                "agentkit.interrupts", max(1, len(outcome.interrupts)), {**agent, "agentkit.interrupt.kind": kind}
            )
        if status == "limit":
            self._add("agentkit.limits", 1, _known({"agentkit.limit.name": reason}))

    # ---- calls

    def model_chunk(self, call: ModelCall, since: float) -> None:
        """A further chunk arrived, this many seconds after the one before."""
        told = _model(call)
        self._add("gen_ai.client.operation.time_per_output_chunk", since, told)
        self._add("gen_ai.client.inference.time_per_output_chunk", since, told)

    def model_ended(self, call: ModelCall, context: Context | None) -> None:
        """A reply is there, or its request failed."""
        told = _model(call)
        usage = call.usage
        failed = error_type(call.error) if call.error is not None and not call.cancelled else None
        duration = _failed(told, failed)
        for name in ("operation", "inference"):
            self._add(f"gen_ai.client.{name}.duration", call.duration, duration, context)
            if call.first_chunk is not None:
                first = call.first_chunk - call.started
                self._add(f"gen_ai.client.{name}.time_to_first_chunk", first, told, context)
        for side in ("input", "output"):
            if (count := getattr(usage, side)) is not None:
                self._add("gen_ai.client.token.usage", count, {**told, GenAI.TOKEN_TYPE: side}, context)
        if self._is_next:
            self._used(usage, told, context)
        if call.reply is not None and usage.input is None:
            model = _known({GenAI.PROVIDER: call.provider, GenAI.REQUEST_MODEL: call.model})
            self._add("agentkit.usage.missing", 1, model, context)

    def _used(self, usage: Usage, told: Mapping[str, Any], context: Context | None) -> None:
        """Tokens under the names of the conventions' head."""
        for field, name in _USED.items():
            if (count := getattr(usage, field)) is not None:
                self._add(f"gen_ai.client.inference.usage.{name}", count, told, context)
                if field in ("input", "output"):
                    self._add(f"gen_ai.client.inference.operation.{name}", count, told, context)

    def tool_ended(self, facts: RunFacts, call: ToolCall, context: Context | None) -> None:
        """A call of a tool is over."""
        name = call.name if call.tool is not None else "_OTHER"  # a model may ask for any name
        told = _failed(_tool(name, facts.agent, call.outcome), call.error_type)
        self._add("gen_ai.execute_tool.duration", call.duration, told, context)

    def hook_ended(self, middleware: str, hook: str, own: float, context: Context | None) -> None:
        """A call of a middleware's hook is over; it took this many seconds itself."""
        self._add("agentkit.hook.duration", own, {Own.HOOK_OF: middleware, Own.HOOK: hook}, context)

    def failed(self, site: str) -> None:
        """Telemetry itself failed."""
        self._add("agentkit.telemetry.errors", 1, {"agentkit.site": site})

    def happened(self, event: Event) -> None:
        """An event was reported."""
        fields = event.fields
        if event.name == "gate.decision":
            told = {"name": fields.get("gate"), "kind": fields.get("kind"), "decision": fields.get("decision")}
            decided = {f"agentkit.gate.{key}": value for key, value in told.items()}
            self._add("agentkit.gate.decisions", 1, _known(decided))
        elif event.name in ("model.retry", "tool.retry"):
            told = {
                "agentkit.retry.target": fields.get("target"),
                "agentkit.retry.exhausted": fields.get("exhausted"),
                GenAI.ERROR_TYPE: fields.get("error_type"),
            }
            self._add("agentkit.retries", 1, _known(told))


def waited(facts: RunFacts) -> float | None:
    """Seconds between a pause and its resumption, whatever processes they happened in."""
    try:
        stored = datetime.fromisoformat(facts.saved.checkpoint["ts"]) if facts.saved else None
    except (KeyError, TypeError, ValueError):
        return None
    return None if stored is None else max(0.0, (datetime.now(UTC) - stored).total_seconds())


# ---- attributes: the same for every run, so each set is put together once; they are read only


def _known(told: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if value is not None}


def _failed(told: Mapping[str, Any], error: str | None) -> Mapping[str, Any]:
    return told if error is None else {**told, GenAI.ERROR_TYPE: error}


@lru_cache(maxsize=_SETS)
def _agent(name: str | None) -> Mapping[str, Any]:
    return _known({GenAI.AGENT_NAME: name})


@lru_cache(maxsize=_SETS)
def _run(agent: str | None, model: str | None, outcome: str) -> Mapping[str, Any]:
    return _known({GenAI.AGENT_NAME: agent, GenAI.REQUEST_MODEL: model, Own.OUTCOME: outcome})


@lru_cache(maxsize=_SETS)
def _tool(name: str, agent: str | None, outcome: str) -> Mapping[str, Any]:
    told = {GenAI.TOOL_NAME: name, GenAI.TOOL_TYPE: "function", GenAI.AGENT_NAME: agent, Own.OUTCOME: outcome}
    return _known(told)


def _model(call: ModelCall) -> Mapping[str, Any]:
    told = call.reply.response_metadata if call.reply is not None else {}
    answered = told.get("model_name") or told.get("model")
    return _request(call.provider, call.model, answered if isinstance(answered, str) else None, call.server)


@lru_cache(maxsize=_SETS)
def _request(
    provider: str, model: str | None, answered: str | None, server: tuple[str, int] | None
) -> Mapping[str, Any]:
    told = {GenAI.PROVIDER: provider, GenAI.REQUEST_MODEL: model, GenAI.RESPONSE_MODEL: answered}
    where = {GenAI.SERVER_ADDRESS: server[0], GenAI.SERVER_PORT: server[1]} if server is not None else {}
    return {GenAI.OPERATION: "chat", **_known(told), **where}
