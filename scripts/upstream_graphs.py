"""Check every graph that LangGraph's own tests compile, and say what was found in which: a hunt for false alarms.

A pytest plugin: `pytest -p upstream_graphs` with this folder on the path, in LangGraph's tests. What is found is written
to the file that UPSTREAM_GRAPHS names, one JSON object per finding and graph. `make upstream` does all that.
"""

import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from langgraph.graph import StateGraph

from agentkit.check import check

NAME = "UPSTREAM_GRAPHS"


def pytest_configure() -> None:
    """Look at each graph once it is compiled."""
    compile_graph = StateGraph.compile

    def compile_and_check(self: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = compile_graph(self, *args, **kwargs)
        with Path(os.environ[NAME]).open("a") as log:
            test = os.environ.get("PYTEST_CURRENT_TEST", "?").partition(" ")[0]
            try:
                report = check(compiled, nested=False)
            except Exception as error:
                log.write(json.dumps({"test": test, "code": "crash", "message": repr(error)}) + "\n")
                raise
            log.write(json.dumps({"test": test, "code": "graph", "nodes": len(self.nodes)}) + "\n")
            for found in report.findings:
                entry = {"test": test, "code": found.code, "severity": found.severity, "node": found.node}
                log.write(json.dumps({**entry, "message": found.message}) + "\n")
        return compiled

    StateGraph.compile = compile_and_check  # type: ignore[method-assign]


def main(path: str) -> None:
    """Print what a run has found, by rule, with the tests whose graphs it was found in."""
    entries = [json.loads(line) for line in Path(path).read_text().splitlines()]
    plain = {
        (e["test"].partition("[")[0], e["code"], e.get("severity"), e.get("node"), e.get("message")) for e in entries
    }
    counts = Counter(entry["code"] for entry in entries)
    print(f"{counts['graph']} graphs compiled in {len({entry[0] for entry in plain})} tests, {counts['crash']} crashes")
    for test, code, severity, node, message in sorted(plain, key=str):
        if code != "graph":
            print(f"{code} {severity} {test} {node}: {message}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(Path(tempfile.gettempdir()) / "upstream_graphs.jsonl"))
