"""`agentkit run`: one turn for scripts and pipes."""

import json
from pathlib import Path

import pytest

from agentkit.cli.conversation import store_words
from tests.cli.conftest import Command, Real

STORE = "sqlite:///threads.db"


def test_the_answer_is_on_stdout_and_the_tools_on_stderr(agentkit: Command) -> None:
    done = agentkit("run", "shop:support", "Where is my order?")
    assert done.exit_code == 0
    assert done.stdout == "Let me see.\nDone: order A-17 was shipped.\n"
    assert done.stderr == "✓ done order_status(order_id=A-17)\n"


def test_the_synchronous_form_gives_the_same(agentkit: Command) -> None:
    assert (
        agentkit("run", "shop:support", "Where?", "--sync").stdout == agentkit("run", "shop:support", "Where?").stdout
    )


def test_a_message_is_read_from_a_pipe_and_nothing_is_coloured(real: Real) -> None:
    done = real("run", "shop:support", "-", input="Where is my order?\n", FORCE_COLOR="", NO_COLOR="1")
    assert done.returncode == 0
    assert done.stdout == "Let me see.\nDone: order A-17 was shipped.\n"
    assert "\x1b" not in done.stdout + done.stderr


def test_json_is_one_document_with_answer_messages_and_exit(agentkit: Command) -> None:
    done = agentkit("run", "shop:support", "Where?", "--json", "--store", STORE, "--thread", "t-1")
    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert (told["thread"], told["status"], told["exit"]["reason"]) == ("t-1", "done", "answer")
    assert told["answer"] == "Done: order A-17 was shipped."
    assert [message["type"] for message in told["messages"]] == ["human", "ai", "tool", "ai"]
    again = json.loads(
        agentkit("run", "shop:support", "And now?", "--json", "--store", STORE, "--thread", "t-1").stdout
    )
    assert again["messages"][0]["content"] == "And now?"  # only what is new


def test_an_ending_by_a_limit_is_told_and_is_code_1(agentkit: Command) -> None:
    done = agentkit("run", "shop:endless", "Go.")
    assert done.exit_code == 1
    assert "ended by step_budget: 2 model calls were made" in done.stderr
    assert "ended by" not in done.stdout


def test_an_exception_of_the_provider_is_one_line_and_code_1(agentkit: Command) -> None:
    done = agentkit("run", "shop:support", "Fail.")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "error: ConnectionError: the provider is away\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_turn_that_failed_is_finished_without_a_message(agentkit: Command, folder: Path) -> None:
    shop = folder / "shop.py"
    agentkit("run", "shop.py:support", "Fail.", "--store", STORE, "--thread", "t-1")
    text = shop.read_text().replace('raise ConnectionError("the provider is away")', 'return "It is back."')
    folder.joinpath("mended.py").write_text(text)
    done = agentkit("run", "mended.py:support", "--store", STORE, "--thread", "t-1")
    assert (done.exit_code, done.stdout) == (0, "It is back.\n")


def test_a_paused_turn_says_how_to_decide(agentkit: Command) -> None:
    done = agentkit("run", "shop:support", "Refund it.", "--store", STORE, "--thread", "t-1")
    assert done.exit_code == 1
    assert done.stdout == "Let me see.\n"
    assert "waits for a decision on refund" in done.stderr
    assert f"agentkit threads approve shop:support t-1 --store {STORE}\n" in done.stderr


def test_a_proposed_command_names_the_store_without_its_password() -> None:
    assert store_words("postgresql://ann:secret@db/agents") == ["--store", "postgresql://ann@db/agents"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["shop:support"], "there is no message"),
        (["shop:support", "-"], "stdin was empty"),
        (["shop:support", "Hi.", "--input", "{}"], "not both"),
        (["shop:support", "--input", "{"], "--input is not JSON"),
        (["shop:support", "Hi.", "--context", "no"], "--context is not JSON"),
        (["shop:support", "Hi.", "--thread", "t"], "keeps no threads, so there is none to name; add --store"),
        (["shop:support", "Hi.", "--store", "redis://secret@host"], "is not the URL of a store"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(agentkit: Command, args: list[str], told: str) -> None:
    done = agentkit("run", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr


def test_any_graph_runs_with_its_input_as_json(agentkit: Command, root: Path) -> None:
    done = agentkit("run", f"{root}/tests/cli/graphs.py:nested", "--flat", "--input", "{}")
    assert done.exit_code == 2  # --flat is of `graph`
    done = agentkit("run", f"{root}/tests/cli/graphs.py:thirty", "--input", '{"found": ["a"]}')
    assert json.loads(done.stdout) == {"found": ["a"]}


def test_a_thread_that_another_process_holds_is_left_alone(agentkit: Command) -> None:
    from agentkit.checkpoint import open

    with open(STORE) as saver:
        saver.leases.take("t-1", "another process", 60)
        done = agentkit("run", "shop:support", "Where?", "--store", STORE, "--thread", "t-1")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "thread 't-1' is held by 'another process'" in done.stderr
