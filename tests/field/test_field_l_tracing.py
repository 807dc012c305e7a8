"""Field reports, family L: tracing; and the context of sync tools in async runs (NEU-1357)."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import Any

import pytest
import structlog
from langchain_core.messages import AIMessageChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from opentelemetry import context as otel
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind, StatusCode

from agentkit import as_tool, create_agent, thread
from agentkit.middleware import Approval, RunLog, Tracing, decide
from agentkit.telemetry import Telemetry
from agentkit.testing import EntryPoint, ScriptedModel, ai, arun, run, tool_call
from agentkit.testing.semconv import SpanChecker


class Desk:
    """An application that records."""

    def __init__(self) -> None:
        self.checker = SpanChecker()
        self.reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(self.checker)
        self.meters = MeterProvider([self.reader])
        self.tracer = self.tracers.get_tracer("application")

    def tracing(self, **options: Any) -> Tracing:
        return Tracing(Telemetry(tracer_provider=self.tracers, meter_provider=self.meters, **options))

    def named(self, prefix: str) -> list[Any]:
        found = [span for span in self.checker.spans if span.name.startswith(prefix)]
        return sorted(found, key=lambda span: span.start_time)

    def parent_of(self, span: Any) -> str | None:
        spans: list[Any] = self.checker.spans
        by_id = {one.get_span_context().span_id: one for one in spans}
        return by_id[span.parent.span_id].name if span.parent else None

    def count(self, name: str) -> float:
        data: Any = self.reader.get_metrics_data()
        found = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data else []
        return sum(float(point.value) for metric in found if metric.name == name for point in metric.data.data_points)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@tool
def look(text: str = "") -> str:
    """Look something up."""
    return "found"


def helper(desk: Desk) -> Any:
    model = ScriptedModel(ai("", tool_call("look", id="h1")), "inner done", ai("", tool_call("look", id="h1")), "again")
    return as_tool(create_agent(model, [look], middleware=[desk.tracing()], name="helper"), description="Helps.")


def test_otg_513(desk: Desk, entry: EntryPoint) -> None:
    """One run is one trace, with the same tree on every entry point."""
    calls = [tool_call("look", id="c1"), tool_call("helper", {"request": "x"}, "c2")]
    model = ScriptedModel(ai("", *calls), "done")
    agent = create_agent(model, [look, helper(desk)], middleware=[desk.tracing()], name="main")
    run(agent, "hi", entry=entry)
    assert [span.name for span in desk.checker.spans if span.parent is None] == ["invoke_agent main"]
    edges = sorted((span.name, str(desk.parent_of(span))) for span in desk.checker.spans)
    assert edges == [
        ("chat", "invoke_agent helper"),
        ("chat", "invoke_agent helper"),
        ("chat", "invoke_agent main"),
        ("chat", "invoke_agent main"),
        ("execute_tool helper", "invoke_agent main"),
        ("execute_tool look", "invoke_agent helper"),
        ("execute_tool look", "invoke_agent main"),
        ("invoke_agent helper", "execute_tool helper"),
        ("invoke_agent main", "None"),
    ]


async def test_otg_677(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is attached in one task and detached in another, and nothing stays current."""
    caplog.set_level(logging.DEBUG, "opentelemetry")
    before = otel.get_current()

    async def slowly(request: Any) -> Any:
        await asyncio.sleep(30)

    def agent(*steps: Any) -> Any:
        return create_agent(ScriptedModel(*steps), [look], middleware=[desk.tracing()])

    call = ai("", tool_call("look"))
    await arun(agent(call, "done"), "hi")
    await arun(agent(call, "done"), "hi", entry="astream")
    async with aclosing(agent(call, "done").astream({"messages": "hi"}, stream_mode="updates")) as chunks:
        async for _ in chunks:
            break
    left = agent(call, "done").astream({"messages": "hi"}, stream_mode="updates")
    await asyncio.create_task(anext(left))  # each step of the stream in a task of its own
    await asyncio.create_task(left.aclose())
    task = asyncio.create_task(agent(call, slowly).ainvoke({"messages": "hi"}))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry.context")]
    assert not trace.get_current_span().get_span_context().is_valid
    assert otel.get_current() == before
    assert len(desk.named("invoke_agent")) == 5


def test_dd_16614(desk: Desk, entry: EntryPoint) -> None:
    """A pause for a person is no error, and the resumed run links to the paused one."""
    model = ScriptedModel(ai("", tool_call("look")), "done")
    middleware = [desk.tracing(), Approval("look")]
    agent = create_agent(model, [look], middleware=middleware, checkpointer=InMemorySaver())
    run(agent, "hi", thread("t"), entry=entry)
    answer = decide(agent.get_state(thread("t")), {"c1": {"type": "approve", "by": "ann"}})
    run(agent, answer, thread("t"), entry=entry)
    assert not [span.name for span in desk.checker.spans if span.status.status_code is StatusCode.ERROR]
    paused, resumed = desk.named("invoke_agent")
    assert (paused.attributes["agentkit.outcome"], resumed.attributes["agentkit.outcome"]) == ("interrupted", "success")
    (link,) = resumed.links
    assert link.context.span_id == paused.get_span_context().span_id
    assert not paused.links
    assert paused.attributes["agentkit.run.id"] == resumed.attributes["agentkit.run.id"]


