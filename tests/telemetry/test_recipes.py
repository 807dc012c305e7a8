"""The recipes of the guide, as they stand there, against a local receiver of OTLP that wants what each vendor wants."""

from __future__ import annotations

import base64
import gzip
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from agentkit.middleware import Tracing
from agentkit.telemetry import Telemetry
from bench.tracing_scenarios import CANARY, interrupted, sub_agent

GUIDE: Final = (Path(__file__).parents[2] / "docs" / "guide" / "observability.md").read_text(encoding="utf-8")
BASIC: Final = "Basic " + base64.b64encode(b"public:secret").decode()

WANTED: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "an OTLP collector": ("/v1/traces", {}),
    "Phoenix": ("/v1/traces", {}),
    "Langfuse": ("/api/public/otel/v1/traces", {"authorization": BASIC}),
    "LangSmith": ("/otel/v1/traces", {"x-api-key": "key", "langsmith-project": "shop"}),
    "Datadog": ("/v1/traces", {}),
}
"""Where each vendor takes spans, and what it asks for, after its documentation."""


class Receiver:
    """Takes OTLP over HTTP, and refuses what lacks the headers."""

    def __init__(self) -> None:
        self.wanted: dict[str, str] = {}
        self.taken: list[tuple[str, bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
                welcome = all(self.headers.get(name) == value for name, value in receiver.wanted.items())
                if welcome and self.headers["content-type"] == "application/x-protobuf":
                    receiver.taken.append((self.path, body))
                self.send_response(200 if welcome else 401)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def at(self, path: str) -> list[bytes]:
        return [body for where, body in self.taken if where == path]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the environment that the tests run in."""
    for signal in ("", "TRACES_", "METRICS_", "LOGS_"):
        for name in ("ENDPOINT", "HEADERS", "PROTOCOL", "COMPRESSION"):
            monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{signal}{name}", raising=False)


def rows() -> dict[str, dict[str, str]]:
    """The environment of each recipe of the guide."""
    table = GUIDE.split("| backend | environment |")[1].split("\n\n")[0]
    cells = [line.split("|") for line in table.splitlines()[2:]]
    return {
        cell[1].strip(): dict(text.split("=", 1) for text in re.findall(r"`(OTEL_\w+=[^`]*)`", cell[2]))
        for cell in cells
    }


def setup(name: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Run a block of code of the guide; the providers that it makes global are kept, since that can be done once."""
    made: dict[str, Any] = {}
    monkeypatch.setattr("opentelemetry.trace.set_tracer_provider", lambda provider: made.update(tracer=provider))
    monkeypatch.setattr("opentelemetry.metrics.set_meter_provider", lambda provider: made.update(meter=provider))
    monkeypatch.setattr("opentelemetry._logs.set_logger_provider", lambda provider: made.update(logger=provider))
    (block,) = [code for code in re.findall(r"```py\n(.*?)```", GUIDE, re.S) if name in code]
    exec(compile(block, "observability.md", "exec"), {})
    return made.__getitem__


def create_with(telemetry: Telemetry) -> Callable[..., Any]:
    from agentkit import create_agent

    def create(model: Any, tools: Any = (), *, middleware: Any = (), **more: Any) -> Any:
        return create_agent(model, tools, middleware=[Tracing(telemetry), *middleware], **more)

    return create


def test_the_guide_has_a_recipe_for_each() -> None:
    assert rows().keys() == WANTED.keys()


@pytest.mark.parametrize("backend", WANTED)
def test_spans_arrive_where_the_backend_takes_them(
    backend: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, receiver.wanted = WANTED[backend]
    for name, value in rows()[backend].items():
        local = re.sub(r"https?://[^/,]+", receiver.address, value)
        monkeypatch.setenv(name, local.replace("BASE64", base64.b64encode(b"public:secret").decode()))
    provider = setup("OTLPSpanExporter", monkeypatch)("tracer")
    interrupted(create_with(Telemetry(tracer_provider=provider)))
    provider.shutdown()
    arrived = [
        span
        for body in receiver.at(path)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    names = sorted(span.name for span in arrived)
    tools = ["execute_tool ask", "execute_tool ask", "execute_tool slow_b"]
    assert names == ["chat fake-1", "chat fake-1", *tools, "invoke_agent root", "invoke_agent root"]
    resumed = max((span for span in arrived if span.name == "invoke_agent root"), key=lambda s: s.start_time_unix_nano)
    (link,) = resumed.links
    assert link.span_id in {span.span_id for span in arrived if span.name == "invoke_agent root"}
    assert CANARY.encode() not in b"".join(body for _, body in receiver.taken)


def test_without_its_headers_a_backend_gets_nothing(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    path, receiver.wanted = WANTED["Langfuse"]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{receiver.address}/api/public/otel")
    provider = setup("OTLPSpanExporter", monkeypatch)("tracer")
    sub_agent(create_with(Telemetry(tracer_provider=provider)))
    provider.shutdown()
    assert receiver.at(path) == []


def test_metrics_and_events_arrive_too(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address)
    made = setup("OTLPMetricExporter", monkeypatch)
    sub_agent(create_with(Telemetry(meter_provider=made("meter"), logger_provider=made("logger"), emit_events=True)))
    made("meter").shutdown()
    made("logger").shutdown()
    metrics = {
        metric.name
        for body in receiver.at("/v1/metrics")
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {"gen_ai.client.operation.duration", "gen_ai.client.token.usage", "gen_ai.invoke_agent.duration"} <= metrics
    events = [
        record.event_name
        for body in receiver.at("/v1/logs")
        for resource in ExportLogsServiceRequest.FromString(body).resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]
    assert events == ["gen_ai.client.inference.operation.details"] * 4
    assert CANARY.encode() not in b"".join(body for _, body in receiver.taken)
