"""Test doubles and checks for agents and middleware, for our users as much as for us.

`ScriptedModel` and the builders around it need nothing but LangChain. `MiddlewareContract` needs pytest, and is
imported only when asked for.
"""

from typing import TYPE_CHECKING, Any

from agentkit.testing.messages import ScriptError, ai, invalid_call, tool_call
from agentkit.testing.model import Bind, Request, ScriptedModel, Step
from agentkit.testing.pairing import assert_paired, pairing_problems
from agentkit.testing.running import ENTRY_POINTS, EntryPoint, RunResult, arun, comparable, run

if TYPE_CHECKING:
    from agentkit.testing.contract import MiddlewareContract

__all__ = [
    "ENTRY_POINTS",
    "Bind",
    "EntryPoint",
    "MiddlewareContract",
    "Request",
    "RunResult",
    "ScriptError",
    "ScriptedModel",
    "Step",
    "ai",
    "arun",
    "assert_paired",
    "comparable",
    "invalid_call",
    "pairing_problems",
    "run",
    "tool_call",
]


def __getattr__(name: str) -> Any:
    if name == "MiddlewareContract":
        from agentkit.testing.contract import MiddlewareContract

        return MiddlewareContract
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
