"""Check every graph that the Python code of documentation pages builds: `make upstream ARGS="--pages FOLDER"`.

FOLDER holds pages with code, at any depth: Markdown and MDX (their Python blocks), notebooks (their cells), and plain
`.py` files. Each page that builds a graph runs in a process of its own, in an empty folder, offline: chat models answer
"Done.", and packages that are not installed are stood in for. A block that fails does not keep the next from running.
This executes the pages' code: give it pages that you trust.
"""

import argparse
import ast
import asyncio
import getpass
import importlib.machinery
import inspect
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import MagicMock

import graph_log

SUFFIXES: Final = {".md", ".mdx", ".ipynb", ".py"}
BUILDS: Final = ("StateGraph(", "MessageGraph(", "create_agent(", "create_react_agent(")
SECONDS: Final = 120
# Installed or not, these are stood in for: they call a service.
PROVIDERS: Final = re.compile(
    r"langchain_(openai|anthropic|community|tavily|groq|google\w*|ollama|mistralai|aws)(\.|$)"
)
_FENCE: Final = re.compile(r"^(?P<indent>[ \t>]*)(?P<fence>```+|~~~+)(?:python|py)\b[^\n]*$")


def pages_in(folder: Path) -> list[Path]:
    """The pages that build a graph."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    return [path for path in files if any(word in path.read_text(errors="replace") for word in BUILDS)]


def blocks_of(page: Path) -> Iterator[str]:
    """The pieces of Python on a page, in their order."""
    text = page.read_text(errors="replace")
    if page.suffix == ".py":
        yield text
    elif page.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "code":
                yield _without_magic("".join(cell["source"]))
    else:
        yield from map(_without_magic, _fenced(text))


def _fenced(text: str) -> Iterator[str]:
    lines: list[str] = []
    opened: re.Match[str] | None = None
    for line in text.splitlines():
        if opened is None:
            opened = _FENCE.match(line)
        elif line.strip(" \t>") == opened["fence"]:
            yield textwrap.dedent("\n".join(lines))
            lines, opened = [], None
        else:
            lines.append(line.removeprefix(opened["indent"]))


def _without_magic(code: str) -> str:
    """Without what only a notebook's shell understands."""
    return "\n".join("" if line.lstrip().startswith(("%", "!", "?")) else line for line in code.splitlines())


# ---- one page, in a process of its own


def run_page(page: Path) -> None:
    """Run a page's blocks, one after the other; write down those that stopped."""
    graph_log.watch()
    stand_in()
    module = types.ModuleType("page")
    sys.modules["page"] = module  # schemas look their annotations up there
    for number, code in enumerate(blocks_of(page), 1):
        part = Path(f"{page.stem}_{number}.py").absolute()  # a file, so that the source of its functions is to be had
        part.write_text(code)
        try:
            _execute(code, part, module)
        except (Exception, SystemExit) as error:
            first = str(error).partition("\n")[0]
            graph_log.write([{"code": "stopped", "message": f"block {number}: {type(error).__name__}: {first[:200]}"}])


def _execute(code: str, part: Path, module: types.ModuleType) -> None:
    compiled = compile(code, str(part), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    vars(module)["__file__"] = str(part)
    made: Any = eval(compiled, vars(module))  # a coroutine if the code awaits something
    if inspect.iscoroutine(made):
        asyncio.run(made)


def stand_in() -> None:
    """Let nothing leave the process, and put stand-ins in the place of what would want to."""
    from langchain import chat_models

    def refused(*args: Any) -> None:
        raise ConnectionError("pages run offline")

    socket.socket.connect = refused  # type: ignore[method-assign, assignment]
    getpass.getpass = lambda *args, **kwargs: "none"
    chat_models.init_chat_model = _model  # type: ignore[assignment]
    sys.meta_path.insert(0, _Finder(PROVIDERS))
    sys.meta_path.append(_Finder(re.compile("")))


def _model(*args: Any, **kwargs: Any) -> Any:
    from langchain_core.runnables import RunnableLambda

    from agentkit.testing import ScriptedModel

    class Standing(ScriptedModel):
        """Answers "Done." to everything, and with some object if one of a schema is asked for."""

        def with_structured_output(self, *args: Any, **kwargs: Any) -> Any:
            return RunnableLambda(lambda _: MagicMock())

    return Standing(lambda request: "Done.", repeat=True)


def _tool(*args: Any, **kwargs: Any) -> Any:
    from langchain_core.tools import StructuredTool

    def find(query: str) -> str:
        """Find something."""
        return query

    return StructuredTool.from_function(find, name=str(kwargs.get("name", "search")))


class _Finder:
    """Finds modules that are not there."""

    def __init__(self, names: re.Pattern[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        asked_by_the_page = self.names.pattern or _page_asks()
        if not asked_by_the_page or not self.names.match(name):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Standing(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []


def _page_asks() -> bool:
    """Whether an import comes from the page, and not from a library that can do without the module."""
    frame: Any = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == "page"


class _Standing(types.ModuleType):
    """A module that has whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _model if name.startswith("Chat") and name[4:5].isupper() else _tool
        plain = made is _tool and not re.search(r"Search|Tool|QueryRun", name)
        return MagicMock(name=name) if plain else made


# ---- all pages


def main(argv: Sequence[str] | None = None) -> int:
    """Run the pages of a folder and print what was found."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--pages", type=Path, required=True, metavar="FOLDER", help="a folder of pages, at any depth")
    asked.add_argument(
        "--log", type=Path, default=Path(".upstream/pages.jsonl"), help="where to write (default: %(default)s)"
    )
    asked.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = asked.parse_args(argv)
    if given.one:
        run_page(given.one)
        return 0
    if not given.pages.is_dir():
        asked.error(f"{given.pages} is not a folder")
    given.log.parent.mkdir(parents=True, exist_ok=True)
    given.log.write_text("")
    pages = pages_in(given.pages)
    for page in pages:
        _in_a_process(page, given.pages, given.log)
    _sum_up(len(pages), given.log)
    return 0


def _in_a_process(page: Path, folder: Path, log: Path) -> None:
    keys = {f"{name}_API_KEY": "none" for name in ("OPENAI", "ANTHROPIC", "TAVILY", "GOOGLE", "GROQ")}
    here = {graph_log.LOG: str(log.absolute()), "GRAPH_PAGE": str(page.relative_to(folder))}
    path = os.pathsep.join(map(str, (Path(__file__).parent.parent, Path(__file__).parent)))
    environment = {**os.environ, **keys, **here, "PYTHONPATH": path, "LANGSMITH_TRACING": "false"}
    command = [sys.executable, "-W", "ignore", __file__, "--pages", str(folder), "--one", str(page.absolute())]
    with tempfile.TemporaryDirectory() as empty:
        try:
            done = subprocess.run(
                command, cwd=empty, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS
            )
            trouble = f"ended with {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            trouble = f"stopped after {SECONDS} seconds"
    if trouble:
        with log.open("a") as file:
            file.write(json.dumps({"where": here["GRAPH_PAGE"], "code": "stopped", "message": trouble}) + "\n")


def _sum_up(pages: int, log: Path) -> None:
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    stopped = Counter(entry["where"] for entry in entries if entry["code"] == "stopped")
    print(f"{pages} pages, {pages - len(stopped)} without a block that stopped")
    for entry in entries:
        if entry["code"] == "stopped":
            print(f"  {entry['where']}: {entry['message']}")
    graph_log.main(str(log))


if __name__ == "__main__":
    sys.exit(main())
