"""Batches of any mixture: each call is executed once, sequential ones in the model's order, whatever pauses."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agentkit import create_agent, thread
from agentkit.testing import ScriptedModel, ai, run, tool_call
from agentkit.tools import tool

KINDS = ("step", "stride", "other", "pausing_step", "pausing_other")
BATCHES = st.lists(st.sampled_from(KINDS), min_size=1, max_size=6)


@settings(max_examples=30, deadline=None)
@given(
    batches=st.lists(BATCHES, min_size=1, max_size=2),
    granularity=st.sampled_from(["hook", "turn"]),
    entry=st.sampled_from(["invoke", "ainvoke"]),
)
def test_each_call_is_executed_once_and_in_order(batches: list[list[str]], granularity: Any, entry: Any) -> None:
    done: list[tuple[int, int]] = []

    def made(name: str) -> Any:
        def do(batch: int, place: int) -> str:
            if name.startswith("pausing"):
                interrupt(f"{batch}/{place}")
            done.append((batch, place))
            return f"{batch}/{place}"

        return tool(name, description="Do it.", sequential="other" not in name)(do)

    script = [
        ai("", *(tool_call(kind, {"batch": n, "place": i}, f"c{n}-{i}") for i, kind in enumerate(batch)))
        for n, batch in enumerate(batches)
    ]
    model = ScriptedModel(*script, "done")
    agent = create_agent(model, [made(kind) for kind in KINDS], checkpointer=InMemorySaver(), granularity=granularity)
    ended = run(agent, "go", thread("t"), entry=entry)
    while ended.interrupts:
        answer = {asked.id: "yes" for asked in ended.interrupts}
        ended = run(agent, Command(resume=answer), thread("t"), entry=entry)

    calls = [(n, i, kind) for n, batch in enumerate(batches) for i, kind in enumerate(batch)]
    assert sorted(done) == [(n, i) for n, i, _ in calls]
    in_line = [(n, i) for n, i, kind in calls if "other" not in kind]
    assert [one for one in done if one in in_line] == in_line
    assert ended.text == "done" and model.calls == len(batches) + 1
    results = [m for m in ended.messages if isinstance(m, ToolMessage)]
    assert sorted(m.text for m in results) == sorted(f"{n}/{i}" for n, i, _ in calls)
