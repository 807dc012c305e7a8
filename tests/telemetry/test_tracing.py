"""`Tracing`: events, options, pauses across processes, other factories, and what must not break a run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from agentkit import Exit, Limits, create_agent, thread
from agentkit.errors import ConfigurationError
from agentkit.events import Event, emit, heard_by
from agentkit.middleware import Approval, Gates, Handoff, ModelRetry, StepBudget, ToolRetry, Tracing, decide
from agentkit.telemetry import DROP, Telemetry, instrument
from agentkit.telemetry.semconv import FORWARD, GenAI
from agentkit.testing import EntryPoint, MiddlewareContract, ScriptedModel, ai, run, tool_call
from agentkit.testing.semconv import registered
from agentkit.tools import tool as contracted

ROOT = Path(__file__).resolve().parents[2]


@tool
def look(text: str = "") -> str:
    """Look something up."""
    return "found"


@tool
def ask() -> str:
    """Ask a person."""
    return f"they said {interrupt('may I?')}"


def events(span: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(event.name, dict(event.attributes)) for event in span.events]


class TestContract(MiddlewareContract):
    """`Tracing` passes what any middleware has to, recording."""

    exempt: ClassVar[Mapping[str, str]] = {
        "test_two_instances_in_one_agent": "an agent is traced once: two ask for the same place, which is a named error"
    }

    def make(self) -> Any:
        return Tracing(Telemetry(tracer_provider=TracerProvider()))


# ---- events


def test_gates_and_limits_are_events_of_the_run(recorder: Any, entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", tool_call("look")), ai("", tool_call("look", id="c2")), "closing")
    run(recorder.create(model, [look], middleware=[Gates(StepBudget(1))]), "hi", entry=entry)
    (span,) = recorder.named("invoke_agent")
    told = dict(events(span))
    decision = told["agentkit.gate.decision"]
    assert decision["agentkit.gate.name"] == "Gates"
    assert (decision["agentkit.gate.decision"], decision["agentkit.gate.reason_code"]) == ("deny", "step_budget")
    assert told["agentkit.limit"]["agentkit.limit.name"] == "step_budget"
    assert (span.attributes["agentkit.outcome"], span.attributes["agentkit.outcome.reason"]) == ("limit", "step_budget")
    (point,) = recorder.points("agentkit.gate.decisions")
    assert point.value == 1
    assert recorder.findings() == []


def test_the_loops_own_limits_are_told_too(recorder: Any) -> None:
    model = ScriptedModel(ai("", tool_call("look")), repeat=True)
    run(recorder.create(model, [look], limits=Limits(model_calls=1)), "hi")
    (span,) = recorder.named("invoke_agent")
    assert span.attributes["agentkit.outcome"] == "limit"
    assert recorder.points("agentkit.limits")[0].value == 1


def test_an_approval_is_told_where_it_is_asked_and_where_it_is_given(recorder: Any, entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", tool_call("look")), "done")
    agent = recorder.create(model, [look], middleware=[Approval("look")], checkpointer=InMemorySaver())
    run(agent, "hi", thread("t"), entry=entry)
    answer = decide(agent.get_state(thread("t")), {"c1": {"type": "reject", "by": "ann", "message": "no"}})
    run(agent, answer, thread("t"), entry=entry)
    paused, resumed = recorder.named("invoke_agent")
    asked = dict(events(paused))
    assert asked["agentkit.gate.decision"]["agentkit.gate.decision"] == "require_approval"
    assert asked["agentkit.interrupt"]["agentkit.interrupt.kind"] == "approval"
    resume = dict(events(resumed))["agentkit.resume"]
    assert resume["agentkit.resume.wait_s"] >= 0
    assert (resume["agentkit.resume.approved"], resume["agentkit.resume.rejected"]) == (0, 1)
    first, second = recorder.named("execute_tool")
    assert first.attributes["agentkit.outcome"] == "interrupted"
    (given,) = [told for name, told in events(second) if name == "agentkit.gate.decision"]
    assert (given["agentkit.gate.decision"], given["agentkit.gate.reason_code"]) == ("deny", "reject")
    assert second.attributes["agentkit.outcome"] == "rejected"
    assert second.attributes["agentkit.tool.reexecuted"] is True
    assert "ann" not in second.to_json()
    assert recorder.findings() == []


def test_a_call_that_still_waits_runs_again_beside_the_one_that_is_answered(recorder: Any, entry: EntryPoint) -> None:
    calls = [tool_call("look", id=id) for id in ("c1", "c2")]
    agent = recorder.create(
        ScriptedModel(ai("", *calls), "done"), [look], middleware=[Approval("look")], checkpointer=InMemorySaver()
    )
    run(agent, "hi", thread("t"), entry=entry)
    answer = decide(agent.get_state(thread("t")), {"c1": {"type": "approve", "by": "ann"}})
    run(agent, answer, thread("t"), entry=entry)
    told = [
        (span.attributes["gen_ai.tool.call.id"], span.attributes.get("agentkit.outcome"), again)
        for span in recorder.named("execute_tool")
        for again in [span.attributes.get("agentkit.tool.reexecuted", False)]
    ]
    assert sorted(told[:2]) == [("c1", "interrupted", False), ("c2", "interrupted", False)]
    assert sorted(told[2:]) == [("c1", None, True), ("c2", "interrupted", True)]
    assert recorder.findings() == []


def test_a_retried_tool_has_one_span_with_its_retries(recorder: Any, entry: EntryPoint, clock: Any) -> None:
    runs: list[int] = []

    @contracted(effect="read")
    def flaky() -> str:
        """Fail twice."""
        runs.append(1)
        if len(runs) < 3:
            raise ConnectionError("secret")
        return "there"

    run(recorder.create(ScriptedModel(ai("", tool_call("flaky")), "done"), [flaky], middleware=[ToolRetry()]), "hi")
    (span,) = recorder.named("execute_tool")
    assert [name for name, _ in events(span)] == ["agentkit.retry", "agentkit.retry"]
    assert [told["agentkit.retry.attempt"] for _, told in events(span)] == [1, 2]
    assert "error.type" not in span.attributes
    assert sum(point.value for point in recorder.points("agentkit.retries")) == 2


def test_retries_and_a_fallback_are_requests_of_one_step(recorder: Any, entry: EntryPoint, clock: Any) -> None:
    other = ScriptedModel("from the other", metadata={"ls_model_name": "other"})
    model = ScriptedModel(TimeoutError("secret"), repeat=True, metadata={"ls_model_name": "first"})
    agent = recorder.create(model, middleware=[ModelRetry(attempts=2, fallbacks=[other])])
    assert run(agent, "hi", entry=entry).text == "from the other"
    asked = [(s.name, s.attributes["agentkit.step"], s.attributes["agentkit.attempt"]) for s in recorder.named("chat")]
    assert asked == [("chat first", 1, 1), ("chat first", 1, 2), ("chat other", 1, 3)]
    (span,) = recorder.named("invoke_agent")
    assert [name for name, _ in events(span)] == ["agentkit.retry", "agentkit.retry", "agentkit.fallback"]
    assert (span.attributes["agentkit.outcome"], span.attributes["agentkit.outcome.reason"]) == (
        "degraded",
        "fallback_model",
    )
    assert "error.type" not in span.attributes


def test_a_hand_over_is_the_outcome(recorder: Any) -> None:
    gates = Gates(StepBudget(1), on_trip=Handoff("the desk"))
    run(recorder.create(ScriptedModel(ai("", tool_call("look"))), [look], middleware=[gates]), "hi")
    (span,) = recorder.named("invoke_agent")
    assert "agentkit.handoff" in dict(events(span))


def test_a_users_own_event_lands_on_the_span_where_it_happened(recorder: Any, entry: EntryPoint) -> None:
    @tool
    def audit() -> str:
        """Audit."""
        emit("shop.audited", "the order was audited", items=3)
        return "ok"

    heard: list[Event] = []
    agent = recorder.create(ScriptedModel(ai("", tool_call("audit")), "done"), [audit])
    with heard_by(heard.append):
        run(agent, "hi", entry=entry)
    (span,) = recorder.named("execute_tool")
    assert events(span) == [("agentkit.shop.audited", {"agentkit.shop.items": 3})]
    assert [event.name for event in heard] == ["shop.audited"]


def test_who_listens_cannot_break_a_run(recorder: Any) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("listener")

    agent = recorder.create(ScriptedModel(ai("", tool_call("look"))), [look], middleware=[Gates(StepBudget(1))])
    with heard_by(broken):
        assert run(agent, "hi").text


def test_events_of_a_long_run_are_cut_off_before_the_sdk_drops_the_last(recorder: Any) -> None:
    def many(state: Any, ended: Exit) -> None:
        return None

    turns = [ai("", tool_call("look", id=f"c{turn}")) for turn in range(60)]
    agent = recorder.create(ScriptedModel(*turns, "done"), [look], middleware=[Gates(StepBudget(1), on_trip=many)])
    run(agent, "hi")
    (span,) = recorder.named("invoke_agent")
    assert len(span.events) == 100
    assert span.attributes["agentkit.events.dropped"] > 0


# ---- options


def test_content_is_redacted_before_it_is_written(recorder: Any) -> None:
    def redact(kind: str, value: Any, info: Any) -> Any:
        if kind == "tool_args":
            return DROP
        if kind == "input":
            raise RuntimeError("cannot say")
        return json.loads(json.dumps(value).replace("secret", "***"))

    recorder.options.update(capture_content=True, redact=redact)
    recorder.checker.captured = True
    model = ScriptedModel(ai("", tool_call("look", {"text": "secret"})), "the secret")
    run(recorder.create(model, [look], system_prompt="a secret prompt"), "hi secret")
    assert "secret" not in "".join(span.to_json() for span in recorder.spans)
    last = recorder.named("chat")[-1].attributes
    assert json.loads(last["gen_ai.output.messages"])[0]["parts"] == [{"type": "text", "content": "the ***"}]
    assert json.loads(last["gen_ai.system_instructions"]) == [{"type": "text", "content": "a *** prompt"}]
    assert "gen_ai.input.messages" not in last
    assert recorder.findings() == []


@pytest.mark.parametrize(
    "messages", ["hi", [("user", "hi")], [{"role": "user", "content": "hi"}]], ids=["text", "pair", "dict"]
)
def test_captured_the_runs_span_has_what_it_was_given_and_what_it_answered(recorder: Any, messages: Any) -> None:
    recorder.options["capture_content"] = True
    model = ScriptedModel(ai("", tool_call("look")), "done")
    recorder.create(model, [look], system_prompt="be kind").invoke({"messages": messages})
    told = recorder.named("invoke_agent")[0].attributes
    assert json.loads(told["gen_ai.input.messages"]) == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    (answer,) = json.loads(told["gen_ai.output.messages"])
    assert (answer["parts"], answer["finish_reason"]) == ([{"type": "text", "content": "done"}], "stop")


def test_long_content_is_cut_inside_the_structure(recorder: Any) -> None:
    recorder.options.update(capture_content=True, max_content_chars=10)
    run(recorder.create(ScriptedModel("x" * 100)), "hi")
    (message,) = json.loads(recorder.named("chat")[0].attributes["gen_ai.output.messages"])
    assert message["parts"][0]["content"] == "x" * 10 + "… (90 more characters)"


@pytest.mark.parametrize(
    ("value", "captured"), [("SPAN_ONLY", True), ("span_and_event", True), ("NO_CONTENT", False), ("nonsense", False)]
)
def test_the_environment_decides_on_content(value: str, captured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    assert Telemetry().captures() is captured
    assert Telemetry(capture_content=not captured).captures() is not captured


def test_an_exceptions_text_only_if_it_is_asked_for(recorder: Any) -> None:
    for options in ({}, {"exception_messages": True}):
        agent = create_agent(ScriptedModel(TimeoutError("secret")), middleware=[recorder.tracing(**options)])
        run(agent, "hi", catch=True)
    without, told = recorder.named("invoke_agent")
    assert (without.status.description, told.status.description) == (None, "secret")


def test_usage_under_another_name_for_viewers_that_add_up(recorder: Any) -> None:
    for usage in ("aggregated", "off"):
        run(
            create_agent(ScriptedModel(ai("hi", usage=(10, 5))), middleware=[recorder.tracing(agent_usage=usage)]), "hi"
        )
    aggregated, off = recorder.named("invoke_agent")
    assert aggregated.attributes["agentkit.aggregated_usage.input_tokens"] == 10
    assert not [key for key in (*off.attributes, *aggregated.attributes) if key.startswith("gen_ai.usage")]


def test_metrics_of_the_next_conventions(recorder: Any) -> None:
    recorder.options["metrics_semconv"] = "both"
    reply = ai("hi", usage=(10, 5))
    reply.usage_metadata = {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 15,
        "input_token_details": {"cache_read": 4, "cache_creation": 3},
        "output_token_details": {"reasoning": 2},
    }
    run(recorder.create(ScriptedModel(reply)), "hi")
    usage = {
        name: recorder.points(f"gen_ai.client.inference.usage.{name}")[0].value
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_read.input_tokens",
            "cache_write.input_tokens",
            "reasoning.output_tokens",
        )
    }
    assert list(usage.values()) == [10, 5, 4, 3, 2]
    assert recorder.points("gen_ai.client.inference.operation.output_tokens")[0].sum == 5
    assert recorder.points("gen_ai.client.token.usage")
    assert recorder.findings() == []


def test_an_option_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="agent_usage"):
        Telemetry(agent_usage="sum")  # type: ignore[arg-type]


def test_without_sampling_there_are_metrics_and_links_but_no_spans(recorder: Any) -> None:
    recorder.options["tracer_provider"] = TracerProvider(sampler=ALWAYS_OFF)
    agent = recorder.create(ScriptedModel(ai("", tool_call("ask")), "done"), [ask], checkpointer=InMemorySaver())
    run(agent, "hi", thread("t"))
    assert recorder.spans == []
    assert recorder.points("gen_ai.invoke_agent.duration")
    recorder.options["tracer_provider"] = recorder.tracers
    again = recorder.create(ScriptedModel("done"), [ask], checkpointer=agent.checkpointer)
    run(again, Command(resume="yes"), thread("t"))
    assert len(recorder.named("invoke_agent")[0].links) == 1


def test_the_graph_is_the_same_with_and_without(recorder: Any) -> None:
    plain = create_agent(ScriptedModel("x"), [look])
    assert set(recorder.create(ScriptedModel("x"), [look]).nodes) == set(plain.nodes)


def test_a_failing_exporter_or_reporter_does_not_fail_the_run(
    recorder: Any, monkeypatch: pytest.MonkeyPatch, entry: EntryPoint
) -> None:
    def broken(*args: Any) -> Any:
        raise RuntimeError("telemetry")

    monkeypatch.setattr("agentkit.telemetry.attributes.model_end", broken)
    monkeypatch.setattr("agentkit.telemetry.attributes.tool_start", broken)
    model = ScriptedModel(ai("", tool_call("look")), "done")
    assert run(recorder.create(model, [look]), "hi", entry=entry).text == "done"
    counted = {point.attributes["agentkit.site"]: point.value for point in recorder.points("agentkit.telemetry.errors")}
    assert counted == {"Record.model_ended": 2, "Record.tool_started": 1}


def test_where_nothing_is_set_up_nothing_happens() -> None:
    agent = create_agent(ScriptedModel(ai("", tool_call("look")), "done"), [look], middleware=[Tracing()])
    assert run(agent, "hi").text == "done"


# ---- pauses

_RESUMES = """
import sys
from agentkit import create_agent, thread
from agentkit.middleware import Tracing
from agentkit.telemetry import console
from agentkit.testing import ScriptedModel
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt

