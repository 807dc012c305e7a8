"""What recording a run costs, in CPU milliseconds: `make bench-tracing`.

One run: three requests to a scripted model that answers at once, and three tool calls, so that what is measured is the
framework. Each way of recording has a process of its own, in which runs without and with it take turns; the processes
take turns in rounds. So whatever else the machine does falls on all of them alike. Told is the median of what a run
costs more than the one without tracing beside it; and function calls, which are the same on a busy machine. `--peer`
adds the official instrumentation of LangChain, under LangChain's own factory.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

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

PLAIN = "no tracing"
RECORDING = "recording"
ROUNDS, WARM = 5, 20
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
    """Nothing to do before a run."""


Variants = Mapping[str, Callable[[], object]]
Found = dict[str, dict[str, Any]]
"""Of each variant: `times`, the CPU milliseconds of its runs, and `calls`, the function calls of one."""


def ours(**traced: Sequence[Any]) -> Variants:
    """agentkit, without and with middlewares that record."""

    def run(middleware: Sequence[Any]) -> Callable[[], object]:
        agent = create_agent(scripted(), [look], middleware=middleware, name="root")
        return lambda: agent.invoke(_GIVEN)

    return {PLAIN: run(()), **{name: run(middleware) for name, middleware in traced.items()}}


def tracing(**options: Any) -> Tracing:
    """`Tracing` that has somewhere to record to."""
    return Tracing(Telemetry(**providers(**options)))


def theirs(name: str, **where: Any) -> Variants:
    """LangChain's factory, with and without the official instrumentation, which is switched on and off between runs."""
    from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

    agent: Any = langchain_create_agent(scripted(), [look], name="root")
    instrumentor = LangChainInstrumentor()

    def plain() -> object:
        return agent.invoke(_GIVEN)

    def traced() -> object:
        return agent.invoke(_GIVEN)

    plain.before = lambda: instrumentor.uninstrument()  # type: ignore[attr-defined]
    traced.before = lambda: instrumentor.instrument(**where)  # type: ignore[attr-defined]
    instrumentor.instrument(**where)
    return {PLAIN: plain, name: traced}


OURS: Mapping[str, Callable[[], Variants]] = {
    "agentkit, no provider": lambda: ours(**{"no provider": [Tracing()]}),
    "agentkit, sampled out": lambda: ours(**{"sampled out": [tracing(sampled=False)]}),
    "agentkit, recording": lambda: ours(**{RECORDING: [tracing()]}),
    "agentkit, with RunLog": lambda: ours(**{"recording, with RunLog": [tracing(), RunLog()]}),
}
PEERS: Mapping[str, Callable[[], Variants]] = {
    "official, no provider": lambda: theirs("no provider"),
    "official, recording": lambda: theirs(RECORDING, **providers()),
}


def measured(part: str, runs: int) -> Found:
    """Measure a part in this process, its variants taking turns run by run."""
    variants = {**OURS, **PEERS}[part]()
    times: dict[str, list[float]] = {name: [] for name in variants}
    gc.disable()
    for number in range(WARM + runs):
        if number % 20 == 0:
            gc.collect()
        for name, run in variants.items():
            getattr(run, "before", nothing)()
            start = time.process_time()
            run()
            if number >= WARM:
                times[name].append((time.process_time() - start) * 1000)
    gc.enable()
    return {name: {"times": times[name], "calls": counted(run)} for name, run in variants.items()}


def elsewhere(part: str, runs: int) -> Found:
    """Measure a part in a process of its own: what one patches or caches is nothing to the others."""
    command = [sys.executable, "-m", "bench.tracing", "--only", part, "--runs", str(runs)]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return cast(Found, json.loads(told.splitlines()[-1]))


def counted(run: Callable[[], object], runs: int = 5) -> float:
    """Function calls of one run, in all its threads: what no other program on the machine can disturb."""
    total = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal total
        total += event in ("call", "c_call")

    getattr(run, "before", nothing)()
    threading.setprofile(note)
    sys.setprofile(note)
    for _ in range(runs):
        run()
    sys.setprofile(None)
    threading.setprofile(None)
    return total / runs


def added(rounds: Sequence[Found]) -> tuple[float, float]:
    """What tracing adds to a run: CPU milliseconds, each run beside the one without it; and function calls."""
    plain, traced = rounds[0]
    pairs = [pair for found in rounds for pair in zip(found[traced]["times"], found[plain]["times"], strict=True)]
    calls = [found[traced]["calls"] - found[plain]["calls"] for found in rounds]
    return statistics.median(one - other for one, other in pairs), statistics.median(calls)


def report(part: str, rounds: Sequence[Found]) -> None:
    """Print a part's line."""
    more, calls = added(rounds)
    base = statistics.median(each for found in rounds for each in found[PLAIN]["times"])
    base_calls = statistics.median(found[PLAIN]["calls"] for found in rounds)
    print(
        f"{part:<24}{base:>9.2f}{more:>9.2f}{more / base * 100:>9.1f}"
        f"{base_calls:>11.0f}{calls:>9.0f}{calls / base_calls * 100:>9.1f}"
    )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="runs of each variant (default: 400)")
    parser.add_argument("--peer", action="store_true", help="with the official LangChain instrumentation")
    parser.add_argument("--only", choices=[*OURS, *PEERS], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        print(json.dumps(measured(given.only, given.runs)))
        return
    rounds: dict[str, list[Found]] = {part: [] for part in (*OURS, *(PEERS if given.peer else ()))}
    for _ in range(ROUNDS):
        for part, found in rounds.items():
            found.append(elsewhere(part, max(2, given.runs // ROUNDS)))
    print(f"{'a run':<24}{'CPU ms':>9}{'added':>9}{'%':>9}{'calls':>11}{'added':>9}{'%':>9}")
    for part, found in rounds.items():
        report(part, found)
    if given.peer:
        mine, peers = rounds["agentkit, recording"], rounds["official, recording"]
        each = sorted(added([one])[0] / added([two])[0] for one, two in zip(mine, peers, strict=True))
        time_ratio, calls_ratio = (one / two for one, two in zip(added(mine), added(peers), strict=True))
        print(
            f"\nRecording costs {time_ratio:.2f} of the official one's CPU time ({each[0]:.2f} to {each[-1]:.2f} in "
            f"{len(each)} rounds), and {calls_ratio:.2f} of its function calls."
        )


if __name__ == "__main__":
    main()
