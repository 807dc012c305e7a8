"""What recording a run costs, in CPU milliseconds: `make bench-tracing`.

One run: three requests to a scripted model that answers at once, and three tool calls, so that what is measured is the
framework. The variants of one framework take turns run by run in one process, so that whatever else the machine does
falls on all of them alike; told is the tenth percentile of each, and the median of what a run costs more than the run
without tracing beside it. `--peer` adds the official instrumentation of LangChain, under LangChain's own factory.
Function calls are told as well: they are the same on a busy machine.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
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

Variants = Mapping[str, Callable[[], object]]
PLAIN = "no tracing"
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


def ours() -> Variants:
    """agentkit, with and without `Tracing`."""

    def run(*middleware: Any) -> Callable[[], object]:
        model = scripted()
        agent = create_agent(model, [look], middleware=middleware, name="root")
        return lambda: agent.invoke(_GIVEN)

    recording = Telemetry(**providers())
    return {
        PLAIN: run(),
        "Tracing, no provider": run(Tracing()),
        "Tracing, sampled out": run(Tracing(Telemetry(**providers(sampled=False)))),
        "Tracing, recording": run(Tracing(recording)),
        "Tracing and RunLog, recording": run(Tracing(recording), RunLog()),
    }


def theirs(*, recording: bool) -> Variants:
    """LangChain's factory, with and without the official instrumentation, which is switched on and off between runs."""
    from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

    model = scripted()
    agent: Any = langchain_create_agent(model, [look], name="root")
    instrumentor, where = LangChainInstrumentor(), providers() if recording else {}

    def plain() -> object:
        return agent.invoke(_GIVEN)

    def switched(on: bool) -> None:
        if on != instrumentor.is_instrumented_by_opentelemetry:
            instrumentor.instrument(**where) if on else instrumentor.uninstrument()

    plain.before = lambda: switched(False)  # type: ignore[attr-defined]

    def traced() -> object:
        return agent.invoke(_GIVEN)

    traced.before = lambda: switched(True)  # type: ignore[attr-defined]
    return {PLAIN: plain, f"official, {'recording' if recording else 'no provider'}": traced}


def measured(variants: Variants, runs: int) -> dict[str, list[float]]:
    """CPU milliseconds of each run of each variant, taking turns."""
    names = list(variants)
    found: dict[str, list[float]] = {name: [] for name in names}
    gc.disable()
    for number in range(runs + 20):
        if number % 20 == 0:
            gc.collect()
        for name in names[number % len(names) :] + names[: number % len(names)]:
            getattr(variants[name], "before", lambda: None)()
            start = time.process_time()
            variants[name]()
            if number >= 20:  # warm
                found[name].append((time.process_time() - start) * 1000)
    gc.enable()
    return found


def counted(run: Callable[[], object], runs: int = 5) -> float:
    """Function calls of one run, in all its threads: what no other program on the machine can disturb."""
    total = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal total
        total += event in ("call", "c_call")

    getattr(run, "before", lambda: None)()
    threading.setprofile(note)
    sys.setprofile(note)
    for _ in range(runs):
        run()
    sys.setprofile(None)
    threading.setprofile(None)
    return total / runs


def report(title: str, variants: Variants, runs: int) -> None:
    """Measure and print a table."""
    found = measured(variants, runs)
    calls = {name: counted(run) for name, run in variants.items()}
    print(f"{title:<34}{'p10':>9}{'added':>9}{'added %':>9}{'calls':>9}{'added %':>9}")
    base = statistics.median(found[PLAIN])
    for name, times in found.items():
        added = statistics.median(one - plain for one, plain in zip(times, found[PLAIN], strict=True))
        more = (calls[name] / calls[PLAIN] - 1) * 100
        low = statistics.quantiles(times, n=10)[0]
        print(f"{name:<34}{low:>9.3f}{added:>9.3f}{added / base * 100:>9.1f}{calls[name]:>9.0f}{more:>9.1f}")
    print(flush=True)


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="runs of each variant (default: 400)")
    parser.add_argument("--peer", action="store_true", help="with the official LangChain instrumentation")
    parser.add_argument("--only", choices=["ours", "no provider", "recording"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only == "ours":
        report("agentkit, CPU ms per run", ours(), given.runs)
    elif given.only:
        variants = theirs(recording=given.only == "recording")
        report("LangChain, CPU ms per run", variants, given.runs)
    else:  # a process each, since the official instrumentation patches LangChain
        for part in ("ours", *(("no provider", "recording") if given.peer else ())):
            subprocess.run(
                [sys.executable, "-m", "bench.tracing", "--only", part, "--runs", str(given.runs)], check=True
            )


if __name__ == "__main__":
    main()
