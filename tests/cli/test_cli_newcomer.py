"""What somebody new to the commands does with them: agents that keep their own threads, odd ids and texts, slips."""

import json
import time
from pathlib import Path

import pytest

from agentkit import checkpoint, create_agent, thread
from agentkit.testing import ScriptedModel
from tests.cli.conftest import Command, Real

STORE = "sqlite:///threads.db"

KEPT = """
from agentkit import checkpoint, create_agent
from agentkit.middleware import standard
from shop import model, order_status, refund

def make():
    return create_agent(model(), [order_status, refund], middleware=standard(approve=["refund"]),
                        checkpointer=checkpoint.open("sqlite:///own.db"))
"""

SLY = """
from agentkit import create_agent
from agentkit.middleware import Approval
from agentkit.testing import ScriptedModel, ai, tool_call

def mail(to: str, body: str) -> str:
    "Send a mail."
    return "sent"

call = tool_call("mail", {"to": "mallory\\x1b[2K\\rann", "body": "Hi.\\n    to    ann"})
def make(checkpointer=None):
    return create_agent(ScriptedModel(ai("\\x1b[2JDone", call)), [mail], middleware=[Approval("mail")],
                        checkpointer=checkpointer)
"""


@pytest.fixture
def kept(agentkit: Command, folder: Path) -> Command:
    """Beside an agent that keeps its threads in a store of its own."""
    folder.joinpath("kept.py").write_text(KEPT)
    return agentkit


def test_the_command_that_run_proposes_decides_without_a_store_being_named(kept: Command) -> None:
    paused = kept("run", "kept:make", "Refund it.", "--thread", "t-1")
    proposed = paused.stderr.strip().rpartition("agentkit ")[2].split()
    assert proposed == ["threads", "approve", "kept:make", "t-1"]
    done = kept(*proposed, "--decision", "approve")
    assert (done.exit_code, done.stdout) == (0, "Done: refunded 80.0 euros for A-17.\n")


def test_chat_says_that_an_agent_with_a_store_keeps_the_thread(kept: Command) -> None:
    done = kept("chat", "kept:make", "--thread", "t-1", input="Where is it?\n")
    assert "thread t-1, which is kept." in done.stdout
    assert done.stdout.splitlines()[-1] == "go on with: agentkit chat kept:make --thread t-1"
    assert "goes on after 1 message" in kept("chat", "kept:make", "--thread", "t-1", input="").stdout


def test_a_failed_turn_of_an_agent_with_a_store_can_be_finished(kept: Command) -> None:
    done = kept("run", "kept:make", "Fail.", "--thread", "t-1")
    assert done.exit_code == 1
    assert "finish the turn with: agentkit run kept:make --thread t-1\n" in done.stderr


MEANT = '{"order_id": "A-17", "euros": 1.0}'
SLIPS = [
    (["approve", "--args", MEANT], "--args changes a call only with --decision edit"),
    (["approve", "--message", "too late"], "--message is told only with --decision reject or respond"),
    (["respond"], "respond needs --message"),
    (["aprove"], "error: Invalid value for '--decision' / '-d': 'aprove' is not one of 'approve', 'reject', "),
    (["edit", "--args", '{"euros": 1.0}'], "`refund` needs order_id. Decide again with: agentkit threads approve"),
]


def test_a_decision_that_cannot_be_meant_decides_nothing(kept: Command) -> None:
    kept("run", "kept:make", "Refund it.", "--thread", "t-1")
    for options, told in SLIPS:
        refused = kept("threads", "approve", "kept:make", "t-1", "--decision", *options)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert told in refused.stderr
        assert "stopped" not in refused.stderr
    (waits,) = json.loads(kept("threads", "show", "t-1", "--store", "sqlite:///own.db", "--json").stdout)["waiting"]
    assert waits["args"] == {"order_id": "A-17", "euros": 80.0}


