"""The assessor: two branches of unequal length that meet, as it was first drawn and as it is right.

    START -> get_cve_data -> generate_asd_data -> normalize -> generate_cvss_vector -> severity
    START -> get_cvss_data -> (no score on record?) get_cvss_statement_data -> normalize

As drawn, `normalize` and everything after it run twice whenever there is a recorded score: once when the short branch
arrives, with half of the data, and again for the long one. Told by
`agentkit check examples.cve_assessor.graph:as_drawn`.
"""

from __future__ import annotations

from operator import add
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from agentkit import barrier
from examples.cve_assessor import records
from examples.cve_assessor.description import Technique, description
from examples.cve_assessor.vectors import Attack, Scored, read_attack, scored, vector_of

__all__ = ["Assessment", "as_drawn", "assessor", "batch"]


class Assessment(TypedDict):
    """One vulnerability, step by step."""

    cve_id: str
    record: NotRequired[records.Record]
    recorded: NotRequired[records.Cvss | None]
    attack: NotRequired[Attack]
    techniques: NotRequired[list[Technique]]
    description: NotRequired[str]
    facts: NotRequired[dict[str, Any]]
    vector: NotRequired[str]
    rating: NotRequired[Scored]
    steps: Annotated[list[str], add]
    """What has run, in order; each entry of `generate_cvss_vector` stands for a call of a model that is paid for."""


_DESCRIBE = description()


def get_cve_data(state: Assessment) -> dict[str, Any]:
    return {"record": records.record(state["cve_id"]), "steps": ["get_cve_data"]}


def generate_asd_data(state: Assessment) -> dict[str, Any]:
    described = _DESCRIBE.invoke({"record": state["record"]})
    return {
        "techniques": described["techniques"],
        "description": described["description"],
        "steps": ["generate_asd_data"],
    }


def get_cvss_data(state: Assessment) -> dict[str, Any]:
    return {"recorded": records.score(state["cve_id"]), "steps": ["get_cvss_data"]}


def needs_statement(state: Assessment) -> Literal["get_cvss_statement_data", "normalize"]:
    return "normalize" if state.get("recorded") else "get_cvss_statement_data"


def get_cvss_statement_data(state: Assessment) -> dict[str, Any]:
    summary = records.record(state["cve_id"])["summary"]
    return {"attack": read_attack(summary), "steps": ["get_cvss_statement_data"]}


def normalize(state: Assessment) -> dict[str, Any]:
    what = state.get("record")
    facts = {
        "title": f"{what['product']} {what['affected_versions']}" if what else None,
        "basis": "recorded" if state.get("recorded") else "estimated",
        "description": state.get("description"),
    }
    return {"facts": facts, "steps": ["normalize"]}


def generate_cvss_vector(state: Assessment) -> dict[str, Any]:
    recorded = state.get("recorded")
    vector = recorded["vector"] if recorded else vector_of(state["attack"])
    return {"vector": vector, "steps": ["generate_cvss_vector"]}


def severity(state: Assessment) -> dict[str, Any]:
    return {"rating": scored(state["vector"]), "steps": ["severity"]}


def as_drawn() -> StateGraph[Any, Any, Any, Any]:
    """The graph with the fault: nothing waits where the branches meet."""
    builder = StateGraph(Assessment)
    for node in (get_cve_data, generate_asd_data, get_cvss_data, get_cvss_statement_data, normalize):
        builder.add_node(node)
    builder.add_node(generate_cvss_vector)
    builder.add_node(severity)
    builder.add_edge(START, "get_cve_data")
    builder.add_edge(START, "get_cvss_data")
    builder.add_edge("get_cve_data", "generate_asd_data")
    builder.add_edge("generate_asd_data", "normalize")
    builder.add_conditional_edges("get_cvss_data", needs_statement)
    builder.add_edge("get_cvss_statement_data", "normalize")
    builder.add_edge("normalize", "generate_cvss_vector")
    builder.add_edge("generate_cvss_vector", "severity")
    builder.add_edge("severity", END)
    return builder


def assessor() -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph that is right: both branches meet at a barrier."""
    builder = as_drawn()
    barrier(
        builder,
        ["generate_asd_data", ("get_cvss_data", "get_cvss_statement_data")],
        "normalize",
        name="sync_barrier",
    )
    return builder.compile(name="assessor")


# ---- many at once


class Batch(TypedDict):
    """Many vulnerabilities, each assessed by itself."""

    cve_ids: list[str]
    assessed: Annotated[list[Assessment], add]
    ranking: NotRequired[list[str]]


_ASSESS = assessor()


def start_each(state: Batch) -> list[Send]:
    return [Send("assess", {"cve_id": cve_id, "steps": []}) for cve_id in state["cve_ids"]]


def assess(state: Assessment) -> dict[str, Any]:
    return {"assessed": [_ASSESS.invoke(state)]}


def rank(state: Batch) -> dict[str, Any]:
    worst_first = sorted(state["assessed"], key=lambda each: (-each["rating"]["score"], each["cve_id"]))
    return {"ranking": [each["cve_id"] for each in worst_first]}


def batch() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Map and reduce: one task per CVE, as many as the input names; then the worst first."""
    builder = StateGraph(Batch)
    builder.add_node("assess", assess, input_schema=Assessment)
    builder.add_node("rank", rank)
    builder.add_conditional_edges(START, start_each, ["assess"])
    builder.add_edge("assess", "rank")
    builder.add_edge("rank", END)
    return builder.compile(name="batch")
