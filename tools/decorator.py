"""`@tool` with a contract, and contracts for tools that come from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, overload

from langchain_core.tools import BaseTool
from langchain_core.tools import tool as langchain_tool

from agentkit.contract import CONTRACT, Contract, Effect, OnError, contract_of

__all__ = ["tool", "with_contract"]

ToolT = TypeVar("ToolT", bound=BaseTool)


@overload
def tool(function: Callable[..., Any], /) -> BaseTool: ...


@overload
def tool(
    name: str | None = None,
    /,
    *,
    effect: Effect | None = None,
    idempotent: bool = False,
    transactional: bool = False,
    timeout: float | None = None,
    max_concurrency: int | None = None,
    sequential: bool = False,
    writes: Mapping[str, str] | None = None,
    on_error: OnError = "raise",
    risk: str | None = None,
    **langchain: Any,
) -> Callable[[Callable[..., Any]], BaseTool]: ...


def tool(
    name: str | Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect | None = None,
    idempotent: bool = False,
    transactional: bool = False,
    timeout: float | None = None,
    max_concurrency: int | None = None,
    sequential: bool = False,
    writes: Mapping[str, str] | None = None,
    on_error: OnError = "raise",
    risk: str | None = None,
    **langchain: Any,
) -> BaseTool | Callable[[Callable[..., Any]], BaseTool]:
    """LangChain's `tool` decorator, with a contract.

    Args:
        name: The tool's name. Default: the function's. Without arguments, `@tool` alone works too.
        effect: `"read"` if the tool changes nothing, `"write"` if it changes something. Default: unknown, which is
            treated as a write.
        idempotent: Repeating a call with the same idempotency key is harmless. Default: no.
        transactional: The whole effect happens inside of `Ledger.transaction()`, or not at all. Default: no.
        timeout: Seconds per execution; then the call is answered with an error result. Default: none.
        max_concurrency: Simultaneous executions of this tool in the process. Default: no limit.
        sequential: Calls of one answer to sequential tools run one after the other, in the model's order. Default: no.
        writes: State fields filled from the result, by key of the result. Default: none.
        on_error: `"tell"` makes any exception of the tool an error result; `"raise"` ends the run with those that are
            no `ToolException`. Default: `"raise"`.
        risk: A free label, for policies that ask before a call. Default: none.
        langchain: What LangChain's decorator takes, e.g. `description`, `args_schema`, `return_direct`.

    Raises:
        InvalidContract: If a value of the contract cannot be meant.
    """
    contract = Contract(
        effect=effect,
        idempotent=idempotent,
        transactional=transactional,
        timeout=timeout,
        max_concurrency=max_concurrency,
        sequential=sequential,
        writes=writes or {},
        on_error=on_error,
        risk=risk,
    )

    def make(function: Callable[..., Any]) -> BaseTool:
        named = (name,) if isinstance(name, str) else ()
        made: BaseTool = langchain_tool(*named, **langchain)(function)
        return _carrying(made, contract)

    return make(name) if callable(name) else make


def with_contract(tool: ToolT, *, trust_hints: bool = False, **contract: Any) -> ToolT:
    """A copy of any LangChain tool that carries a contract; the fields it already has are kept unless given anew.

    ```python
    tools = [with_contract(t, effect="read", timeout=10) for t in await client.get_tools()]
    ```

    Args:
        tool: The tool: your own, a toolkit's, an MCP server's.
        trust_hints: Believe an MCP server's hints: `readOnlyHint` means `effect="read"`, `idempotentHint` means
            `idempotent`. Only for servers that you trust: a hint is the server's own word. Default: no.
        contract: Fields of `Contract`.

    Raises:
        InvalidContract: If a value of the contract cannot be meant.
        TypeError: If a field is none of the contract's.
    """
    own = contract_of(tool)
    kept = {field.name: getattr(own, field.name) for field in fields(Contract)}
    hinted = _hinted(tool.metadata or {}) if trust_hints else {}
    return _carrying(tool.model_copy(), Contract(**{**kept, **hinted, **contract}))


def _hinted(metadata: Mapping[str, Any]) -> dict[str, Any]:
    read_only = metadata.get("readOnlyHint")
    effect = {} if read_only is None else {"effect": "read" if read_only else "write"}
    return {**effect, **({"idempotent": True} if metadata.get("idempotentHint") else {})}


def _carrying(tool: ToolT, contract: Contract) -> ToolT:
    if record := contract.record():
        tool.metadata = {**(tool.metadata or {}), CONTRACT: record}
    return tool
