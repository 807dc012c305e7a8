"""What the tests of shipped middleware share: a desk of tools, and people who decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from agentkit.ledger import Ledger
from agentkit.testing import ENTRY_POINTS, EntryPoint


@dataclass
class Desk:
    """Tools that remember what they were run with."""

    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def tool(self, name: str, does: Any = None, **contract: Any) -> BaseTool:
        """A tool `NAME(x: int = 0, note: str = "")` that says so; `does(x)` gives its result instead."""

        def run(x: int = 0, note: str = "") -> Any:
            self.ran.append((name, {"x": x} | ({"note": note} if note else {})))
            return f"{name} {x}" if does is None else does(x)

        metadata = {"agentkit": contract} if contract else None
        return StructuredTool.from_function(run, name=name, description=f"Does {name}.", metadata=metadata)

    @property
    def names(self) -> list[str]:
        """The tools that were run, in alphabetical order: parallel calls run in any."""
        return sorted(name for name, _ in self.ran)

    @property
    def values(self) -> list[int]:
        """The arguments `x`, sorted."""
        return sorted(args["x"] for _, args in self.ran)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture(params=ENTRY_POINTS)
def entry(request: pytest.FixtureRequest) -> EntryPoint:
    """Each of the four ways into an agent."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=["invoke", "ainvoke"])
def call(request: pytest.FixtureRequest) -> EntryPoint:
    """The two ways that return a result."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=["hook", "turn"])
def granularity(request: pytest.FixtureRequest) -> str:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger("memory:") as opened:
        yield opened


def texts(messages: Sequence[Any]) -> list[str]:
    return [str(m.text) for m in messages]
