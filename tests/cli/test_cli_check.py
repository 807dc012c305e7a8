"""`agentkit check`: what a newcomer types."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentkit.cli.app import app

GRAPHS = '''
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from agentkit import create_agent
from agentkit.middleware import StepBudget, standard
from agentkit.testing import ScriptedModel


def look(x: int) -> str:
    """Look."""
    return str(x)


def nothing(state: MessagesState) -> None: ...


def asks(state: MessagesState) -> None:
    interrupt("Well?")


support = create_agent(
    ScriptedModel("x"), [look], middleware=standard(StepBudget(5), approve=["look"]), checkpointer=InMemorySaver(),
    name="support",
)

twice = StateGraph(MessagesState)
for name in ("a", "b", "c"):
    twice.add_node(name, nothing)
twice.add_node("asks", asks)
twice.add_edge(START, "a")
twice.add_edge(START, "b")
twice.add_edge("b", "c")
twice.add_edge("a", "asks")
twice.add_edge("c", "asks")


def made():
    return twice.compile()


def needs(model):
    return None
'''


@dataclass
class Done:
    status: int
    out: str
    err: str


Command = Callable[..., Done]


@pytest.fixture
def agentkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command in a folder with a module of graphs."""
    tmp_path.joinpath("my_graphs.py").write_text(GRAPHS)
    tmp_path.joinpath("broken.py").write_text("import nothing_like_that\n")
    tmp_path.joinpath("failing.py").write_text("1 / 0\n")
    tmp_path.joinpath("empty.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("my_graphs", "broken", "failing", "empty"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    def run(*arguments: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            app([*arguments], prog_name="agentkit")
        out, err = capsys.readouterr()
        return Done(int(ended.value.code or 0), out, err)

    return run


def test_check_explains_itself(agentkit: Command) -> None:
    done = agentkit("check", "--help")
    assert done.status == 0
    assert "agentkit check" in done.out
    assert "MODULE:" in done.out


# ---- check


def test_check_names_the_fault_and_ends_with_1(agentkit: Command) -> None:
    done = agentkit("check", "my_graphs:twice")
    assert done.status == 1
    assert done.out.startswith("my_graphs:twice: error AK101 unequal-fan-in at asks\n")
    assert "agentkit.barrier(builder, ['a', 'c'], 'asks')" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines() if "barrier" not in line)


def test_check_looks_at_every_graph_of_a_module(agentkit: Command) -> None:
    done = agentkit("check", "my_graphs", "--json")
    found = {entry["graph"]: [each["code"] for each in entry["findings"]] for entry in json.loads(done.out)}
    assert found == {"my_graphs:support": [], "my_graphs:twice": ["AK101"]}
    assert done.status == 1


def test_check_ends_with_0_when_all_is_well(agentkit: Command) -> None:
    done = agentkit("check", "my_graphs:support")
    assert (done.status, done.out) == (0, "my_graphs:support: no findings\n")


def test_check_takes_a_function_that_makes_a_graph_and_leaves_rules_out(agentkit: Command) -> None:
    assert {*json.loads(agentkit("check", "my_graphs:made", "--json").out)[0]} >= {"findings", "ok"}
    done = agentkit("check", "my_graphs:made", "--ignore", "AK101", "--ignore", "AK401")
    assert (done.status, done.out) == (0, "my_graphs:made: no findings\n")


def test_check_writes_sarif_into_a_file(agentkit: Command, tmp_path: Path) -> None:
    done = agentkit("check", "my_graphs:made", "--format", "sarif", "--output", "found.sarif")
    assert (done.status, done.out) == (1, "")
    results = json.loads(tmp_path.joinpath("found.sarif").read_text())["runs"][0]["results"]
    assert {result["ruleId"] for result in results} == {"AK101", "AK401"}


def test_check_asks_for_durability(agentkit: Command) -> None:
    done = agentkit("check", "my_graphs:support", "--durable")
    assert done.status == 1
    assert "AK403 saver-not-durable" in done.out


# ---- mistakes


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check", "nowhere:graph"], "error: there is no module 'nowhere' in "),
        (["check", "my_graphs:nobody"], "my_graphs has no 'nobody'. my_graphs has support, twice, made()."),
        (["check", "my_graphs:needs"], "it needs model."),
        (["check", "empty"], "empty holds no graph; write MODULE:NAME"),
        (["check", "broken:x"], "broken failed: ModuleNotFoundError: No module named 'nothing_like_that'"),
        (["check", "my_graphs:StateGraph"], "error: type is no graph that can be checked"),
        (["check", "my_graphs:support", "--ignore", "AK000"], "error: there is no rule 'AK000'"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(agentkit: Command, arguments: list[str], told: str) -> None:
    done = agentkit(*arguments)
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert len(done.err.splitlines()) == 1


def test_an_unknown_command_or_option_is_status_2(agentkit: Command) -> None:
    assert agentkit("draw").status == 2
    assert agentkit("check", "my_graphs", "--formt", "json").status == 2
