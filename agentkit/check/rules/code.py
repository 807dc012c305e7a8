"""Rules about the code of nodes: state that is changed in place, calls that block the event loop."""

from __future__ import annotations

import ast
import asyncio
import builtins
import os
import subprocess
import time
from collections.abc import Iterator
from typing import Any, Final

from langchain_core.runnables import Runnable

from agentkit.check.bodies import Body, Change
from agentkit.check.rule import Given, Hit, rule
from agentkit.check.sources import UNKNOWN, Source

__all__ = ["blocking_call", "state_changed_in_place"]


@rule("AK501", "state-changed-in-place", "error")
def state_changed_in_place(given: Given) -> Iterator[Hit]:
    """A node changes the state it is given, instead of returning an update.

    ## Why it bites

    The state is a copy made for this node: `state["tries"] += 1` is lost when the node returns, so a counter written
    that way never counts and a retry limit never trips. Changing an object inside it (`state["log"].append(...)`) is
    worse: it is seen by whoever holds the same object, such as a parallel node, but reducers do not run and a saver
    need not store it. That is a warning, since it can look as if it worked.

    ## Mend it

    Return the update: `return {"tries": state["tries"] + 1}`. For lists, a reducer and `return {"log": ["new entry"]}`.

    ## Fails

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        tries: int

    def attempt(state: State) -> None:
        state["tries"] += 1

    builder = StateGraph(State)
    builder.add_node("attempt", attempt)
    builder.add_edge(START, "attempt")

    print(builder.compile().invoke({"tries": 0}))  # -> {'tries': 0}
    print(check(builder).codes)  # -> ['AK501']
    ```

    ## Passes

    ```python
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        tries: int

    def attempt(state: State) -> State:
        return {"tries": state["tries"] + 1}

    builder = StateGraph(State)
    builder.add_node("attempt", attempt)
    builder.add_edge(START, "attempt")

    print(builder.compile().invoke({"tries": 0}))  # -> {'tries': 1}
    print(check(builder).codes)  # -> []
    ```
    """
    for node in given.shape.nodes.values():
        for body in node.bodies:
            for change in body.changes:
                if _is_lost(body, change):
                    what = "changes an object inside the state it was given" if change.inner else "changes the state"
                    yield Hit(
                        node=node.name,
                        message=f"{what} in place (`{change.text}`) and does not return it",
                        remedy=f"return {{{change.field or '...'!r}: ...}}",
                        place=change.place,
                        severity="warning" if change.inner else None,
                    )


def _is_lost(body: Body, change: Change) -> bool:
    """Whether no way out returns the changed field, nor the whole state, nor something that cannot be told."""
    return all(
        way.known and not way.whole and change.field not in way.fields and (change.field is not None or not way.fields)
        for way in body.writes
    )


_BLOCKING: Final[tuple[Any, ...]] = (
    time.sleep,
    os.system,
    os.popen,
    subprocess.run,
    subprocess.call,
    subprocess.check_call,
    subprocess.check_output,
    subprocess.getoutput,
    builtins.input,
    asyncio.run,
)
_BLOCKING_MODULES: Final = frozenset({"requests.api", "httpx._api", "urllib.request"})  # whose functions all wait
_SYNC_RUNS: Final = {"invoke": "ainvoke", "batch": "abatch", "stream": "astream"}


@rule("AK502", "blocking-call", "warning")
def blocking_call(given: Given) -> Iterator[Hit]:
    """An async node makes a call that blocks, so every other run in the process stands still meanwhile.

    ## Why it bites

    Async code shares one thread. `time.sleep(2)`, `requests.get(...)` or a model's `invoke` in an `async def` stops all
    of it: the other conversations, the streams, the health check. Nothing fails; it only gets slow under load.

    ## Mend it

    `await asyncio.sleep(...)`, an async client, `await model.ainvoke(...)`; or `await asyncio.to_thread(blocking,
    ...)`. A plain `def` node is fine as well: LangGraph runs it in a thread.

    ## Fails

    ```python
    import time
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        text: str

    async def fetch(state: State) -> State:
        time.sleep(0.1)
        return {"text": "found"}

    builder = StateGraph(State)
    builder.add_node("fetch", fetch)
    builder.add_edge(START, "fetch")

    print(check(builder).codes)  # -> ['AK502']
    ```

    ## Passes

    ```python
    import asyncio
    from typing import TypedDict
    from langgraph.graph import START, StateGraph
    from agentkit.check import check

    class State(TypedDict):
        text: str

    async def fetch(state: State) -> State:
        await asyncio.sleep(0.1)
        return {"text": "found"}

    builder = StateGraph(State)
    builder.add_node("fetch", fetch)
    builder.add_edge(START, "fetch")

    print(check(builder).codes)  # -> []
    ```
    """
    for node in given.shape.nodes.values():
        for body in node.bodies:
            if body.source is None or not body.source.is_async:
                continue
            for part in body.source.own():
                found = _blocking(body.source, part) if isinstance(part, ast.Call) else None
                if found is not None:
                    called, instead = found
                    yield Hit(
                        node=node.name,
                        message=f"calls {called}, which blocks the event loop",
                        remedy=instead,
                        place=body.source.place(part),
                    )


def _blocking(source: Source, call: ast.Call) -> tuple[str, str] | None:
    """What is called, and what to call instead, if the call is known to block."""
    called = source.value(call.func)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _SYNC_RUNS:
        owner = source.value(call.func.value)
        if isinstance(owner, Runnable):
            return f"{ast.unparse(call.func)}()", f"await ...{_SYNC_RUNS[call.func.attr]}(...)"
    if called is UNKNOWN:
        return None
    if any(called is each for each in _BLOCKING) or getattr(called, "__module__", None) in _BLOCKING_MODULES:
        instead = "await it" if called is asyncio.run else "an async call, or await asyncio.to_thread(...)"
        return f"{ast.unparse(call.func)}()", instead
    return None
