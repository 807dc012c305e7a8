"""What recording a run costs, in CPU milliseconds: `make bench-tracing`.

One run: three requests to a scripted model that answers at once, and three tool calls, so that what is measured is the
framework. All variants take turns in one process, ten runs at a time, so that whatever else the machine does falls on
all of them alike; told is the tenth percentile of each, and the median of what a run costs more than a run of the same
framework without tracing beside it. `--peer` adds the official instrumentation of LangChain, under LangChain's own
factory. Function calls are told as well: they are the same on a busy machine.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain.agents import create_agent as langchain_create_agent
from langchain_core.tools import tool
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

from agentkit import create_agent
from agentkit.middleware import RunLog, Tracing
from agentkit.telemetry import Telemetry
from agentkit.testing import Request, ScriptedModel, ai, tool_call

AGENTKIT, LANGCHAIN = "agentkit", "LangChain"
RECORDING, OFFICIAL = "agentkit, Tracing, recording", "LangChain, official, recording"
BLOCK, WARM = 10, 3  # the first runs after a switch fill the interpreter's caches again
_GIVEN: Any = {"messages": [("user", "hi")]}


@tool
def look(x: int) -> str:
    """Look something up."""
    return "found"


def answer(request: Request) -> Any:
    """Three requests: one call, two calls, the answer."""
    if request.turn == 0:
        return ai("", tool_call("look", {"x": 1}, "c1"), usage=(10, 5), model_name="m", finish_reason="tool_calls")
    if request.turn == 1:
        calls = [tool_call("look", {"x": 2}, "c2"), tool_call("look", {"x": 3}, "c3")]
        return ai("", *calls, usage=(20, 5), model_name="m", finish_reason="tool_calls")
    return ai("done", usage=(30, 5), model_name="m", finish_reason="stop")


def scripted() -> Any:
    """The model. It has a name, since the official instrumentation records no request to a model without one."""
    return ScriptedModel(answer, repeat=True, metadata={"ls_model_name": "m"})


class Nowhere(SpanExporter):
    """Throws spans away."""

    def export(self, spans: Any) -> SpanExportResult:
        """Throw them away."""
        return SpanExportResult.SUCCESS


def providers(*, sampled: bool = True) -> dict[str, Any]:
    """Where spans and metrics go."""
    tracers = TracerProvider(sampler=ALWAYS_ON if sampled else ALWAYS_OFF)
    tracers.add_span_processor(SimpleSpanProcessor(Nowhere()))
    return {"tracer_provider": tracers, "meter_provider": MeterProvider([InMemoryMetricReader()])}


def nothing() -> None:
    """Nothing to switch."""


@dataclass(slots=True)
class Variant:
    """One way to run the same thing."""

    run: Callable[[], object]
    base: str
    """The variant of the same framework without tracing."""
    switch: Callable[[], object] = nothing
    """Called before a block of runs."""
    times: list[float] = field(default_factory=list)
    """CPU milliseconds of each run."""
    calls: float = 0
    """Function calls of one run."""

    def added(self, base: Variant) -> float:
        """CPU milliseconds that a run costs more than the one beside it."""
        return statistics.median(one - plain for one, plain in zip(self.times, base.times, strict=True))


Variants = Mapping[str, Variant]


def ours() -> Variants:
    """agentkit, with and without `Tracing`."""

    def run(*middleware: Any) -> Variant:
        model = scripted()
        agent = create_agent(model, [look], middleware=middleware, name="root")
        return Variant(lambda: agent.invoke(_GIVEN), AGENTKIT)

    recording = Telemetry(**providers())
    return {
        AGENTKIT: run(),
        "agentkit, Tracing, no provider": run(Tracing()),
        "agentkit, Tracing, sampled out": run(Tracing(Telemetry(**providers(sampled=False)))),
        RECORDING: run(Tracing(recording)),
        "agentkit, Tracing and RunLog": run(Tracing(recording), RunLog()),
    }


def theirs() -> Variants:
    """LangChain's factory, with and without the official instrumentation, which patches LangChain while it is on."""
    from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

    model = scripted()
    agent: Any = langchain_create_agent(model, [look], name="root")
    instrumentor, where = LangChainInstrumentor(), providers()

    def run(on: bool = False, **to: Any) -> Variant:
        return Variant(lambda: agent.invoke(_GIVEN), LANGCHAIN, lambda: instrumentor.instrument(**to) if on else None)

    return {LANGCHAIN: run(), "LangChain, official, no provider": run(True), OFFICIAL: run(True, **where)}


def switch_off() -> None:
    """Take the official instrumentation out, if it is there."""
    module = sys.modules.get("opentelemetry.instrumentation.genai.langchain")
    if module is not None and module.LangChainInstrumentor().is_instrumented_by_opentelemetry:
        module.LangChainInstrumentor().uninstrument()


def measure(variants: Variants, runs: int) -> None:
    """Measure each, taking turns."""
    names = list(variants)
    gc.disable()
    for block in range(max(1, runs // BLOCK)):
        at = block % len(names)
        for variant in (variants[name] for name in names[at:] + names[:at]):
            gc.collect()
            variant.switch()
            for number in range(WARM + BLOCK):
                start = time.process_time()
                variant.run()
                if number >= WARM:
                    variant.times.append((time.process_time() - start) * 1000)
            switch_off()
    gc.enable()
    for variant in variants.values():
        variant.switch()
        variant.calls = counted(variant.run)
        switch_off()


def counted(run: Callable[[], object], runs: int = 5) -> float:
    """Function calls of one run, in all its threads: what no other program on the machine can disturb."""
    total = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal total
        total += event in ("call", "c_call")

    threading.setprofile(note)
    sys.setprofile(note)
    for _ in range(runs):
        run()
    sys.setprofile(None)
    threading.setprofile(None)
    return total / runs


def report(variants: Variants) -> None:
    """Print a table."""
    print(f"{'CPU ms per run':<34}{'p10':>9}{'added':>9}{'added %':>9}{'calls':>9}{'added':>9}{'added %':>9}")
    for name, variant in variants.items():
        base = variants[variant.base]
        low, more, calls = statistics.quantiles(variant.times, n=10)[0], variant.added(base), variant.calls - base.calls
        print(
            f"{name:<34}{low:>9.3f}{more:>9.3f}{more / statistics.median(base.times) * 100:>9.1f}"
            f"{variant.calls:>9.0f}{calls:>9.0f}{calls / base.calls * 100:>9.1f}"
        )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="runs of each variant (default: 400)")
    parser.add_argument("--peer", action="store_true", help="with the official LangChain instrumentation")
    given = parser.parse_args()
    variants = {**ours(), **(theirs() if given.peer else {})}
    measure(variants, given.runs)
    report(variants)
    if given.peer:
        mine, peers = variants[RECORDING], variants[OFFICIAL]
        plain, bare = variants[AGENTKIT], variants[LANGCHAIN]
        time_ratio = mine.added(plain) / peers.added(bare)
        calls_ratio = (mine.calls - plain.calls) / (peers.calls - bare.calls)
        print(f"\nRecording: {time_ratio:.2f} of the official one's CPU time, {calls_ratio:.2f} of its function calls.")


if __name__ == "__main__":
    main()
