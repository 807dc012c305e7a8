"""What a user may import from the top of the package: few names, each there and each explained."""

import importlib
import inspect
import subprocess
import sys

import pytest

import agentkit


def test_all_is_sorted_and_short() -> None:
    assert list(agentkit.__all__) == sorted(agentkit.__all__)
    assert len(agentkit.__all__) <= 20
    assert len(set(agentkit.__all__)) == len(agentkit.__all__)


def test_all_names_everything_public() -> None:
    """A name that can be reached but is not listed would become an interface by accident."""
    public = {
        name for name in dir(agentkit) if not name.startswith("_") and not inspect.ismodule(getattr(agentkit, name))
    }
    assert public <= set(agentkit.__all__) <= set(dir(agentkit))


@pytest.mark.parametrize("name", agentkit.__all__)
def test_a_public_name_is_there_and_explained(name: str) -> None:
    value = getattr(agentkit, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert inspect.getdoc(value), f"agentkit.{name} has no docstring"


def test_what_users_write_first_is_public() -> None:
    wanted = {"AgentMiddleware", "AgentState", "Exit", "Limits", "Middleware", "create_agent", "exit_of", "thread"}
    assert wanted <= set(agentkit.__all__)


def test_importing_the_package_loads_nothing_that_is_not_asked_for() -> None:
    code = "import agentkit, sys; print([m for m in ('langchain', 'langchain_core', 'langgraph') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


LAZY = ["agentkit.checkpoint", "agentkit.middleware"]


@pytest.mark.parametrize("package", LAZY)
def test_every_listed_name_is_there_and_shown(package: str) -> None:
    module = importlib.import_module(package)
    assert list(module.__all__) == sorted(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in vars(module)  # looked up once
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


STEPS = {  # one after the other: how many modules with stores, and with shipped middleware, are loaded then
    "import agentkit.middleware": "0 0",
    "from agentkit import create_agent": "1 0",
    "from agentkit.middleware import Reuse": "1 1",
    "from agentkit.middleware import Gates": "1 8",
}


def test_a_name_brings_along_only_what_it_needs() -> None:
    count = "sum(m.startswith(package + '.') for m in sys.modules)"
    lines = [f"{statement}; print(*({count} for package in {LAZY}))" for statement in STEPS]
    code = "\n".join(["import sys", *lines])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == list(STEPS.values())


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        agentkit.nothing  # type: ignore[attr-defined]  # noqa: B018
