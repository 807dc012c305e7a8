"""Check every graph that LangGraph's own tests build, and say what was found in which: a hunt for false alarms.

A pytest plugin: `pytest -p upstream_graphs` with this folder on the path, in LangGraph's tests. What is found is
written to the file that UPSTREAM_GRAPHS names, a JSON object per line. `make upstream` does all that.

A graph is checked when it is compiled; whether it lacks a checkpointer, when it is run and is not part of another.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from langgraph.config import get_config
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from agentkit.check import RULES, check

NAME = "UPSTREAM_GRAPHS"
SAVER = "AK401"


def pytest_configure() -> None:
    """Look at each graph once it is compiled, and once it is run by itself."""
    compile_graph = StateGraph.compile

    def compile_and_check(self: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = compile_graph(self, *args, **kwargs)
        record(compiled, [SAVER], nodes=len(self.nodes))
        return compiled

    StateGraph.compile = compile_and_check  # type: ignore[method-assign]
    for name in ("stream", "astream"):
        setattr(CompiledStateGraph, name, checked_at_the_top(getattr(CompiledStateGraph, name)))


def checked_at_the_top(run: Any) -> Any:
    """The method, with a look at the graph it is called on if no other graph is running."""

    def run_and_check(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            get_config()
        except RuntimeError:
            is_agent = type(self) is not CompiledStateGraph  # checked now that its middleware can be seen
            record(self, [] if is_agent else [code for code in RULES if code != SAVER])
        return run(self, *args, **kwargs)

    return run_and_check


def record(compiled: Any, ignore: list[str], **facts: Any) -> None:
    """Write down what is found in a graph."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "?").partition(" ")[0]
    lines: list[dict[str, Any]] = [{"test": test, "code": "graph", **facts}] if facts else []
    try:
        report = check(compiled, nested=False, ignore=ignore)
        lines += [
            {"test": test, "code": f.code, "severity": f.severity, "node": f.node, "message": f.message}
            for f in report.findings
        ]
        lines += [] if report.complete else [{"test": test, "code": "incomplete"}]
    except Exception as error:
        lines.append({"test": test, "code": "crash", "message": repr(error)})
    with Path(os.environ[NAME]).open("a") as log:
        log.writelines(json.dumps(line) + "\n" for line in lines)


def main(path: str) -> None:
    """Print what a run has found, by rule, with the tests whose graphs it was found in."""
    entries = [json.loads(line) for line in Path(path).read_text().splitlines()]
    for entry in entries:
        entry["test"] = entry["test"].partition("[")[0]
    counts = Counter(entry["code"] for entry in entries)
    tests = {entry["test"] for entry in entries}
    print(f"{counts['graph']} graphs in {len(tests)} tests; {counts['crash']} crashes, {counts['incomplete']} given up")
    keys = ("code", "severity", "test", "node", "message")
    for line in sorted({tuple(str(entry.get(key)) for key in keys) for entry in entries if entry["code"] != "graph"}):
        print("  ".join(line))


if __name__ == "__main__":
    main(sys.argv[1])
