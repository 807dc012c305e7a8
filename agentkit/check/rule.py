"""What a rule is, and the table of all rules. A rule's documentation page is the docstring of its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from langgraph.types import Checkpointer

from agentkit.check.findings import Place, Severity
from agentkit.check.shape import Shape
from agentkit.check.supersteps import Walk, walk

__all__ = ["RULES", "Given", "Hit", "Rule", "rule"]


@dataclass(frozen=True)
class Given:
    """What a rule looks at."""

    shape: Shape
    nested: bool = False
    """Whether the graph is a node of another."""
    durable: bool = False
    """Whether threads have to outlive the process."""
    checkpointer: Checkpointer = None
    """The saver that the graph, or the graph around it, is compiled with."""

    @cached_property
    def walk(self) -> Walk:
        """The walk over all ways through the graph."""
        return walk(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """What a rule has found: a finding without what the rule itself says."""

    message: str
    remedy: str
    node: str | None = None
    edge: tuple[str, str] | None = None
    place: Place | None = None
    severity: Severity | None = None
    """Where it differs from the rule's."""


Find: TypeAlias = Callable[[Given], Iterable[Hit]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    code: str
    """Never reused, and never given another meaning."""
    name: str
    severity: Severity
    find: Find

    @property
    def summary(self) -> str:
        """The first paragraph of the page, on one line."""
        return " ".join(self.text.partition("\n\n")[0].split())

    @property
    def text(self) -> str:
        """The page's text."""
        return inspect.getdoc(self.find) or ""

    @property
    def page(self) -> str:
        """The rule's page of the documentation."""
        return f"# {self.code}: {self.name}\n\nSeverity: **{self.severity}**\n\n{self.text}\n\n{_SILENCE}".replace(
            "CODE", self.code
        )


RULES: Final[dict[str, Rule]] = {}
"""All rules, by code."""


def rule(code: str, name: str, severity: Severity) -> Callable[[Find], Find]:
    """Enter a rule into the table."""

    def entered(find: Find) -> Find:
        assert code not in RULES, f"{code} is taken"
        RULES[code] = Rule(code, name, severity, find)
        return find

    return entered


_SILENCE: Final = """## Silence it

At one node: `add_node(..., metadata=ignore("CODE", because="..."))` with `from agentkit.check import ignore`; the
reason stays in the report. Everywhere: `check(graph, ignore=["CODE"])`, or `agentkit check --ignore CODE`.
"""
