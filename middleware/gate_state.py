"""What gates keep in the state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, NotRequired, get_type_hints

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
from langchain_core.tools import BaseTool
from typing_extensions import TypedDict

from agentkit.usage import Used

__all__ = ["GateState", "joined", "writers"]


def _merged(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    return {**(old or {}), **new}


def _united(old: list[str] | None, new: list[str]) -> list[str]:
    return sorted({*(old or []), *new})


class GateState(AgentState[Any]):
    """What `Gates` adds to the state."""

    remaining_steps: NotRequired[Annotated[int, OmitFromInput]]
    """Model calls left after the current one, if there is a `StepBudget`. Hooks and tools may write it."""
    agentkit_gates: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, _merged]]
    agentkit_asked_again: NotRequired[Annotated[list[Used], PrivateStateAttr]]  # written by the loop
    agentkit_writers: NotRequired[Annotated[list[str], PrivateStateAttr, _united]]


def joined(schema: type) -> type:
    """The state schema with the fields of another."""
    make: Any = TypedDict
    fields = {**get_type_hints(schema, include_extras=True), **get_type_hints(GateState, include_extras=True)}
    joined: type = make("GateState", fields)
    return joined


def writers(tools: Iterable[Any]) -> list[str]:
    """Names of the tools whose contract says that they write."""
    ours = [tool for tool in tools if isinstance(tool, BaseTool)]  # not a provider's
    return [tool.name for tool in ours if ((tool.metadata or {}).get("agentkit") or {}).get("effect") == "write"]
