"""Every Python example in the README and the documentation runs, offline, and prints what it says it prints.

A block runs by itself, in an empty folder; one that sets up its whole process has one of its own. What follows
`# ->` is what the block prints, in order; a block without it may print anything. `<!-- skip: reason -->` on the line
before a block keeps it from running, for blocks that need a provider's key.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.joinpath("docs").rglob("*.md")])
BLOCK = re.compile(
    r"(?:^[ ]*<!-- skip: (?P<skip>.+?) -->\n\s*)?^(?P<indent>[ ]*)```python\b[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)

SET_UP = re.compile(r"console\.show\(|logging\.configure\(|set_\w+_provider\(")
"""What an application does once, and no test may leave to the others."""


@dataclass(frozen=True)
class Example:
    page: Path
    line: int
    code: str
    skip: str | None

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def prints(self) -> list[str]:
        return [line.partition("# ->")[2].strip() for line in self.code.splitlines() if "# ->" in line]


def examples(page: Path) -> Iterator[Example]:
    text = page.read_text()
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        indent = len(match["indent"])
        code = "\n".join(each[indent:] for each in match["code"].splitlines())
        yield Example(page, line, code, match["skip"])


EXAMPLES = [example for page in PAGES for example in examples(page)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs_and_prints_what_it_says(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if example.skip:
        pytest.skip(example.skip)
    monkeypatch.chdir(tmp_path)
    padding = "\n" * (example.line - 1)  # tracebacks then show the page's own line numbers
    if SET_UP.search(example.code):
        printed = in_a_process(padding + example.code, tmp_path)
    else:
        module = ModuleType("docs_example")  # a real module, so that annotations of its classes can be resolved
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(padding + example.code, str(example.page), "exec"), module.__dict__)
        printed = capsys.readouterr().out
    if example.prints:
        assert [line.strip() for line in printed.splitlines()] == example.prints


def in_a_process(code: str, folder: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_shows_an_example_that_runs() -> None:
    assert [example for example in EXAMPLES if example.page == ROOT / "README.md" and not example.skip]


def test_only_examples_that_need_a_key_are_skipped() -> None:
    reasons = {example.name: example.skip for example in EXAMPLES if example.skip and "key" not in example.skip}
    assert reasons == {}


def test_make_targets_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", ROOT.joinpath("Makefile").read_text(), re.MULTILINE))
    named = {
        (str(page.relative_to(ROOT)), target)
        for page in PAGES
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE)
    }
    assert {(page, target) for page, target in named if target not in targets} == set()


def test_links_between_files_of_the_project_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#\s]+)", prose):
            if not re.match(r"[a-z]+:", link) and not (page.parent / link).exists():
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []
