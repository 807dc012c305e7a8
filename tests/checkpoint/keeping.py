"""A thread that keeps one value, written and read by different processes."""

from __future__ import annotations

import sys
from typing import Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from agentkit import checkpoint, thread
from agentkit.checkpoint import Saver


class State(TypedDict, total=False):
    kept: Any


def graph(saver: Saver) -> Any:
    """A graph whose one node does nothing, on a store."""
    builder = StateGraph(State)
    builder.add_node("node", lambda state: None)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=saver)


def keep(saver: Saver, value: Any, name: str = "t") -> None:
    """Store a value in a thread."""
    graph(saver).invoke({"kept": value}, thread(name))


def kept(saver: Saver, name: str = "t") -> Any:
    """What a thread holds."""
    return graph(saver).get_state(thread(name)).values["kept"]


def differences(found: Any, expected: dict[str, Any]) -> list[str]:
    """What did not come back as what it was: type, value, and what it looks like."""
    assert found.keys() == expected.keys()
    return [
        f"{name}: {value!r} came back as {found[name]!r}"
        for name, value in expected.items()
        if type(found[name]) is not type(value) or found[name] != value or repr(found[name]) != repr(value)
    ]


if __name__ == "__main__":
    from tests.checkpoint.typed_values import TYPES, VALUES

    for url in sys.argv[1:]:
        with checkpoint.open(url, types=TYPES) as opened:
            if found := differences(kept(opened), VALUES):
                raise SystemExit("\n".join(found))
