"""Naming an agent: what works, and that every mistake is answered with one line that helps."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command, Real


@pytest.mark.parametrize("target", ["shop:support", "shop.py:support", "./shop.py:support"])
def test_a_module_or_a_file_names_the_agent(agentkit: Command, target: str) -> None:
    done = agentkit("plan", target)
    assert done.exit_code == 0, done.output
    assert "model" in done.stdout


@pytest.mark.parametrize("name", ["make", "make_async"])
def test_a_function_is_called_to_make_the_agent(agentkit: Command, name: str) -> None:
    assert agentkit("plan", f"shop:{name}").stdout == "start -> model\nmodel -> end | tools\ntools -> model\n"


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("shop", "names nothing in the module"),
        ("shop:suport", "shop has no 'suport'. shop has support, endless, confirm(), "),
        ("shopp:support", "there is no module 'shopp'"),
        ("shopp.py:support", "there is no file shopp.py; . has shop.py"),
        (":support", "names no module"),
        ("shop:tools", "of type list, not an agent or a graph"),
        ("shop:make_for", "it needs customer"),
        ("shop:make_badly", "shop:make_badly() failed: LookupError: no such configuration (shop.py, line "),
    ],
)
def test_a_wrong_name_is_a_mistake_and_the_line_helps(agentkit: Command, target: str, told: str) -> None:
    done = agentkit("plan", target)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert told in done.stderr


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import nothing_like_that", "broken failed: ModuleNotFoundError: No module named 'nothing_like_that'"),
        ("x = 1\ny = (", "broken failed: SyntaxError: '(' was never closed (broken.py, line 2)"),
        ("x = 1\nraise OSError('disk')", "broken failed: OSError: disk (broken.py, line 2)"),
    ],
)
def test_a_module_that_cannot_be_imported_is_told_with_its_line(
    agentkit: Command, folder: Path, code: str, told: str
) -> None:
    folder.joinpath("broken.py").write_text(code)
    done = agentkit("plan", "broken:agent")
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["pln", "shop:support"], "No such command 'pln'"),
        (["plan", "shop:support", "--jsn"], "No such option: --jsn"),
        (["threads", "list"], "--store"),
        (["graph", "shop:support", "--format", "gif"], "'gif' is not one of"),
    ],
)
def test_a_wrong_word_on_the_command_line_is_one_line_and_code_2(agentkit: Command, args: list[str], told: str) -> None:
    done = agentkit(*args)
    assert done.exit_code == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_traceback_is_shown_when_asked_for(agentkit: Command) -> None:
    done = agentkit("--traceback", "plan", "shop:make_badly")
    assert isinstance(done.exception, Exception)
    assert isinstance(done.exception.__cause__, LookupError)


def test_help_tells_a_newcomer_what_there_is_and_imports_nothing_slow(real: Real) -> None:
    done = real("--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    for word in ("run", "chat", "graph", "plan", "threads", "MODULE:AGENT", "Exit codes"):
        assert word in done.stdout
    slow = [line for line in done.stderr.splitlines() if line.split("|")[-1].strip() in ("langchain_core", "langgraph")]
    assert slow == []


def test_a_shell_completes_commands(real: Real) -> None:
    done = real(_AGENTKIT_COMPLETE="complete_bash", COMP_WORDS="agentkit threads pr", COMP_CWORD="2")
    assert done.stdout.split() == ["prune"]


def test_without_the_extra_one_line_names_it(real: Real, folder: Path) -> None:
    folder.joinpath("typer.py").write_text("raise ModuleNotFoundError('No module named typer', name='typer')\n")
    done = real("--help")
    assert done.returncode == 2
    assert (
        done.stderr == "error: the command line needs the package typer; install it with: pip install 'agentkit[cli]'\n"
    )
