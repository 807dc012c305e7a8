"""`RunLog` and `agentkit.logging`: the events, their levels and fields, and what an application sees of them."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import structlog
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agentkit import as_tool, create_agent, thread
from agentkit.errors import MissingDependency
from agentkit.logging import configure
from agentkit.middleware import Gates, ModelRetry, RunLog, StepBudget, Tracing
from agentkit.testing import EntryPoint, MiddlewareContract, ScriptedModel, ai, run, tool_call

ROOT = Path(__file__).resolve().parents[2]
CANARY = "canary-7f3a"


@tool
def look(text: str = "") -> str:
    """Look something up."""
    return f"found {CANARY}"


@tool
def ask() -> str:
    """Ask a person."""
    return f"they said {interrupt('may I?')}"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "agentkit")
    return caplog


def told(log: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in log.records if record.name == "agentkit"]


def fields(log: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    return [vars(record) for record in log.records if record.getMessage() == event]


class TestContract(MiddlewareContract):
    """`RunLog` passes what any middleware has to."""

    def make(self) -> Any:
        return RunLog()


def test_a_run_is_told_step_by_step(log: pytest.LogCaptureFixture, entry: EntryPoint) -> None:
    model = ScriptedModel(ai(CANARY, tool_call("look", {"text": CANARY}), usage=(10, 5)), ai("done", usage=(20, 5)))
    run(create_agent(model, [look], middleware=[Tracing(), RunLog()], name="main"), f"hi {CANARY}", entry=entry)
    assert told(log) == [
        ("INFO", "agent.run.started"),
        ("DEBUG", "model.call.started"),
        ("DEBUG", "model.call.completed"),
        ("DEBUG", "tool.call.started"),
        ("DEBUG", "tool.call.completed"),
        ("DEBUG", "model.call.started"),
        ("DEBUG", "model.call.completed"),
        ("INFO", "agent.run.completed"),
    ]
    (ended,) = fields(log, "agent.run.completed")
    assert (ended["outcome"], ended["steps"], ended["model_calls"], ended["tool_calls"]) == ("success", 2, 2, 1)
    assert (ended["input_tokens"], ended["output_tokens"]) == (30, 10)
    assert len({vars(record)["run_id"] for record in log.records}) == 1
    assert CANARY not in str([vars(record) for record in log.records])


def test_content_only_if_it_is_asked_for(log: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(ai("", tool_call("look", {"text": CANARY})), "done")
    run(create_agent(model, [look], middleware=[RunLog(content=True)]), "hi")
    assert CANARY in fields(log, "tool.call.started")[0]["content_arguments"]
    assert CANARY in fields(log, "tool.call.completed")[0]["content_result"]


def test_a_pause_and_its_resumption(log: pytest.LogCaptureFixture, entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", tool_call("ask")), "done")
    agent = create_agent(model, [ask], middleware=[RunLog()], checkpointer=InMemorySaver())
    run(agent, "hi", thread("t-1"), entry=entry)
    run(agent, Command(resume="yes"), thread("t-1"), entry=entry)
    (paused,), (resumed,) = fields(log, "agent.run.interrupted"), fields(log, "agent.run.resumed")
    assert (paused["kind"], paused["interrupt_count"], paused["thread_id"]) == ("input", 1, "t-1")
    assert resumed["wait_s"] >= 0
    assert resumed["run_id"] == paused["run_id"]


def test_a_failure_is_an_error_once_at_the_outermost_agent(log: pytest.LogCaptureFixture) -> None:
    inner = create_agent(ScriptedModel(TimeoutError(CANARY)), middleware=[RunLog()], name="inner")
    model = ScriptedModel(ai("", tool_call("inner", {"request": "x"})))
    outer = create_agent(model, [as_tool(inner, description="d")], middleware=[RunLog()], name="outer")
    run(outer, "hi", catch=True)
    failed = fields(log, "agent.run.failed")
    assert [(each["agent"], each["levelname"], each["error_type"]) for each in failed] == [
        ("inner", "DEBUG", "TimeoutError"),
        ("outer", "ERROR", "TimeoutError"),
    ]
    assert fields(log, "tool.call.failed")[0]["levelname"] == "WARNING"
    assert CANARY not in str([vars(record) for record in log.records])


def test_what_middleware_reports_is_in_the_same_log_once(log: pytest.LogCaptureFixture, clock: Any) -> None:
    model = ScriptedModel(TimeoutError("x"), ai("", tool_call("look")), "closing")
    agent = create_agent(model, [look], middleware=[RunLog(), Gates(StepBudget(1)), ModelRetry()], name="main")
    run(agent, "hi")
    (retry,), (gate,) = fields(log, "model.retry"), fields(log, "gate.decision")
    assert (retry["levelname"], retry["error_type"], retry["attempt"]) == ("WARNING", "TimeoutError", 1)
    assert (gate["agent"], gate["reason_code"]) == ("main", "step_budget")
    assert ("WARNING", "agent.limit.reached") in told(log)
    assert fields(log, "agent.run.completed")[0]["outcome"] == "limit"


def test_a_stream_that_is_left(log: pytest.LogCaptureFixture) -> None:
    agent = create_agent(ScriptedModel(ai("", tool_call("look")), "done"), [look], middleware=[RunLog()])
    before = structlog.contextvars.get_contextvars()
    stream: Any = agent.stream({"messages": "hi"}, stream_mode="updates")
    with closing(stream) as chunks:
        next(chunks)
        assert structlog.contextvars.get_contextvars() == before
    assert fields(log, "agent.run.cancelled")[0]["reason"] == "stream_left"
    assert structlog.contextvars.get_contextvars() == before


async def test_a_cancelled_run(log: pytest.LogCaptureFixture) -> None:
    async def slowly(request: Any) -> Any:
        await asyncio.sleep(30)

    agent = create_agent(ScriptedModel(slowly), middleware=[RunLog()])
    task = asyncio.create_task(agent.ainvoke({"messages": "hi"}))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert fields(log, "agent.run.cancelled")[0]["reason"] == "cancelled"


@pytest.fixture
def application() -> Iterator[None]:
    """Logging is set up by the test, and afterwards as it was."""
    root = logging.getLogger()
    kept, level, options = root.handlers[:], root.level, structlog.get_config()
    yield
    root.handlers[:], root.level = kept, level
    structlog.configure(**options)


def test_an_application_gets_one_form_for_all_records(application: None, capsys: pytest.CaptureFixture[str]) -> None:
    configure(json=True, level="INFO")
    logging.getLogger("library").warning("plain", extra={"answer": 42})
    structlog.get_logger("shop").info("sold", price=3)
    run(create_agent(ScriptedModel("done"), middleware=[RunLog()], name="main"), "hi", thread("t"))
    try:
        raise ValueError("in a handler")
    except ValueError:
        secret = CANARY
        logging.getLogger("library").exception("failed")
    assert secret
    err = capsys.readouterr().err
    lines = {line["event"]: line for line in map(json.loads, err.splitlines())}
    assert (lines["plain"]["answer"], lines["plain"]["level"], lines["sold"]["price"]) == (42, "warning", 3)
    assert (lines["agent.run.completed"]["agent"], lines["agent.run.completed"]["thread_id"]) == ("main", "t")
    assert lines["failed"]["exception"][0]["exc_type"] == "ValueError"
    assert CANARY not in err


def test_lines_for_people(application: None, capsys: pytest.CaptureFixture[str]) -> None:
    configure(json=False)
    run(create_agent(ScriptedModel("done"), middleware=[RunLog()], name="main"), "hi")
    assert "agent.run.completed" in capsys.readouterr().err


def test_an_import_configures_nothing_and_an_unconfigured_application_hears_nothing() -> None:
    script = """
import logging, structlog
before = structlog.is_configured(), logging.getLogger().handlers[:]
from agentkit import create_agent
from agentkit.middleware import Gates, RunLog, StepBudget
from agentkit.testing import ScriptedModel, ai, tool_call
def look() -> str:
    "Look."
model = ScriptedModel(ai("", tool_call("look")), "done")
create_agent(model, [look], middleware=[RunLog(), Gates(StepBudget(1))]).invoke({"messages": "hi"})
assert (structlog.is_configured(), logging.getLogger().handlers[:]) == before
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_structlog_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "structlog", None)
    with pytest.raises(MissingDependency, match=r"agentkit\[otel\]"):
        RunLog()
