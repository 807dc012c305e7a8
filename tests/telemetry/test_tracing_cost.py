"""What recording a run costs in things that can be counted: spans, records, function calls, scopes. Never in time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from opentelemetry.trace import get_current_span

import agentkit
from agentkit import Middleware, create_agent
from agentkit.middleware import Tracing
from agentkit.testing import EntryPoint, Request, ScriptedModel, ai, run, tool_call

PACKAGE = str(Path(agentkit.__file__).parent)


@tool
async def look(x: int = 0) -> str:
    """Look something up."""
    return "found"


def answer(request: Request) -> Any:
    """Three requests in a run: one call, two calls, the answer."""
    calls = {0: ["c1"], 1: ["c2", "c3"]}.get(request.turn, [])
    about: Any = {"usage": (10, 5), "model_name": "m", "finish_reason": "stop"}
    return ai("" if calls else "done", *[tool_call("look", {"x": 1}, call) for call in calls], **about)


def busy() -> ScriptedModel:
    """A model that answers so in each run."""
    return ScriptedModel(answer, repeat=True)


async def calls_of(agent: Any) -> int:
    """How many calls the code of agentkit takes and makes in a run, all of it in one thread."""
    total = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal total
        total += event in ("call", "c_call") and frame.f_code.co_filename.startswith(PACKAGE)

    await agent.ainvoke({"messages": "hi"})  # imports and caches
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        await agent.ainvoke({"messages": "hi"})
    finally:
        sys.setprofile(before)
    return total


async def test_a_run_makes_a_span_and_no_more_records_than_the_conventions_ask_for(recorder: Any) -> None:
    await recorder.create(busy(), [look]).ainvoke({"messages": "hi"})
    assert sorted(span.name.split()[0] for span in recorder.spans) == [
        *["chat"] * 3,
        *["execute_tool"] * 3,
        "invoke_agent",
    ]
    data = recorder.reader.get_metrics_data()
    points = [p for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics for p in m.data.data_points]
    records = sum(getattr(point, "count", 0) for point in points)
    assert records == 3 * 3 + 3 + 3  # duration and two sides of tokens; the tools' durations; the run's three


async def test_recording_takes_few_calls_of_our_own(recorder: Any) -> None:
    plain, traced = create_agent(busy(), [look]), recorder.create(busy(), [look])
    added = await calls_of(traced) - await calls_of(plain)
    assert added < 700  # 610 when this was written; the SDK's and LangChain's come on top


async def test_where_nothing_is_set_up_a_run_takes_hardly_a_call_more() -> None:
    plain, idle = create_agent(busy(), [look]), create_agent(busy(), [look], middleware=[Tracing()])
    assert await calls_of(idle) - await calls_of(plain) < 110  # 91 when this was written


class Scoped(Middleware):
    """Counts how often its scope is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = 0

    def around_run(self, run: Any) -> Iterator[None]:
        @contextmanager
        def scope() -> Iterator[None]:
            self.entered += 1
            yield

        run.scopes.append(scope)
        yield


def test_who_gets_no_chunks_enters_a_scope_once(entry: EntryPoint) -> None:
    scoped = Scoped()
    run(create_agent(ScriptedModel("done"), middleware=[scoped]), "hi", entry=entry)
    assert scoped.entered == 1 if entry.endswith("invoke") else scoped.entered > 2


def test_after_a_failed_run_the_applications_span_is_the_current_one(recorder: Any, entry: EntryPoint) -> None:
    tracer = recorder.tracers.get_tracer("application")
    agent = recorder.create(ScriptedModel(ValueError("no")))
    with tracer.start_as_current_span("mine") as mine:
        with pytest.raises(ValueError, match="no"):
            run(agent, "hi", entry=entry)
        assert get_current_span() is mine
    assert recorder.tree() == ["mine", "  invoke_agent error ValueError", "    chat ValueError"]


def test_runs_that_go_on_are_seen_while_they_do(recorder: Any, entry: EntryPoint) -> None:
    def active() -> dict[Any, Any]:
        points = recorder.points("agentkit.agent.active")
        return {point.attributes.get("gen_ai.agent.name"): point.value for point in points}

    seen: list[dict[Any, Any]] = []

    @tool
    def watch() -> str:
        """Look at the metrics."""
        seen.append(active())
        return "seen"

    def model() -> ScriptedModel:
        return ScriptedModel(ai("", tool_call("watch", {}, "c1")), "done")

    run(recorder.create(model(), [watch], name="one"), "hi", entry=entry)
    other = recorder.tracing(metrics_semconv="next")  # another set of instruments of the same provider
    run(create_agent(model(), [watch], middleware=[other], name="two"), "hi", entry=entry)
    assert (seen, active()) == ([{"one": 1}, {"one": 0, "two": 1}], {"one": 0, "two": 0})
