"""What the field tests share: entry points and tools that remember their executions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

from agentkit.testing import ENTRY_POINTS, EntryPoint


@dataclass
class Recorded:
    """A tool and what it was run with."""

    ran: list[Any] = field(default_factory=list)
    tool: BaseTool = None  # type: ignore[assignment]  # set by the fixture


@pytest.fixture(params=ENTRY_POINTS)
def entry(request: pytest.FixtureRequest) -> EntryPoint:
    """Each of the four ways into an agent."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=["invoke", "ainvoke"])
def call(request: pytest.FixtureRequest) -> EntryPoint:
    """The two ways that return a result."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def add() -> Recorded:
    """A tool `add(a, b)`."""
    made = Recorded()

    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        made.ran.append((a, b))
        return a + b

    made.tool = add
    return made


@pytest.fixture
def act() -> Callable[..., Recorded]:
    """Makes a tool of a name with one optional argument `x`, which returns `NAME x`, or does what it is given."""

    def make(name: str, does: Callable[[int], Any] | None = None, **options: Any) -> Recorded:
        made = Recorded()

        def run(x: int = 0) -> Any:
            made.ran.append(x)
            return f"{name} {x}" if does is None else does(x)

        made.tool = tool(name, description=f"Does {name}.", **options)(run)
        return made

    return make
