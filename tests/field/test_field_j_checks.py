"""Field reports, family J: what the shape of a graph does that nobody drew, told before it runs.

And the checks' part of two records of other families: LC-40136 and LG-7988 on the graph that LangChain or a user built.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from langchain.agents import create_agent as langchain_agent
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.tools import tool
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from agentkit import barrier, create_agent
from agentkit.check import check
from agentkit.errors import DuplicateTool
from agentkit.testing import EntryPoint, ScriptedModel, run, tool_call
from agentkit.testing import ai as answer


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def node(name: str) -> Callable[[State], dict[str, Any]]:
    def logs(state: State) -> dict[str, Any]:
        return {"log": [name]}

    return logs


def graph(*edges: tuple[Any, str], nodes: str = "", defer: str = "") -> Any:
    builder: Any = StateGraph(State)
    names = {*nodes.split()}
    for start, end in edges:
        names |= {start, end} if isinstance(start, str) else {*start, end}
    for name in sorted(names - {START, END}):
        builder.add_node(name, node(name), defer=name == defer)
    for start, end in edges:
        builder.add_edge(start if isinstance(start, str) else list(start), end)
    return builder


def ran(builder: Any) -> list[str]:
    log: list[str] = builder.compile().invoke({"log": []})["log"]
    return log


# ---- LG-4026


def test_lg_4026_branches_of_unequal_length_are_found_and_their_node_does_run_twice() -> None:
    builder = graph((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("d", "e"), ("c", "e"))
    assert Counter(ran(builder))["e"] == 2
    (finding,) = check(builder).findings
    assert (finding.code, finding.node, finding.severity) == ("AK101", "e", "error")
    assert "super-steps 3 and 4" in finding.message


def test_lg_4026_the_barrier_that_the_finding_names_lets_it_run_once() -> None:
    builder = graph((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("d", "e"), ("c", "e"))
    assert check(builder).findings[0].remedy == "agentkit.barrier(builder, ['c', 'd'], 'e')"
    barrier(builder, ["c", "d"], "e")
    assert Counter(ran(builder))["e"] == 1
    assert check(builder).codes == []


async def test_lg_4026_the_barrier_holds_in_async_runs_and_streams() -> None:
    builder = graph((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("d", "e"), ("c", "e"))
    compiled = barrier(builder, ["c", "d"], "e").compile()
    assert (await compiled.ainvoke({"log": []}))["log"].count("e") == 1
    seen = [name async for update in compiled.astream({"log": []}) for name in update]
    assert seen.count("e") == 1


# ---- LGJS-2666


def test_lgjs_2666_a_join_over_branches_that_exclude_each_other_is_found() -> None:
    def choose(state: State) -> Literal["a", "b"]:
        return "a"

    builder = graph((("a", "b"), "c"), ("c", "d"))
    builder.add_conditional_edges(START, choose)
    assert ran(builder) == ["a"]
    (finding,) = check(builder).findings
    assert (finding.code, finding.node, finding.severity) == ("AK102", "c", "error")
    assert "'b', which does not run" in finding.message


# ---- LG-6735


def test_lg_6735_an_orphan_is_found() -> None:
    (finding,) = check(graph((START, "a"), nodes="orphan")).findings
    assert (finding.code, finding.node, finding.severity) == ("AK103", "orphan", "error")


def test_lg_6735_a_circle_without_a_way_out_is_found() -> None:
    builder = graph((START, "a"), ("a", "a"))
    with pytest.raises(GraphRecursionError):
        builder.compile().invoke({"log": []}, {"recursion_limit": 10})
    (finding,) = check(builder).findings
    assert (finding.code, finding.node, finding.severity) == ("AK104", "a", "error")


def test_lg_6735_a_value_that_the_path_map_lacks_is_found() -> None:
    def route(state: State) -> str:
        return "lost" if state["log"] else "a"

    builder = graph(nodes="a")
    builder.add_conditional_edges(START, route, {"a": "a"})
    with pytest.raises(KeyError):
        builder.compile().invoke({"log": ["x"]})
    (finding,) = check(builder).findings
    assert (finding.code, finding.severity) == ("AK201", "error")
    assert "can return 'lost'" in finding.message


def test_lg_6735_a_node_that_only_a_send_reaches_is_no_orphan() -> None:
    def dispatch(state: State) -> list[Send]:
        return [Send("work", {"log": []}) for _ in range(2)]

    builder = graph((START, "split"), nodes="work")
    builder.add_conditional_edges("split", dispatch)
    assert ran(builder) == ["split", "work", "work"]
    assert check(builder).codes == []


# ---- LG-6005


def test_lg_6005_a_deferred_node_beside_a_long_unrelated_branch_gets_a_hint() -> None:
    builder = graph((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "c2"), ("c2", "c3"), defer="d")
    assert ran(builder)[-1] == "d"
    (finding,) = check(builder).findings
    assert (finding.code, finding.node, finding.severity) == ("AK106", "d", "note")
    assert "'c3'" in finding.message


# ---- LC-40136 on the raw graph


class Again(AgentMiddleware[Any, Any, Any]):
    calls = 0

    @hook_config(can_jump_to=["model"])
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        self.calls += 1
        return {"jump_to": "model"} if self.calls == 1 else None


def test_lc_40136_the_raw_graph_lacks_the_target_of_a_declared_jump() -> None:
    raw = langchain_agent(ScriptedModel("x"), middleware=[Again()])
    with pytest.raises(KeyError):
        raw.invoke({"messages": "hi"})  # type: ignore[call-overload]  # any form of a message will do
    for graph_ in (raw, raw.builder):
        finding = next(found for found in check(graph_).findings if found.code == "AK201")
        assert (finding.node, finding.severity) == ("Again.before_model", "error")
        assert "declares a jump to 'model'" in finding.message


def test_lc_40136_agentkit_draws_that_edge(entry: EntryPoint) -> None:
    again = Again()
    agent = create_agent(ScriptedModel("done"), middleware=[again])
    assert check(agent).codes == []
    assert run(agent, "hi", entry=entry).text == "done"
    assert again.calls == 2


# ---- LG-7988 on the raw graph


@tool("act")
def harmless() -> str:
    """Look."""
    return "looked"


@tool("act")
def dangerous() -> str:
    """Delete."""
    return "deleted"


def test_lg_7988_two_tools_of_one_name_on_a_models_binding_are_found() -> None:
    model = ScriptedModel(answer("", tool_call("act", {}))).bind_tools([harmless, dangerous])

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    (finding,) = check(builder).findings
    assert (finding.code, finding.node, finding.severity) == ("AK601", "ask", "error")
    assert "2 tools named 'act'" in finding.message


def test_lg_7988_an_agent_of_agentkit_is_not_built() -> None:
    with pytest.raises(DuplicateTool):
        create_agent(ScriptedModel("x"), [harmless, dangerous])
