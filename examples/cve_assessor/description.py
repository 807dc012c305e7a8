"""A sub-graph of its own: describes a vulnerability in the terms of ATT&CK. Its notes do not leak into the assessor."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from examples.cve_assessor.records import Record

__all__ = ["Technique", "description"]


class Technique(TypedDict):
    """A technique of ATT&CK."""

    id: str
    name: str
    tactic: str


class Notes(TypedDict, total=False):
    """What the sub-graph works with; only `techniques` and `description` come out."""

    record: Record
    hints: list[str]
    techniques: list[Technique]
    description: str


class Given(TypedDict):
    record: Record


class Described(TypedDict):
    techniques: list[Technique]
    description: str


_WORDS: dict[str, tuple[str, ...]] = {
    "backdoor": ("backdoor", "tarballs"),
    "local": ("local user", "root", "privileges"),
    "client": ("html page", "url that", "redirect"),
    "exhaustion": ("exhausts",),
    "memory": ("reads past", "private keys"),
    "service": ("server", "application", "services", "sshd"),
}
"""Words of a summary, by what they hint at; the first hint that has a technique leads."""

_TECHNIQUES: dict[str, Technique] = {
    "backdoor": {"id": "T1195.002", "name": "Compromise Software Supply Chain", "tactic": "Initial Access"},
    "local": {"id": "T1068", "name": "Exploitation for Privilege Escalation", "tactic": "Privilege Escalation"},
    "client": {"id": "T1203", "name": "Exploitation for Client Execution", "tactic": "Execution"},
    "exhaustion": {"id": "T1499", "name": "Endpoint Denial of Service", "tactic": "Impact"},
    "memory": {"id": "T1212", "name": "Exploitation for Credential Access", "tactic": "Credential Access"},
    "service": {"id": "T1190", "name": "Exploit Public-Facing Application", "tactic": "Initial Access"},
}


def find_hints(state: Notes) -> Notes:
    text = state["record"]["summary"].lower()
    return {"hints": [hint for hint, words in _WORDS.items() if any(word in text for word in words)]}


def map_techniques(state: Notes) -> Notes:
    return {"techniques": [_TECHNIQUES[hint] for hint in state["hints"]][:2]}


def describe(state: Notes) -> Notes:
    what = state["record"]
    used = " and ".join(f"{each['name']} ({each['id']})" for each in state["techniques"]) or "no technique known here"
    cause = f", through {', '.join(what['weaknesses'])}" if what["weaknesses"] else ""
    return {"description": f"An attacker of {what['product']} ({what['affected_versions']}) can use {used}{cause}."}


def description() -> CompiledStateGraph[Any, Any, Any, Any]:
    """The sub-graph: hints, techniques, a sentence."""
    builder = StateGraph(Notes, input_schema=Given, output_schema=Described)
    builder.add_sequence([find_hints, map_techniques, describe])
    builder.add_edge(START, "find_hints")
    return builder.compile(name="description")
