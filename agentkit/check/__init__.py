"""Checks of graphs and agents before they run: `check(graph)` gives a `Report`, `barrier` mends one of the findings.

Reading a graph runs none of its code. Every rule has a code that never changes its meaning, and a page in
`docs/checks/`.
"""

from agentkit.check.checking import check
from agentkit.check.findings import Finding, Place, Report, Severity, Suppressed, ignore
from agentkit.check.formats import as_json, as_sarif, as_text
from agentkit.check.mending import barrier
from agentkit.check.rule import RULES, Rule

__all__ = [
    "RULES",
    "Finding",
    "Place",
    "Report",
    "Rule",
    "Severity",
    "Suppressed",
    "as_json",
    "as_sarif",
    "as_text",
    "barrier",
    "check",
    "ignore",
]
