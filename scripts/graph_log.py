"""Look at every graph that is built in a process, and say afterwards what was found in which: a hunt for false alarms.

`watch` has each graph checked when it is compiled; whether it lacks a checkpointer, when it is run and is not part of
another. What is found goes to the file that GRAPH_LOG names, a JSON object per line. As a program it sums such a file
up. It is a pytest plugin as well (`pytest -p graph_log`, with this folder on the path), for LangGraph's own tests.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

LOG = "GRAPH_LOG"
SAVER = "AK401"
_WHERE = ["GRAPH_PAGE", "PYTEST_CURRENT_TEST"]  # environment variables; the first that is set says where a graph is


def watch() -> None:
    """Look at each graph once it is compiled, and once it is run by itself."""
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    compile_graph = StateGraph.compile

    def compile_and_check(self: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = compile_graph(self, *args, **kwargs)
        record(compiled, [SAVER], nodes=len(self.nodes))
        return compiled

    StateGraph.compile = compile_and_check  # type: ignore[method-assign]
    for name in ("stream", "astream"):
        setattr(CompiledStateGraph, name, checked_at_the_top(getattr(CompiledStateGraph, name)))


pytest_configure = watch


def checked_at_the_top(run: Any) -> Any:
    """The method, with a look at the graph it is called on if no other graph is running."""
    from langgraph.config import get_config
    from langgraph.graph.state import CompiledStateGraph

    from agentkit.check import RULES

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
    from agentkit.check import check

    lines: list[dict[str, Any]] = [{"code": "graph", **facts}] if facts else []
    try:
        report = check(compiled, nested=False, ignore=ignore)
        lines += [
            {"code": f.code, "severity": f.severity, "node": f.node, "message": f.message} for f in report.findings
        ]
        lines += [] if report.complete else [{"code": "incomplete"}]
    except Exception as error:
        lines.append({"code": "crash", "message": repr(error)})
    write(lines)


def write(lines: list[dict[str, Any]]) -> None:
    """Add lines to the log, each with the test or page it comes from."""
    where = next((os.environ[name] for name in _WHERE if name in os.environ), "?")
    with Path(os.environ[LOG]).open("a") as log:
        log.writelines(json.dumps({"where": where.partition(" (")[0], **line}) + "\n" for line in lines)


def main(path: str) -> None:
    """Print what was found, by rule, with the tests or pages whose graphs it was found in."""
    entries = [json.loads(line) for line in Path(path).read_text().splitlines()]
    for entry in entries:
        entry["where"] = entry["where"].partition("[")[0]
    counts = Counter(entry["code"] for entry in entries)
    places = {entry["where"] for entry in entries if entry["code"] == "graph"}
    trouble = f"{counts['crash']} crashes, {counts['incomplete']} given up"
    print(f"{counts['graph']} graphs in {len(places)} places; {trouble}")
    found = [entry for entry in entries if entry["code"] not in ("graph", "stopped")]
    keys = ("code", "severity", "where", "node", "message")
    for line in sorted({tuple(str(entry.get(key)) for key in keys) for entry in found}):
        print("  ".join(line))


if __name__ == "__main__":
    main(sys.argv[1])
