"""The package as it is installed: every folder listed, one name per module, nothing imported that is not declared."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

import agentkit

MAPPED = {"agentkit": "agentkit", "agentkit.middleware": "middleware", "agentkit.tools": "tools"}


@pytest.fixture(scope="module")
def pyproject(root: Path) -> dict[str, Any]:
    return tomllib.loads(root.joinpath("pyproject.toml").read_text())


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def folders_with_code(root: Path) -> set[str]:
    """The dotted name of every folder that the wheel must carry."""
    found = set()
    for package, folder in MAPPED.items():
        for init in root.joinpath(folder).rglob("__init__.py"):
            inner = init.parent.relative_to(root / folder).parts
            if inner[:1] not in (("middleware",), ("tools",)) or package != "agentkit":
                found.add(".".join((package, *inner)))
    return found


def test_every_folder_with_code_is_in_the_wheel(root: Path, pyproject: dict[str, Any]) -> None:
    assert set(pyproject["tool"]["setuptools"]["packages"]) == folders_with_code(root)


def test_mapped_folders_have_the_names_the_tests_know(pyproject: dict[str, Any]) -> None:
    assert pyproject["tool"]["setuptools"]["package-dir"] == MAPPED


@pytest.mark.parametrize("folder", ["middleware", "tools"])
def test_a_mapped_folder_cannot_be_imported_under_a_second_name(root: Path, folder: str) -> None:
    done = run("-c", f"import {folder}", cwd=root)
    assert done.returncode != 0
    assert f"ImportError: import this package as agentkit.{folder}" in done.stderr


@pytest.mark.parametrize("folder", ["middleware", "tools"])
def test_type_checkers_reach_a_mapped_folder_through_the_link(root: Path, folder: str) -> None:
    link = root / "agentkit" / folder
    if not link.is_dir():
        pytest.skip(f"agentkit/{folder} is a text file: this checkout was made without symbolic links")
    assert link.resolve() == (root / folder).resolve()


def test_the_typing_marker_is_installed(root: Path, pyproject: dict[str, Any]) -> None:
    assert (root / "agentkit" / "py.typed").is_file()
    assert "py.typed" in pyproject["tool"]["setuptools"]["package-data"]["agentkit"]


def test_a_checkout_without_links_tests_the_installed_package(root: Path, tmp_path: Path) -> None:
    """Windows' git writes a text file for a symbolic link, and an sdist drops it: half a package remains."""
    for name in ("agentkit/__init__.py", "pyproject.toml", "tests/conftest.py"):
        tmp_path.joinpath(name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    tmp_path.joinpath("agentkit", "middleware").write_text("../middleware")
    tmp_path.joinpath("tests", "test_import.py").write_text("def test_it():\n    import agentkit.middleware\n")

    installed = Path(agentkit.__file__).resolve().parent
    script = (  # `installed` stands for site-packages, behind the current folder, which -m pytest puts first
        f"import sys, pytest; sys.path[:0] = [{str(tmp_path)!r}]; sys.path.append({str(installed.parent)!r});"
        "sys.exit(pytest.main(['-p', 'no:cacheprovider', 'tests']))"
    )
    done = run("-c", script, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert f"agentkit under test: {installed / '__init__.py'}" in done.stdout


def imports(tree: ast.Module) -> tuple[set[str], set[str]]:
    """The top-level names of what a module imports always, and of what it imports only when a part is used."""
    always: set[str] = set()
    later: set[str] = set()
    lazy = (ast.FunctionDef, ast.AsyncFunctionDef, ast.If, ast.Try)
    inside = {id(node) for outer in ast.walk(tree) if isinstance(outer, lazy) for node in ast.walk(outer)}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        (later if id(node) in inside else always).update(name.partition(".")[0] for name in names)
    return always - sys.stdlib_module_names - {"agentkit"}, later - sys.stdlib_module_names - {"agentkit"}


def normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def declared(lines: list[str]) -> set[str]:
    return {normal(re.split(r"[\[<>=!~; ]", line)[0]) for line in lines}


PARTS = ("testing", "cli", "checkpoint", "ledger")  # for those who test, who have pytest; for those with an extra


def test_dependencies_are_what_is_imported(root: Path, pyproject: dict[str, Any]) -> None:
    always: set[str] = set()
    later: set[str] = set()
    for folder in MAPPED.values():
        for path in root.joinpath(folder).rglob("*.py"):
            now, then = imports(ast.parse(path.read_text()))
            if any(path.is_relative_to(root / "agentkit" / part) for part in PARTS):
                now, then = set(), now | then
            always |= now
            later |= then
    owners = {name: {normal(owner) for owner in found} for name, found in packages_distributions().items()}
    required = declared(pyproject["project"]["dependencies"])
    optional = set().union(*map(declared, pyproject["project"]["optional-dependencies"].values()))

    assert {name for name in always if not owners.get(name, set()) & required} == set(), "imported, not required"
    undeclared = {name for name in later if not owners.get(name, set()) & (required | optional)}
    assert undeclared == set(), "imported where needed, in no extra"
    provided = set().union(*(owners.get(name, set()) for name in always | later))
    assert required - provided == set(), "required, but nothing imports it"


def test_the_oldest_versions_can_be_listed_for_every_dependency(root: Path, pyproject: dict[str, Any]) -> None:
    done = run("scripts/lowest.py", cwd=root)
    assert done.returncode == 0, done.stderr
    pins = dict(line.split("==") for line in done.stdout.split())
    assert pins.keys() >= declared(pyproject["project"]["dependencies"])
    assert all(re.fullmatch(r"\d+(\.\d+)*", version) for version in pins.values())


def test_make_without_a_target_explains_every_target(root: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    done = subprocess.run(["make", "--no-print-directory"], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    phony = re.search(r"^\.PHONY: (.+)$", root.joinpath("Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    missing = [target for target in phony[1].split() if not re.search(rf"^  make {target} +\w", done.stdout, re.M)]
    assert missing == []


def test_modules_stay_small(root: Path) -> None:
    """A module has one job; past 400 lines it has two."""
    lengths = {
        str(path.relative_to(root)): len(path.read_text().splitlines())
        for folder in MAPPED.values()
        for path in root.joinpath(folder).rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > 400} == {}
