"""One execution of a tool under its contract: idempotency key, argument check, limit of simultaneous runs, time-out.

LangGraph's `ToolNode` looks after injection and results, and calls `invoke` or `ainvoke` on the tool. Here it is given
an `Execution` in the tool's place, beneath all wraps, so a retry's every attempt is one execution.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from threading import Lock, Thread
from typing import Any, Final
from weakref import finalize

from langchain.agents.middleware import ToolCallRequest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langgraph.errors import GraphBubbleUp, is_invalid_resume
from pydantic import ValidationError

from agentkit import executions
from agentkit.arguments import check_plain_schema, explain
from agentkit.contract import Contract, contract_of, idempotency_key, key_parameter
from agentkit.errors import MissingToolForm, ToolTimeout
from agentkit.slots import Slots

__all__ = ["Execution", "under_contract"]


def under_contract(request: ToolCallRequest) -> ToolCallRequest:
    """The request with its tool replaced by one execution of it."""
    if request.tool is None:
        return request
    return request.override(tool=Execution(request))  # type: ignore[arg-type]  # a stand-in, see the module


@dataclass(frozen=True, slots=True)
class _Terms:
    """What is looked up once per tool object."""

    contract: Contract
    slots: Slots | None
    key: str | None
    awaits: bool
    """Whether the async form is a coroutine of its own, not the sync form in a thread."""
    only_awaits: bool
    """Whether there is no sync form."""


_TERMS: Final[dict[int, _Terms]] = {}
_LOCK: Final = Lock()


def _terms_of(tool: BaseTool) -> _Terms:
    with _LOCK:
        if (known := _TERMS.get(id(tool))) is not None:
            return known
        contract = contract_of(tool)
        slots = Slots(contract.max_concurrency) if contract.max_concurrency else None
        terms = _Terms(contract, slots, key_parameter(tool), _awaits(tool), _only_awaits(tool))
        _TERMS[id(tool)] = terms
        finalize(tool, _TERMS.pop, id(tool), None)
        return terms


def _awaits(tool: BaseTool) -> bool:
    if isinstance(tool, StructuredTool | Tool):
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun


def _only_awaits(tool: BaseTool) -> bool:
    return isinstance(tool, StructuredTool | Tool) and tool.func is None


class Execution:
    """A tool as it is executed for one request; everything else is the tool's own."""

    def __init__(self, request: ToolCallRequest) -> None:
        """Execute the request's tool."""
        assert request.tool is not None
        self._tool = request.tool
        self._request = request
        self._terms = _terms_of(request.tool)

    def __getattr__(self, name: str) -> Any:
        """Whatever else is asked of the tool."""
        return getattr(self._tool, name)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Execute, sync."""
        if self._terms.only_awaits:
            raise MissingToolForm(self._tool.name)
        call = self._prepared(input)
        try:
            return self._run(partial(self._tool.invoke, call, config, **kwargs))
        except Exception as error:
            if (told := self._explained(error)) is not None:
                raise told from error
            raise

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Execute, async."""
        call = self._prepared(input)
        terms = self._terms
        try:
            if terms.awaits or not (terms.slots or terms.contract.timeout):
                return await self._arun(partial(self._tool.ainvoke, call, config, **kwargs))
            return await self._athread(partial(self._tool.invoke, call, config, **kwargs))
        except Exception as error:
            if (told := self._explained(error)) is not None:
                raise told from error
            raise

    # ---- before

    def _prepared(self, input: Any) -> Any:
        executions.note(self._request.tool_call["id"])
        check_plain_schema(self._tool, self._request.tool_call["args"])
        if self._terms.key is None:
            return input
        return {**input, "args": {**input["args"], self._terms.key: idempotency_key(self._request)}}

    def _explained(self, error: Exception) -> Exception | None:
        """What to say of arguments that the schema refused; None for any other error."""
        if isinstance(error, GraphBubbleUp) or is_invalid_resume(error):
            return None
        if isinstance(error, ValidationError) and error.title == self._schema_title():
            return explain(self._tool, self._request.tool_call["args"], error)
        if self._terms.contract.on_error == "tell":
            executions.tell(error)
        return None

    def _schema_title(self) -> str:
        schema = self._tool.get_input_schema()
        config: dict[str, Any] = getattr(schema, "model_config", {})
        return config.get("title") or schema.__name__

    # ---- the three ways to run

    def _run(self, call: Callable[[], Any]) -> Any:
        slots, timeout = self._terms.slots, self._terms.contract.timeout
        if slots is not None:
            slots.take()
        if timeout is not None:
            return self._result(self._in_thread(call), timeout)
        try:
            return call()
        finally:
            if slots is not None:
                slots.release()

    async def _arun(self, call: Callable[[], Any]) -> Any:
        slots, timeout = self._terms.slots, self._terms.contract.timeout
        if slots is not None:
            await slots.atake()
        try:
            return await (call() if timeout is None else self._in_time(call, timeout))
        finally:
            if slots is not None:
                slots.release()

    async def _in_time(self, call: Callable[[], Any], timeout: float) -> Any:
        try:
            async with asyncio.timeout(timeout) as scope:
                return await call()
        except TimeoutError as error:
            if scope.expired():
                raise self._timed_out() from error
            raise

    async def _athread(self, call: Callable[[], Any]) -> Any:
        """A sync tool in an async run: its thread cannot be stopped, so the slot is its own until it is done."""
        if self._terms.slots is not None:
            await self._terms.slots.atake()
        thread = self._in_thread(call)
        over = asyncio.wrap_future(thread)
        try:
            await asyncio.wait({over}, timeout=self._terms.contract.timeout)
        finally:
            if not over.done():
                over.cancel()  # nobody waits for it any more
        if over.cancelled():
            raise self._timed_out()
        over.exception()  # seen; the thread's own is raised, of which asyncio makes a copy
        return thread.result()

    # ---- threads that may be given up

    def _in_thread(self, call: Callable[[], Any]) -> Future[Any]:
        """Start a thread of its own: one that never ends blocks neither a pool nor the end of the process."""
        future: Future[Any] = Future()
        if self._terms.slots is not None:
            future.add_done_callback(partial(_released, self._terms.slots))
        future.set_running_or_notify_cancel()
        Thread(target=_fulfil, args=(future, partial(copy_context().run, call)), daemon=True).start()
        return future

    def _result(self, future: Future[Any], timeout: float) -> Any:
        try:
            return future.result(timeout)
        except TimeoutError:
            if future.done():  # at the last moment, or the tool's own error
                return future.result()
            raise self._timed_out() from None

    def _timed_out(self) -> ToolTimeout:
        contract = self._terms.contract
        assert contract.timeout is not None
        return ToolTimeout(self._tool.name, contract.timeout, outcome_unknown=not contract.repeatable)


def _released(slots: Slots, future: Future[Any]) -> None:
    slots.release()


def _fulfil(future: Future[Any], call: Callable[[], Any]) -> None:
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