def test_a_fork_onto_an_open_question_waits_as_a_run_does(kept: Command) -> None:
    kept("run", "kept:make", "Refund it.", "--thread", "t-1")
    own = ["--store", "sqlite:///own.db"]
    last = len(json.loads(kept("threads", "show", "t-1", *own, "--json").stdout)["steps"])
    done = kept("threads", "fork", "t-1", str(last), "--as", "t-2", *own, "--agent", "kept:make", "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["thread"], told["status"], told["waiting"][0]["value"]["name"]) == ("t-2", "waiting", "refund")
    assert f"decide with: agentkit threads approve kept:make t-2 {' '.join(own)}\n" in done.stderr


def test_what_a_model_writes_cannot_disguise_the_call_that_is_approved(agentkit: Command, folder: Path) -> None:
    folder.joinpath("sly.py").write_text(SLY)
    done = agentkit("chat", "sly:make", "--store", STORE, input="Mail ann.\nl\n")
    assert "\x1b" not in done.stdout and "\r" not in done.stdout
    shown = done.stdout.splitlines()
    assert "    to    mallory\\x1b[2K\\rann" in shown
    assert "    to    ann" not in shown  # the body's second line stands below its first
    assert any(line.startswith("? waits for a decision mail(to=mallory\\x1b[2K\\rann, body=Hi.\\n ") for line in shown)


def test_long_and_odd_ids_leave_the_table_whole(agentkit: Command, folder: Path) -> None:
    names = ["[red]plain[/red]", "a long id " * 20 + "✅", "esc\x1b[31m"]
    with checkpoint.open(STORE) as saver:
        agent = create_agent(ScriptedModel("Yes.", repeat=True), checkpointer=saver)
        for name in names:
            agent.invoke({"messages": "Hi."}, thread(name))
    done = agentkit("threads", "list", "--store", STORE)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(f" {time.strftime('%Y')}-" in line and " done " in line for line in lines) == len(names)
    assert done.stdout.count("[red]plain[/red]") == 1
    assert "\x1b" not in done.stdout
    assert "deleted" not in agentkit("threads", "prune", "--store", STORE, "--keep-last", "1", "--thread", "no").stdout
    one = agentkit("threads", "prune", "--store", STORE, "--keep-last", "2", "--thread", "[red]plain[/red]")
    assert one.stdout.startswith("deleted 1 step of 1 thread (")


def test_an_agent_that_is_given_its_saver_is_not_missing_one(agentkit: Command, folder: Path) -> None:
    folder.joinpath("sly.py").write_text(SLY)
    assert agentkit("check", "sly:make").stdout == "sly:make: no findings\n"
    assert "AK403" in agentkit("check", "sly:make", "--durable").stdout
    done = agentkit("check", "shop:support", "--format", "sarif")
    assert '"text": "middleware Approval pauses for a person, and there is no checkpointer. Mend it: ' in done.stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["run", "shop:support", ""], "the message is empty"),
        (["graph", "shop:support", "-o", "agent.gif"], "agent.gif: no picture is made by that ending; there are .svg"),
        (["check", "shop:support", "-o", "nowhere/x.sarif"], "nowhere/x.sarif cannot be written: No such file"),
        (["run", "leaves:agent", "Hi."], "leaves failed: SystemExit: 3 (leaves.py, line 1)"),
        (["run", "later:make", "Hi.", "--sync"], "a saver without a synchronous form; leave --sync out"),
    ],
)
def test_a_slip_is_one_line_and_code_2(agentkit: Command, folder: Path, args: list[str], told: str) -> None:
    folder.joinpath("leaves.py").write_text("raise SystemExit(3)")
    folder.joinpath("later.py").write_text(
        "import aiosqlite\nfrom langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver\n"
        "from agentkit import create_agent\nfrom shop import model\n\nasync def make():\n"
        "    return create_agent(model(), checkpointer=AsyncSqliteSaver(aiosqlite.connect('later.db')))\n"
    )
    done = agentkit(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert not folder.joinpath("agent.gif").exists()


def test_a_recorded_run_as_text_goes_where_it_is_told_to(agentkit: Command, folder: Path) -> None:
    span = {"name": "invoke_agent shop", "trace": "t", "id": "i", "parent": None, "start": 1, "end": 2}
    folder.joinpath("run.jsonl").write_text(json.dumps(span))
    done = agentkit("trace", "run.jsonl", "--text", "-o", "run.txt")
    assert (done.exit_code, done.stdout) == (0, "")
    assert folder.joinpath("run.txt").read_text().startswith("invoke_agent shop")


def test_a_group_alone_is_its_help_without_a_complaint(agentkit: Command) -> None:
    alone = agentkit("threads")
    assert alone.exit_code == 2
    assert "prune" in alone.output
    assert "error" not in alone.output


def test_the_version_is_told(agentkit: Command) -> None:
    done = agentkit("--version")
    assert done.exit_code == 0
    assert done.stdout.startswith("agentkit ")


def test_a_full_disk_is_one_line(real: Real) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("/dev/full is missing: there is no full disk to write to")
    with Path("/dev/full").open("w") as full:
        done = real("plan", "shop:support", "--json", stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith("error: OSError: [Errno 28] No space left on device\n")
    assert "Traceback" not in done.stderr
