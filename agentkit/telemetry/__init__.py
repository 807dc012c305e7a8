"""Traces and metrics of agents, for `agentkit.middleware.Tracing` and for graphs that agentkit did not build."""

from agentkit.telemetry.instrument import instrument
from agentkit.telemetry.settings import DROP, ContentHook, Kind, Redact, Telemetry

__all__ = ["DROP", "ContentHook", "Kind", "Redact", "Telemetry", "instrument"]
