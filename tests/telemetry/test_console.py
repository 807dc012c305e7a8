"""Runs in the terminal, in a file, and as a page."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from opentelemetry.sdk.trace import TracerProvider
from typer.testing import CliRunner

from agentkit import as_tool, create_agent
from agentkit.cli.app import app
from agentkit.errors import UnreadableTrace
from agentkit.middleware import Gates, StepBudget, Tracing
from agentkit.telemetry import Telemetry, console
from agentkit.telemetry.records import read, roots
from agentkit.telemetry.waterfall import page
from agentkit.testing import ScriptedModel, ai, run, tool_call


@tool
def look(text: str = "") -> str:
    """Look something up."""
    return "found"


def recorded(*exporters: Any) -> None:
    """A run with a sub-agent, a gate that trips and a failing tool, exported."""
    provider = console.show(*exporters, provider=TracerProvider())

    def tracing() -> Tracing:
        return Tracing(Telemetry(tracer_provider=provider))

    inner = ScriptedModel(ai("", tool_call("look"), usage=(5, 2)), ai("inner", usage=(3, 1)))
    helper = create_agent(inner, [look], middleware=[tracing()], name="helper")
    model = ScriptedModel(
        ai("", tool_call("helper", {"request": "x"}), usage=(10, 5)),
        ai("", tool_call("nowhere", {"<b>": 1}, "c2"), usage=(10, 5)),
        ai("closing", usage=(20, 5)),
    )
    tools = [as_tool(helper, description="Helps.")]
    agent = create_agent(model, tools, middleware=[tracing(), Gates(StepBudget(2))], name="<main> & co")
    run(agent, "hi")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    recorded(console.FileExporter(path))
    return path


def without_times(text: str) -> list[str]:
    return [re.sub(r"  [\d.]+ m?s", "", line).rstrip() for line in text.splitlines()]


TREE = """\
invoke_agent <main> & co  48 → 18 tokens  limit (step_budget)
├─ chat  10 → 5 tokens
├─ execute_tool helper  8 → 3 tokens
│  └─ invoke_agent helper  8 → 3 tokens
│     ├─ chat  5 → 2 tokens
│     ├─ execute_tool look
│     └─ chat  3 → 1 tokens
├─ chat  10 → 5 tokens
├─ * gate.decision Gates deny step_budget
├─ chat  20 → 5 tokens
└─ * limit step_budget"""


def test_a_run_is_printed_as_a_tree_when_it_has_ended() -> None:
    out = io.StringIO()
    recorded(console.TreeConsoleExporter(out))
    assert without_times(out.getvalue()) == TREE.splitlines()


def test_a_file_holds_a_span_per_line(file: Path) -> None:
    spans = read(file)
    assert len(spans) == len(file.read_text().splitlines()) == 9
    (root,) = roots(spans)
    assert root.name == "invoke_agent <main> & co"


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_is_whole_and_needs_nothing_else(file: Path) -> None:
    text = page(read(file), "a <title>")
    made = Page(text)
    assert made.open == []
    tags = [tag for tag, _ in made.tags]
    assert tags.count("details") == 9
    assert not {"script", "link", "img", "iframe"} & set(tags)
    assert not re.findall(r"https?://|url\(", text)
    assert "invoke_agent &lt;main&gt; &amp; co" in text
    assert "<main>" not in text


def test_bars_lie_inside_of_their_run(file: Path) -> None:
    marked = [told for tag, told in Page(page(read(file))).tags if (told.get("class") or "").startswith("bar")]
    styles = [told["style"] or "" for told in marked]
    bars = [tuple(map(float, re.findall(r"[\d.]+", style))) for style in styles]
    assert len(bars) == 9
    assert all(left >= 0 and left + width <= 100.01 for left, width in bars)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file"),
        ("", "it is empty"),
        ("{}", "line 1 is no span"),
        ("nonsense", "line 1 is no span"),
        (json.dumps({"name": "x", "trace": "t", "id": "i", "parent": None, "start": "now", "end": 1}), "line 1 is no"),
        (b"\xff\xfe\x00", "it holds no text"),
    ],
)
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, content: Any, why: str) -> None:
    path = tmp_path / "run.jsonl"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UnreadableTrace, match=why):
        read(path)


# ---- the command


def command(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["trace", *arguments])


def test_the_command_writes_the_page_beside_the_file(file: Path) -> None:
    done = command(str(file))
    assert done.exit_code == 0
    assert Path(done.stdout.strip().replace("\n", "")).read_text().startswith("<!doctype html>")


def test_the_command_prints_a_tree(file: Path) -> None:
    done = command(str(file), "--text")
    assert without_times(done.stdout) == TREE.splitlines()


def test_a_mistake_is_one_line_and_exit_code_2(tmp_path: Path, file: Path) -> None:
    missing, unwritable = command(str(tmp_path / "none")), command(str(file), "-o", str(tmp_path / "no" / "page.html"))
    assert (missing.exit_code, unwritable.exit_code) == (2, 2)
    assert "is no recorded run" in missing.stderr
    assert "cannot be written" in unwritable.stderr


def test_the_console_can_be_shown_beside_a_file(tmp_path: Path, root: Path) -> None:
    program = """
import sys
from opentelemetry import trace
from agentkit.telemetry import console
first = console.show(console.FileExporter(sys.argv[1]))
second = console.show()
assert first is second is trace.get_tracer_provider()
with trace.get_tracer("shop").start_as_current_span("invoke_agent shop"):
    pass
"""
    file = tmp_path / "run.jsonl"
    done = subprocess.run([sys.executable, "-c", program, str(file)], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Overriding" not in done.stderr
    assert "invoke_agent shop" in done.stdout + done.stderr
    assert "invoke_agent shop" in file.read_text()