@tool
def ask() -> str:
    "Ask."
    return f"they said {interrupt('may I?')}"

console.show(console.FileExporter(sys.argv[2]))
with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    agent = create_agent(ScriptedModel("done"), [ask], middleware=[Tracing()], checkpointer=saver, name="a")
    agent.invoke(Command(resume="yes"), thread("t"))
"""


def test_a_run_that_is_resumed_in_another_process_links_back(recorder: Any, tmp_path: Path) -> None:
    database, file = str(tmp_path / "agent.db"), tmp_path / "run.jsonl"
    with SqliteSaver.from_conn_string(database) as saver:
        run(recorder.create(ScriptedModel(ai("", tool_call("ask"))), [ask], checkpointer=saver), "hi", thread("t"))
    command = [sys.executable, "-c", _RESUMES, database, str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (paused,) = recorder.named("invoke_agent")
    (resumed,) = [span for span in map(json.loads, file.read_text().splitlines()) if span["parent"] is None]
    assert resumed["links"] == [f"{paused.get_span_context().trace_id:032x}"]
    assert resumed["attributes"]["agentkit.run.id"] == paused.attributes["agentkit.run.id"]
    assert resumed["attributes"]["agentkit.run.segment"] == 2


def test_a_resumed_run_can_go_on_in_the_paused_ones_trace(recorder: Any, entry: EntryPoint) -> None:
    recorder.options["resume"] = "parent"
    model = ScriptedModel(ai("", tool_call("ask")), "done")
    agent = recorder.create(model, [ask], checkpointer=InMemorySaver())
    run(agent, "hi", thread("t"), entry=entry)
    run(agent, Command(resume="yes"), thread("t"), entry=entry)
    assert len({span.get_span_context().trace_id for span in recorder.spans}) == 1
    assert not recorder.named("invoke_agent")[1].links


def test_what_is_stored_are_ids_only(recorder: Any) -> None:
    saver = InMemorySaver()
    model = ScriptedModel(ai("", tool_call("ask")))
    run(recorder.create(model, [ask], checkpointer=saver), "hi canary", thread("t"))
    kept = [dict(saved.metadata) for saved in saver.list(thread("t"))]
    assert {"traceparent", "agentkit.run_id", "agentkit.run_segment"} <= kept[0].keys()
    assert "canary" not in str(kept)


# ---- other factories


def test_under_langchains_factory_requests_and_calls_are_recorded(recorder: Any, entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", tool_call("look")), "done")
    agent: Any = langchain_create_agent(model, [look], middleware=[recorder.tracing()])
    run(agent, "hi", entry=entry)
    assert [span.name for span in recorder.spans] == ["chat", "execute_tool look", "chat"]
    assert recorder.findings() == []


def test_instrumented_the_run_is_recorded_too(recorder: Any, entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", tool_call("look")), TimeoutError("x"), "done")
    tracing = recorder.tracing()
    theirs: Any = langchain_create_agent(model, [look], middleware=[tracing, ModelRetry()], name="theirs")
    run(instrument(theirs, tracing), "hi", entry=entry)
    assert recorder.tree() == [
        "invoke_agent theirs",
        "  chat",
        "  execute_tool look",
        "  chat TimeoutError",
        "  chat",
    ]
    assert recorder.findings() == []


def test_any_graph_can_be_instrumented_and_what_calls_models_in_it_is_recorded(recorder: Any) -> None:
    model = ScriptedModel("done")

    def node(state: dict[str, Any]) -> dict[str, Any]:
        return {"said": model.invoke("hi").text}

    builder: Any = StateGraph(dict)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    instrument(builder.compile(name="mine"), recorder.tracing()).invoke({"a": 1})
    assert recorder.tree() == ["invoke_agent mine", "  chat"]


def test_our_own_agents_take_it_as_middleware(recorder: Any) -> None:
    with pytest.raises(ConfigurationError, match="into its `middleware`"):
        instrument(create_agent(ScriptedModel("x")), recorder.tracing())


# ---- names


def test_the_names_are_those_of_the_installed_conventions() -> None:
    ours = {value for name, value in vars(GenAI).items() if not name.startswith("_") and value.startswith("gen_ai.")}
    assert ours <= registered()


def test_names_that_were_ahead_are_not_kept_longer_than_needed() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    assert not set(FORWARD) & set(map(str, vars(gen_ai_attributes).values()))


def test_the_current_span_of_the_application_is_the_parent(recorder: Any) -> None:
    with recorder.tracers.get_tracer("app").start_as_current_span("request"):
        run(recorder.create(ScriptedModel("done")), "hi")
    assert recorder.tree()[:2] == ["request", "  invoke_agent"]
    assert not trace.get_current_span().get_span_context().is_valid
