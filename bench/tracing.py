"""What recording a run costs, in CPU milliseconds: `make bench-tracing`.

One run: three requests to a scripted model that answers at once, and three tool calls, so that what is measured is the
framework. Contenders take turns round by round, in an order that changes, and the best round of each counts, since
other programs only ever add time. `--peer` adds the official instrumentation, which patches LangChain for the whole
process, so each contender runs in a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.tools import tool

from agentkit.testing import Request, ScriptedModel, ai, tool_call

RUNS = 50  # per round
CONTENDERS = {
    "agentkit, no tracing": "agentkit",
    "agentkit, Tracing, no provider": "agentkit tracing",
    "agentkit, Tracing, sampled out": "agentkit tracing unsampled",
    "agentkit, Tracing, recording": "agentkit tracing recording",
    "agentkit, Tracing and RunLog, recording": "agentkit tracing log recording",
    "LangChain, no tracing": "langchain",
    "LangChain, official, no provider": "langchain peer",
    "LangChain, official, recording": "langchain peer recording",
}
NO_PROVIDER, RECORDING = "agentkit, Tracing, no provider", "agentkit, Tracing, recording"


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


def prepared(kind: str) -> Callable[[], object]:
    """One run of a contender."""
    words = kind.split()
    if "recording" in words or "unsampled" in words:
        _record("unsampled" in words)
    if "peer" in words:
        from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

        LangChainInstrumentor().instrument()
    model: Any = ScriptedModel(answer, repeat=True)
    given = {"messages": [("user", "hi")]}
    if "langchain" in words:
        from langchain.agents import create_agent as langchain_create_agent

        theirs = langchain_create_agent(model, [look], name="root")
        return lambda: theirs.invoke(given)  # type: ignore[call-overload]
    from agentkit import create_agent
    from agentkit.middleware import RunLog, Tracing

    extra = [*([Tracing()] if "tracing" in words else []), *([RunLog()] if "log" in words else [])]
    ours = create_agent(model, [look], middleware=extra, name="root")
    return lambda: ours.invoke(given)


def _record(unsampled: bool) -> None:
    """Set up spans and metrics that are kept in memory and thrown away."""
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider(sampler=ALWAYS_OFF if unsampled else ALWAYS_ON)
    provider.add_span_processor(SimpleSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))


def serve(kind: str) -> None:
    """A contender's process: one line in, one round out."""
    run = prepared(kind)
    for _ in range(20):
        run()
    print("ready", flush=True)
    for _ in sys.stdin:
        gc.collect()
        gc.disable()
        start = time.process_time()
        for _ in range(RUNS):
            run()
        print(json.dumps((time.process_time() - start) / RUNS * 1000), flush=True)
        gc.enable()


class Contender:
    """A process that runs one contender."""

    def __init__(self, kind: str) -> None:
        command = [sys.executable, "-m", "bench.tracing", "--serve", kind]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._line()

    def round(self) -> float:
        """CPU milliseconds per run."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return float(json.loads(self._line()))

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def measured(names: Sequence[str], rounds: int) -> dict[str, float]:
    """The best round of each contender."""
    contenders = {name: Contender(CONTENDERS[name]) for name in names}
    best = dict.fromkeys(names, float("inf"))
    for number in range(rounds):
        for name in names if number % 2 else reversed(names):
            best[name] = min(best[name], contenders[name].round())
    for contender in contenders.values():
        contender.close()
    return best


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="rounds; the best of each counts (default: 15)")
    parser.add_argument("--peer", action="store_true", help="with the official LangChain instrumentation")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    names = [name for name in CONTENDERS if given.peer or not name.startswith("LangChain")]
    best = measured(names, given.rounds)
    print(f"{'CPU ms per run (3 requests, 3 tool calls)':<44}{'in all':>9}{'added':>9}{'added %':>9}")
    for name in names:
        base = best["LangChain, no tracing" if name.startswith("LangChain") else "agentkit, no tracing"]
        added = best[name] - base
        print(f"{name:<44}{best[name]:>9.3f}{added:>9.3f}{added / base * 100:>9.1f}")


if __name__ == "__main__":
    main()
