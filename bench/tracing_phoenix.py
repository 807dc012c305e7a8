"""The scenarios of `bench.tracing_scenarios`, sent to a Phoenix that runs, and what its API tells of them.

```sh
pip install arize-phoenix opentelemetry-exporter-otlp-proto-http
phoenix serve &
python -m bench.tracing_phoenix http://127.0.0.1:6006
```

Each scenario is a project of its own there, named anew each time. A thread's id is one session for all of them, so only
a new Phoenix tells sessions right.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final
from urllib.request import Request, urlopen
from uuid import uuid4

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from agentkit import create_agent
from agentkit.middleware import Tracing
from agentkit.telemetry import Telemetry
from bench.tracing_scenarios import SCENARIOS

_ASKED: Final = """query ($id: ID!) { node(id: $id) { ... on Project {
  traceCount tokenCountPrompt tokenCountCompletion sessions(first: 9) { edges { node { sessionId } } }
  spans(first: 99) { edges { node { name spanKind statusCode events { name } attributes } } } } } }"""


def send(base: str, project: str, scenario: Callable[[Any], None]) -> None:
    """Run a scenario, recorded in a project of its own, with content."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    tracers = TracerProvider(resource=Resource.create({"openinference.project.name": project}))
    tracers.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces")))
    tracing = Telemetry(tracer_provider=tracers, capture_content=True)

    def create(model: Any, tools: Any = (), *, middleware: Any = (), **more: Any) -> Any:
        return create_agent(model, tools, middleware=[Tracing(tracing), *middleware], **more)

    scenario(create)
    tracers.shutdown()


def told(base: str, project: str) -> dict[str, Any]:
    """What Phoenix says of a project."""
    with urlopen(f"{base}/v1/projects/{project}") as answer:
        id = json.load(answer)["data"]["id"]
    body = json.dumps({"query": _ASKED, "variables": {"id": id}}).encode()
    with urlopen(Request(f"{base}/graphql", body, {"content-type": "application/json"})) as answer:
        found: dict[str, Any] = json.load(answer)["data"]["node"]
    return found


def row(name: str, project: dict[str, Any]) -> str:
    """One line of the table."""
    spans = [edge["node"] for edge in project["spans"]["edges"]]
    kinds = Counter(span["spanKind"] for span in spans)
    errors = sum(span["statusCode"] == "ERROR" for span in spans)
    events = [event["name"] for span in spans for event in span["events"]]
    talks = sum('"input_messages"' in span["attributes"] for span in spans if span["spanKind"] == "llm")
    tokens = f"{project['tokenCountPrompt']:.0f} + {project['tokenCountCompletion']:.0f}"
    kept = ", ".join(f"{kinds[kind]} {kind}" for kind in ("agent", "llm", "tool") if kinds[kind])
    other = len(spans) - sum(kinds[kind] for kind in ("agent", "llm", "tool"))
    sessions = len(project["sessions"]["edges"])
    cells = (name, project["traceCount"], kept, other, errors, tokens, talks, sessions, ", ".join(events) or "-")
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Send, wait until all is taken in, ask, and print a table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", default="http://127.0.0.1:6006", help="where Phoenix runs")
    given = parser.parse_args()
    mark = uuid4().hex[:6]
    names = {scenario.__name__.rstrip("_"): scenario for scenario in SCENARIOS}
    for name, scenario in names.items():
        send(given.base, f"{mark}-{name}", scenario)
    time.sleep(3)  # it takes spans in from a queue
    with urlopen(f"{given.base}/arize_phoenix_version") as answer:
        print(f"Phoenix {answer.read().decode()}\n")
    columns = ("scenario", "traces", "spans", "others", "errors", "tokens", "with messages", "sessions", "events")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name in names:
        print(row(name, told(given.base, f"{mark}-{name}")))


if __name__ == "__main__":
    main()
