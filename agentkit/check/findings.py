"""What a check found, as plain data: findings, and the report that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

__all__ = ["IGNORE", "SEVERITIES", "Finding", "Place", "Report", "Severity", "Suppressed", "ignore"]

Severity: TypeAlias = Literal["error", "warning", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
IGNORE: Final = "check_ignore"
"""The key of a node's metadata that holds the codes to be silent about there."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a source file."""

    path: str
    """As Python knows the file."""
    line: int
    """From 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, or probably is."""

    code: str
    """The rule's code, such as `AK101`; it never changes its meaning."""
    name: str
    """The rule's name, such as `unequal-fan-in`."""
    severity: Severity
    """`error`: wrong whenever it is reached; `warning`: probably not meant; `note`: worth knowing."""
    message: str
    """What is wrong here."""
    remedy: str
    """How to mend it here."""
    node: str | None = None
    """The node it is about; `outer/inner` in a sub-graph."""
    edge: tuple[str, str] | None = None
    """The edge it is about."""
    place: Place | None = None
    """Where in the source, if it is about code."""

    @property
    def subject(self) -> str:
        """The node or edge in words."""
        if self.node is not None:
            return self.node
        return " -> ".join(self.edge) if self.edge else "the graph"


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that somebody has asked to be silent about."""

    finding: Finding
    because: str
    """The reason that was given; empty if none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a check found, worst first."""

    subject: str
    """What was checked."""
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    complete: bool = True
    """Whether every way through the graph was followed; a very large graph is given up after a while."""

    @property
    def codes(self) -> list[str]:
        """The codes that were found, each once, in order of severity."""
        return list(dict.fromkeys(finding.code for finding in self.findings))

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings of severity `error`."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.errors

    def __str__(self) -> str:
        """The report as text; see `agentkit.check.formats`."""
        from agentkit.check.formats import as_text  # formats read reports

        return as_text([self])


def ignore(*codes: str, because: str = "") -> dict[str, Any]:
    """The metadata of a node that silences rules there: `add_node("d", d, metadata=ignore("AK101", because="..."))`.

    Args:
        codes: The rules' codes.
        because: Why; it stays in the report.
    """
    return {IGNORE: dict.fromkeys(codes, because)}


def ignored(metadata: Mapping[str, Any] | None) -> dict[str, str]:
    """The codes that a node's metadata silences, each with its reason; a plain list of codes does as well."""
    given = (metadata or {}).get(IGNORE) or {}
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, "")
