"""The walk over a graph says what the engine does: on random graphs, with every way of choosing."""

from __future__ import annotations

import itertools
import operator
import os
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from agentkit.check import barrier, check
from agentkit.check.shape import shape_of
from agentkit.check.supersteps import walk
from tests.check.corpus import drawn

QUICK = settings(
    max_examples=int(os.environ.get("CHECK_EXAMPLES", "30")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate],  # a failing graph is small enough to read
)


class Picks(TypedDict):
    picks: dict[str, str]
    log: Annotated[list[str], operator.add]


Edges = tuple[
    tuple[tuple[str, str], ...], tuple[tuple[str, tuple[str, ...]], ...], tuple[tuple[tuple[str, ...], str], ...], str
]


@st.composite
def graphs(draw: Any) -> Edges:
    """Graphs without loops: plain edges, routers, list edges and perhaps a deferred node."""
    names = [f"n{index}" for index in range(draw(st.integers(3, 7)))]
    edges, routers, joins = [(START, names[0])], [], []
    for index, name in enumerate(names[1:], 1):
        before = names[:index]
        kind = draw(st.sampled_from(["edge", "edges", "join"])) if index > 1 else "edge"
        sources = draw(st.lists(st.sampled_from(before), min_size=1, max_size=3, unique=True))
        if kind == "join" and len(sources) > 1:
            joins.append((tuple(sources), name))
        else:
            edges += [(source, name) for source in (sources if kind == "edges" else sources[:1])]
    for name in names[:-1]:
        if draw(st.integers(0, 3)) == 0:
            later = names[names.index(name) + 1 :]
            ends = draw(st.lists(st.sampled_from(later), min_size=1, max_size=2, unique=True))
            routers.append((name, tuple(ends)))
    deferred = draw(st.sampled_from(["", "", names[-1]]))
    return tuple(edges), tuple(routers), tuple(joins), deferred


def built(graph: Edges) -> StateGraph[Any, Any, Any, Any]:
    edges, routers, joins, deferred = graph
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Picks)
    names = {end for _, end in edges} | {end for _, end in joins}
    for name in sorted(names):
        builder.add_node(name, node(name), defer=name == deferred)
    for source, end in edges:
        builder.add_edge(source, end)
    for sources, end in joins:
        builder.add_edge(list(sources), end)
    for source, ends in routers:
        builder.add_conditional_edges(source, router(source), list(ends))
    return builder


def node(name: str) -> Callable[[Picks], dict[str, Any]]:
    return lambda state: {"log": [name]}


def router(source: str) -> Callable[[Picks], str]:
    return lambda state: state["picks"][source]


def runs(graph: Edges) -> list[Counter[str]]:
    """How often each node runs in the engine, for every combination of choices."""
    compiled = built(graph).compile()
    routers = graph[1]
    every = []
    for picked in itertools.product(*(ends for _, ends in routers)):
        picks = dict(zip((source for source, _ in routers), picked, strict=True))
        every.append(Counter(compiled.invoke({"picks": picks, "log": []}, {"recursion_limit": 50})["log"]))
    return every


@QUICK
@given(graphs())
def test_a_node_is_said_to_run_twice_exactly_if_the_engine_runs_it_twice(graph: Edges) -> None:
    seen = walk(shape_of(built(graph)))
    twice = {name for counts in runs(graph) for name, count in counts.items() if count > 1}
    assert {*seen.doubled, *itertools.chain(*seen.after.values())} == twice
    assert seen.complete
    assert seen.reached == {name for counts in runs(graph) for name in counts}


def test_the_steps_that_a_finding_names_are_the_engines() -> None:
    builder = drawn((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "e"), ("d", "e"), ("e", "f"))
    steps = [
        event["step"] for event in builder.compile().stream({"log": []}, stream_mode="debug")
        if event["type"] == "task" and event["payload"]["name"] == "e"
    ]  # fmt: skip
    assert steps == [3, 4]
    (finding,) = check(builder).findings
    assert "runs in super-steps 3 and 4" in finding.message
    assert finding.message.endswith("after it 'f' run again, too")


def test_a_finding_says_which_choices_bring_it_about() -> None:
    builder = drawn((START, "data"), (START, "score"), ("data", "describe"), ("describe", "join"), ("extra", "join"))
    builder.add_conditional_edges("score", lambda state: state["text"], ["extra", "join"])
    (finding,) = check(builder).findings
    assert "when 'score' goes to 'join'" in finding.message
    assert finding.remedy == "agentkit.barrier(builder, ['describe', ('extra', 'score')], 'join')"


def test_what_a_finding_proposes_mends_it() -> None:
    builder = drawn((START, "data"), (START, "score"), ("data", "describe"), ("describe", "join"), ("extra", "join"))
    builder.add_conditional_edges("score", lambda state: state["text"], ["extra", "join"])
    for _ in range(3):  # one finding after the other
        if not (findings := check(builder).findings):
            break
        eval(findings[0].remedy, {"agentkit": __import__("agentkit"), "builder": builder})
    assert check(builder).codes == []
    for text in ("extra", "join"):
        log = builder.compile().invoke({"log": [], "text": text})["log"]
        assert log.count("join") == 1
        assert {"describe", "join"} <= {*log}


@QUICK
@given(graphs())
def test_a_proposed_barrier_lets_the_node_run_once_on_every_way(graph: Edges) -> None:
    import agentkit

    builder = built(graph)
    found = [finding for finding in check(builder).findings if finding.remedy.startswith("agentkit.barrier")]
    if not found or found[0].node is None:
        return
    before = runs(graph)
    eval(found[0].remedy, {"agentkit": agentkit, "builder": builder})
    compiled = builder.compile()
    for number, picked in enumerate(itertools.product(*(ends for _, ends in graph[1]))):
        picks = dict(zip((source for source, _ in graph[1]), picked, strict=True))
        log = compiled.invoke({"picks": picks, "log": []}, {"recursion_limit": 50})["log"]
        assert log.count(found[0].node) <= 1
        assert (found[0].node in log) == (found[0].node in before[number])


@pytest.mark.parametrize("size", [40])
def test_a_large_graph_is_walked_in_reasonable_time_or_given_up_aloud(size: int) -> None:
    builder = drawn((START, "s"), *(("s", f"a{index}") for index in range(size)), a0=lambda state: None)
    for index in range(size):
        builder.add_conditional_edges(f"a{index}", lambda state: state["text"], ["s", "__end__"])
    report = check(builder)
    assert not report.complete
    assert "too large" in str(report)


def test_a_barrier_keeps_the_other_edges_of_its_sources() -> None:
    builder = drawn((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "e"), ("d", "e"), ("c", "f"))
    barrier(builder, ["c", "d"], "e", name="wait")
    log = builder.compile().invoke({"log": []})["log"]
    assert (log.count("e"), log.count("f")) == (1, 1)
    assert "wait" in builder.nodes
