"""The scenarios of `bench.tracing_scenarios`, recorded by agentkit and by the official LangChain instrumentation.

`make bench-tracing` prints, for each scenario and both, what a reader of the traces would see; `--trees` the spans too.
Each contender is recorded in a process of its own, since the official one patches LangChain.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from langchain.agents import create_agent as langchain_create_agent
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from agentkit import create_agent
from agentkit.middleware import Tracing
from agentkit.testing.semconv import SpanChecker
from bench.tracing_scenarios import CANARY, SCENARIOS

CONTENDERS = ("agentkit", "official")


def ours(model: Any, tools: Any = (), *, middleware: Any = (), **more: Any) -> Any:
    """An agent of agentkit's, recorded."""
    return create_agent(model, tools, middleware=[Tracing(), *middleware], **more)


def theirs(model: Any, tools: Any = (), **more: Any) -> Any:
    """An agent of LangChain's."""
    return langchain_create_agent(model, tools, **more)


def record(contender: str) -> None:
    """Record all scenarios; print one JSON object for each."""
    checker, reader = SpanChecker(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(checker)
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(MeterProvider([reader]))
    if contender == "official":
        from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

        LangChainInstrumentor().instrument()
    for scenario in SCENARIOS:
        checker.spans.clear()
        checker.started.clear()
        scenario(ours if contender == "agentkit" else theirs)
        told = {
            "scenario": scenario.__name__.rstrip("_"),
            "about": scenario.__doc__,
            "tree": list(_tree(checker.spans)),
            "spans": len(checker.spans),
            "errors": sum(span.status.status_code.name == "ERROR" for span in checker.spans),
            "links": sum(len(span.links) for span in checker.spans),
            "events": sum(len(span.events) for span in checker.spans),
            "outcome": [_outcome(span) for span in checker.spans if span.parent is None],
            "leaks": sum(CANARY in span.to_json() for span in checker.spans),
            "findings": len(checker.findings()),
        }
        print(json.dumps(told), flush=True)


def _outcome(span: Any) -> str:
    told = span.attributes
    return str(told.get("agentkit.outcome") or told.get("error.type") or "nothing told")


def _tree(spans: Any, parent: int | None = None, depth: int = 0) -> Iterator[str]:
    for span in sorted(spans, key=lambda one: one.start_time):
        if (span.parent.span_id if span.parent else None) == parent:
            told = {key: span.attributes[key] for key in ("agentkit.outcome", "error.type") if key in span.attributes}
            yield f"{'  ' * depth}{span.name} {span.status.status_code.name} {told or ''}".rstrip()
            yield from _tree(spans, span.context.span_id, depth + 1)


def main() -> None:
    """Record, and print a table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", action="store_true", help="print the spans too")
    parser.add_argument("--record", choices=CONTENDERS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.record:
        record(given.record)
        return
    found: dict[str, list[dict[str, Any]]] = {}
    for contender in CONTENDERS:
        command = [sys.executable, "-m", "bench.tracing_peer", "--record", contender]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[contender] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    columns = ("spans", "errors", "links", "events", "leaks", "findings")
    print("| scenario | recorded by | " + " | ".join(columns) + " | outcome of the run |")
    print("|---|---|" + "---|" * (len(columns) + 1))
    for rows in zip(*(found[contender] for contender in CONTENDERS), strict=True):
        for contender, row in zip(CONTENDERS, rows, strict=True):
            cells = [str(row[column]) for column in columns]
            print(f"| {row['scenario']} | {contender} | {' | '.join(cells)} | {', '.join(row['outcome'])} |")
            if given.trees:
                print("\n".join(row["tree"]))


if __name__ == "__main__":
    main()