@pytest.mark.parametrize("heeds", [True, False], ids=["heeds the others", "does not"])
def test_ddjs_8936(desk: Desk, call: EntryPoint, heeds: bool) -> None:
    """Beside a provider's own instrumentation a request is counted once: by its suppression, or by one switch."""

    class Instrumented(ScriptedModel):
        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            if heeds and otel.get_value("suppress_language_model_instrumentation"):
                return super()._generate(*args, **kwargs)
            with desk.tracer.start_as_current_span("chat theirs", kind=SpanKind.CLIENT) as span:
                span.set_attribute("gen_ai.usage.input_tokens", 10)
                return super()._generate(*args, **kwargs)

        async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
            return self._generate(args[0], **kwargs)

    tracing = desk.tracing() if heeds else desk.tracing(model_spans=False)
    run(
        create_agent(Instrumented(steps=[ai("done", usage=(10, 5))], disable_streaming=True), middleware=[tracing]),
        "hi",
        entry=call,
    )
    (counted,) = [span for span in desk.named("chat") if "gen_ai.usage.input_tokens" in span.attributes]
    assert counted.attributes["gen_ai.usage.input_tokens"] == 10
    assert desk.parent_of(counted) == "invoke_agent"
    assert desk.named("invoke_agent")[0].attributes["gen_ai.usage.input_tokens"] == 10


@pytest.mark.parametrize("entry", ["stream", "astream"])
def test_oi_637(desk: Desk, entry: EntryPoint) -> None:
    """Tokens of a streamed reply come from its last chunk; else there are none, and that is counted."""
    chunks = [AIMessageChunk(content="one "), AIMessageChunk(content="two")]
    told = ai("", usage=(10, 5)).usage_metadata
    model = ScriptedModel([*chunks, AIMessageChunk(content="", usage_metadata=told)], chunks)
    agent = create_agent(model, middleware=[desk.tracing()])
    run(agent, "hi", entry=entry)
    run(agent, "hi", entry=entry)
    with_usage, without = desk.named("chat")
    assert with_usage.attributes["gen_ai.usage.input_tokens"] == 10
    assert with_usage.attributes["gen_ai.response.time_to_first_chunk"] > 0
    assert not [key for key in without.attributes if "usage" in key]
    assert desk.count("agentkit.usage.missing") == 1


def test_olm_2271(desk: Desk, entry: EntryPoint) -> None:
    """A request that a tool makes itself is recorded under the tool: only the agent's own is suppressed."""

    @tool
    def judge() -> str:
        """Ask another model."""
        if otel.get_value("suppress_language_model_instrumentation"):
            return "suppressed"
        with desk.tracer.start_as_current_span("chat judge"):
            return "asked"

    agent = create_agent(ScriptedModel(ai("", tool_call("judge")), "done"), [judge], middleware=[desk.tracing()])
    run(agent, "hi", entry=entry)
    (asked,) = desk.named("chat judge")
    assert desk.parent_of(asked) == "execute_tool judge"


def test_otg_578(desk: Desk, entry: EntryPoint) -> None:
    """An agent has one span per run, under its own name, however many turns it takes."""
    turns = [ai("", tool_call("look", id=f"c{turn}")) for turn in range(10)]
    model = ScriptedModel(ai("", tool_call("helper", {"request": "x"})), *turns, "done")
    agent = create_agent(model, [look, helper(desk)], middleware=[desk.tracing()], name="main")
    run(agent, "hi", entry=entry)
    agents = desk.named("invoke_agent")
    assert [(span.name, desk.parent_of(span)) for span in agents] == [
        ("invoke_agent main", None),
        ("invoke_agent helper", "execute_tool helper"),
    ]
    assert [span.attributes["gen_ai.agent.name"] for span in agents] == ["main", "helper"]


async def test_neu_1357(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """A sync tool of an async run has the run's span as its parent, and the application's log context."""
    caplog.set_level(logging.INFO)
    log = structlog.wrap_logger(
        logging.getLogger("shop"),
        processors=[structlog.contextvars.merge_contextvars, structlog.stdlib.render_to_log_kwargs],
        wrapper_class=structlog.stdlib.BoundLogger,
    )

    @tool
    def charge() -> str:
        """Charge."""
        with desk.tracer.start_as_current_span("payment"):
            log.info("charged")
        return "ok"

    model = ScriptedModel(ai("", tool_call("charge")), "done")
    agent = create_agent(model, [charge], middleware=[desk.tracing(), RunLog()], name="main")
    with structlog.contextvars.bound_contextvars(order="o-1"):
        await arun(agent, "hi")
    (payment,) = desk.named("payment")
    assert desk.parent_of(payment) == "execute_tool charge"
    (record,) = [record for record in caplog.records if record.name == "shop"]
    run_id = desk.named("invoke_agent")[0].attributes["agentkit.run.id"]
    assert (vars(record)["order"], vars(record)["agent"], vars(record)["run_id"]) == ("o-1", "main", run_id)
