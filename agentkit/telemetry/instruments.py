"""The table of instruments: those of the conventions, and agentkit's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from agentkit.telemetry.semconv import GenAI, Own

__all__ = ["INSTRUMENTS", "Instrument"]

_D: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_G: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6)
_W: Final = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0)
_T: Final = tuple(float(4**power) for power in range(14))
_N: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

_MODEL: Final = frozenset(
    {
        GenAI.OPERATION,
        GenAI.PROVIDER,
        GenAI.REQUEST_MODEL,
        GenAI.RESPONSE_MODEL,
        GenAI.SERVER_ADDRESS,
        GenAI.SERVER_PORT,
    }
)


@dataclass(frozen=True, slots=True)
class Instrument:
    """One instrument."""

    kind: Literal["histogram", "counter", "observable_up_down_counter"]
    unit: str
    attributes: frozenset[str]
    """The attributes that it may have; any other would multiply its time series."""
    buckets: tuple[float, ...] = ()
    layer: Literal["current", "next", "both"] = "both"
    """Whose names it belongs to; see `Telemetry.metrics_semconv`."""
    description: str = ""


def _own(*names: str) -> frozenset[str]:
    return frozenset(names)


_FAILED: Final = _MODEL | {GenAI.ERROR_TYPE}
_RUN: Final = _own(GenAI.AGENT_NAME)
_TOLD: Final = _own(GenAI.ERROR_TYPE, Own.OUTCOME)

INSTRUMENTS: Final[Mapping[str, Instrument]] = {
    "gen_ai.client.operation.duration": Instrument("histogram", "s", _FAILED, _D, "current", "Requests to models"),
    "gen_ai.client.token.usage": Instrument(
        "histogram", "{token}", _FAILED | {GenAI.TOKEN_TYPE}, _T, "current", "Tokens of a request"
    ),
    "gen_ai.client.operation.time_to_first_chunk": Instrument(
        "histogram", "s", _MODEL, _D, "current", "From a request to the first chunk of its reply"
    ),
    "gen_ai.client.operation.time_per_output_chunk": Instrument(
        "histogram", "s", _MODEL, _D, "current", "Between two chunks of a reply"
    ),
    "gen_ai.client.inference.duration": Instrument("histogram", "s", _FAILED, _D, "next", "Requests to models"),
    "gen_ai.client.inference.time_to_first_chunk": Instrument(
        "histogram", "s", _MODEL, _D, "next", "From a request to the first chunk of its reply"
    ),
    "gen_ai.client.inference.time_per_output_chunk": Instrument(
        "histogram", "s", _MODEL, _D, "next", "Between two chunks of a reply"
    ),
    "gen_ai.client.inference.usage.input_tokens": Instrument("counter", "{token}", _FAILED, (), "next", "Tokens sent"),
    "gen_ai.client.inference.usage.output_tokens": Instrument("counter", "{token}", _FAILED, (), "next", "Tokens got"),
    "gen_ai.client.inference.usage.cache_read.input_tokens": Instrument(
        "counter", "{token}", _FAILED, (), "next", "Tokens read from a cache"
    ),
    "gen_ai.client.inference.usage.cache_write.input_tokens": Instrument(
        "counter", "{token}", _FAILED, (), "next", "Tokens written to a cache"
    ),
    "gen_ai.client.inference.usage.reasoning.output_tokens": Instrument(
        "counter", "{token}", _FAILED, (), "next", "Tokens of reasoning"
    ),
    "gen_ai.client.inference.operation.input_tokens": Instrument(
        "histogram", "{token}", _FAILED, _T, "next", "Tokens sent in a request"
    ),
    "gen_ai.client.inference.operation.output_tokens": Instrument(
        "histogram", "{token}", _FAILED, _T, "next", "Tokens got in a reply"
    ),
    "gen_ai.invoke_agent.duration": Instrument(
        "histogram", "s", _RUN | _TOLD | {GenAI.REQUEST_MODEL}, _G, "both", "Runs of an agent"
    ),
    "gen_ai.invoke_agent.inference_calls": Instrument(
        "histogram", "{inference_call}", _RUN, _N, "both", "Requests to models in a run"
    ),
    "gen_ai.invoke_agent.tool_calls": Instrument("histogram", "{tool_call}", _RUN, _N, "both", "Tool calls in a run"),
    "gen_ai.execute_tool.duration": Instrument(
        "histogram", "s", _RUN | _TOLD | {GenAI.TOOL_NAME, GenAI.TOOL_TYPE}, _D, "both", "Calls of tools"
    ),
    "agentkit.agent.active": Instrument("observable_up_down_counter", "{run}", _RUN, description="Runs that go on"),
    "agentkit.retries": Instrument(
        "counter",
        "{retry}",
        _own("agentkit.retry.target", GenAI.ERROR_TYPE, "agentkit.retry.exhausted"),
        description="Retries, and calls given up",
    ),
    "agentkit.gate.decisions": Instrument(
        "counter",
        "{decision}",
        _own("agentkit.gate.name", "agentkit.gate.kind", "agentkit.gate.decision"),
        description="What gates and approvals decided",
    ),
    "agentkit.interrupts": Instrument(
        "counter", "{interrupt}", _RUN | {"agentkit.interrupt.kind"}, description="Pauses"
    ),
    "agentkit.approval.wait": Instrument("histogram", "s", _RUN, _W, description="From a pause to its resumption"),
    "agentkit.limits": Instrument(
        "counter", "{event}", _own("agentkit.limit.name"), description="Runs that a limit ended"
    ),
    "agentkit.hook.duration": Instrument(
        "histogram", "s", _own(Own.HOOK_OF, Own.HOOK), _D, description="What hooks of middlewares take themselves"
    ),
    "agentkit.usage.missing": Instrument(
        "counter",
        "{reply}",
        _own(GenAI.PROVIDER, GenAI.REQUEST_MODEL),
        description="Replies that do not tell their tokens",
    ),
    "agentkit.telemetry.errors": Instrument(
        "counter", "{error}", _own("agentkit.site"), description="Failures of telemetry itself"
    ),
}
