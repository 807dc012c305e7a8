"""The reference pages say what the code says: every error, every module, every limit and every reason."""

import dataclasses
import inspect
import re
from pathlib import Path
from typing import get_args

import pytest

from agentkit import Limits, errors, exits

DOCS = Path(__file__).resolve().parents[2] / "docs"


def sections(page: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", DOCS.joinpath(page).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(page: str) -> set[str]:
    """The names in the first column of a page's tables."""
    first = re.findall(r"^\| ([^|]+) \|", DOCS.joinpath(page).read_text(), re.MULTILINE)
    return {name for cell in first for name in re.findall(r"`(\w+)`", cell)}


def test_every_error_has_a_section_and_no_other_has() -> None:
    assert set(sections("errors.md")) == set(errors.__all__)


@pytest.mark.parametrize("name", errors.__all__)
def test_an_error_is_described_as_what_it_is(name: str) -> None:
    first_sentence = sections("errors.md")[name].strip().split(".")[0]
    bases = {base.__name__ for base in getattr(errors, name).__bases__}
    assert bases == set(re.findall(r"`(\w+)`", first_sentence))


@pytest.mark.parametrize("name", errors.__all__)
def test_an_error_that_is_raised_says_how_to_mend_it(name: str) -> None:
    has_children = any(
        issubclass(getattr(errors, other), getattr(errors, name)) for other in {*errors.__all__} - {name}
    )
    assert has_children or "**Mend it:**" in sections("errors.md")[name]


def test_every_module_is_on_the_map(root: Path) -> None:
    modules = {
        path.stem
        for path in root.joinpath("agentkit").iterdir()
        if path.suffix == ".py" or path.joinpath("__init__.py").is_file()
    } - {"__init__", "middleware", "tools"}
    assert rows("architecture.md") == modules


def test_every_limit_is_described_with_its_default() -> None:
    text = DOCS.joinpath("guide/limits-and-exits.md").read_text()
    described = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| (\d+) \|$", text, re.MULTILINE))
    assert described == {field.name: str(field.default) for field in dataclasses.fields(Limits)}


def test_every_reason_is_described() -> None:
    assert set(get_args(exits.Reason)) <= rows("guide/limits-and-exits.md")


def test_the_tree_in_the_module_is_the_tree(root: Path) -> None:
    drawn = inspect.getdoc(errors) or ""
    assert {name for name in errors.__all__ if name not in drawn} <= {"ConfigurationWarning"}
