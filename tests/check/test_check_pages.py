"""The script that checks the graphs of documentation pages, run as a contributor runs it, on a folder of pages."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = """# A page

<Accordion title="Indented, as in MDX">
    ```python Graph
    from typing import TypedDict
    from langchain_anthropic import ChatAnthropic
    from langgraph.graph import START, StateGraph
    import a_package_that_is_not_there as missing

    class State(TypedDict):
        tries: int
        said: str

    model = ChatAnthropic(model="m")
    ```
</Accordion>

```bash
not python
```

```python
def attempt(state: State):
    state["tries"] += 1


def ask(state: State):
    return {"said": model.invoke("Hello").text, "tries": missing.number(1)}
```

```python
raise RuntimeError("a block that fails keeps nothing else from running")
```

```py
StateGraph(State).add_sequence([attempt, ask]).add_edge(START, "attempt").compile().invoke({"tries": 0})
```
"""


def test_pages_are_run_and_their_graphs_are_checked(root: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    (pages / "deep").mkdir(parents=True)
    (pages / "plain.md").write_text("No graph here.")
    (pages / "deep" / "page.mdx").write_text(PAGE)
    script = str(root / "scripts" / "page_graphs.py")
    done = subprocess.run(
        [sys.executable, script, "--pages", str(pages), "--log", str(tmp_path / "log" / "found.jsonl")],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stopped = "  deep/page.mdx: block 3: RuntimeError: a block that fails keeps nothing else from running"
    assert done.stdout.splitlines()[:3] == [
        "1 pages, 0 without a block that stopped",
        stopped,
        "1 graphs in 1 places; 0 crashes, 0 given up",
    ]
    found = [line.split("  ")[:4] for line in done.stdout.splitlines()[3:]]
    assert found == [["AK501", "error", "deep/page.mdx", "attempt"]]


def test_a_notebook_is_read_cell_by_cell_without_what_only_its_shell_knows(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(root / "scripts"))
    script = importlib.import_module("page_graphs")
    cells = [
        {"cell_type": "markdown", "source": ["# A title"]},
        {"cell_type": "code", "source": ["%pip install x\n", "!ls\n", "x = 1"]},
        {"cell_type": "code", "source": ["await StateGraph(State).compile().ainvoke({})"]},
    ]
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": cells}))
    assert script.pages_in(tmp_path) == [tmp_path / "book.ipynb"]
    assert [*script.blocks_of(tmp_path / "book.ipynb")] == [
        "\n\nx = 1",
        "await StateGraph(State).compile().ainvoke({})",
    ]
