"""The tool contract: `@tool`, `with_contract`, and what reads them."""

if __name__ != "agentkit.tools":
    raise ImportError("import this package as agentkit.tools")

from agentkit.arguments import argument_problems
from agentkit.contract import Contract, Effect, IdempotencyKey, OnError, contract_of, idempotency_key
from agentkit.tools.decorator import tool, with_contract

__all__ = [
    "Contract",
    "Effect",
    "IdempotencyKey",
    "OnError",
    "argument_problems",
    "contract_of",
    "idempotency_key",
    "tool",
    "with_contract",
]
