"""What the middleware contract runs: one agent around the middleware, watched from outside."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Interrupt

from agentkit.messages import IndexedMessages
from agentkit.testing.model import Request, ScriptedModel
from agentkit.testing.running import EntryPoint, RunResult, arun, comparable, run

Factory = Callable[..., Any]
NODE_HOOKS = ("before_agent", "before_model", "after_model", "after_agent")
QUESTION = "the contract's question"
MOST_PAUSES = 20


class Boom(RuntimeError):
    """The failure that the contract plants in a model or a tool."""


@dataclass
class Trial:
    """One agent with a model that answers each request by a function of it, and two tools."""

    create: Factory
    middleware: Sequence[AgentMiddleware[Any, Any, Any]]
    answer: Callable[[Request], Any]
    resolve: Callable[[Sequence[Interrupt]], Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    lookup: Callable[[str], str] = "value of {}".format
    checkpointer: Any = field(default_factory=InMemorySaver)

    def __post_init__(self) -> None:
        """Build the agent."""
        self.executed: list[tuple[str, Any]] = []
        self.model = ScriptedModel(self.answer, repeat=True)
        self.agent = self.create(
            self.model, self._tools(), middleware=self.middleware, checkpointer=self.checkpointer, **self.options
        )

    def _tools(self) -> list[BaseTool]:
        @tool
        def lookup(key: str) -> str:
            """Look a value up."""
            self.executed.append(("lookup", key))
            return self.lookup(key)

        @tool
        def settle(amount: int) -> str:
            """Settle an amount."""
            self.executed.append(("settle", amount))
            return f"settled {amount}"

        return [lookup, settle]

    def run(self, given: Any, entry: EntryPoint, thread: str = "1") -> RunResult:
        """Run to the end or to the contract's own question, answering the pauses of the middleware itself."""
        outcome = run(self.agent, given, config(thread), entry=entry, catch=True)
        for _ in range(MOST_PAUSES):
            if not self._asks(outcome):
                return outcome
            decision: Command[Any] = Command(resume=self.resolve(outcome.interrupts))
            outcome = run(self.agent, decision, config(thread), entry=entry, catch=True)
        raise AssertionError(f"The run still asks after {MOST_PAUSES} answers: {outcome.interrupts!r}")

    async def arun(self, given: Any, thread: str = "1") -> RunResult:
        """`run` by `ainvoke`, inside a running event loop."""
        outcome = await arun(self.agent, given, config(thread), catch=True)
        for _ in range(MOST_PAUSES):
            if not self._asks(outcome):
                return outcome
            decision: Command[Any] = Command(resume=self.resolve(outcome.interrupts))
            outcome = await arun(self.agent, decision, config(thread), catch=True)
        raise AssertionError(f"The run still asks after {MOST_PAUSES} answers: {outcome.interrupts!r}")

    @staticmethod
    def _asks(outcome: RunResult) -> bool:
        return bool(outcome.interrupts) and all(i.value != QUESTION for i in outcome.interrupts)

    def saved(self, thread: str = "1") -> dict[str, Any]:
        """The stored state of a thread, private fields included."""
        return dict(self.agent.get_state(config(thread)).values) if self.checkpointer else {}

    def seen(self, outcome: RunResult, thread: str = "1") -> dict[str, Any]:
        """All that can be seen of a run from outside, for a comparison."""
        return self.result(outcome, thread) | {
            "requests to the model": [
                comparable([r.messages, r.tools, r.tool_choice, r.kwargs]) for r in self.model.requests
            ],
            "tool executions": sorted(self.executed, key=repr),
        }

    def result(self, outcome: RunResult, thread: str = "1") -> dict[str, Any]:
        """What a run left behind."""
        return {
            "exception": comparable(outcome.error),
            "result": comparable(outcome.values),
            "open questions": [i.value for i in outcome.interrupts],
            "saved state": comparable(self.saved(thread)),
        }


def config(thread: str) -> dict[str, Any]:
    """A thread's configuration; the step limit ends a run that the middleware sends round for ever."""
    return {"configurable": {"thread_id": thread}, "recursion_limit": 100}


def assert_same(got: Any, expected: Any, what: str) -> None:
    """Assert that two views of a run agree; the message says where they part."""
    if got != expected:
        raise AssertionError(f"{what}: {_difference(got, expected, '')}")


def _difference(got: Any, expected: Any, path: str) -> str:
    """The innermost place at which two values differ."""
    if isinstance(got, dict) and isinstance(expected, dict) and got.keys() == expected.keys():
        for key, value in expected.items():
            if got[key] != value:
                return _difference(got[key], value, f"{path}[{key!r}]")
    if isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        for i, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
            if mine != theirs:
                return _difference(mine, theirs, f"{path}[{i}]")
    return f"{path or 'it'} is {got!r:.600} instead of {expected!r:.600}"


class Outer(AgentMiddleware[Any, Any, Any]):
    """Base of the contract's own middleware, which sits outside the one under test."""

    @property
    def name(self) -> str:
        """A name that no middleware under test has."""
        return f"contract.{type(self).__name__}"


class Twice(Outer):
    """Calls its handler twice and keeps both responses, as a retry would."""

    model: ScriptedModel

    def __init__(self) -> None:
        """Start with nothing; `model` must be set before the first run."""
        super().__init__()
        self.models: list[tuple[int, int, int]] = []
        self.responses: list[tuple[str, Any, Any]] = []

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call the model part twice."""
        start = self.model.calls
        first, between = handler(request), self.model.calls
        second = handler(request)
        return self._keep_model((start, between, self.model.calls), first, second)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the model part twice."""
        start = self.model.calls
        first, between = await handler(request), self.model.calls
        second = await handler(request)
        return self._keep_model((start, between, self.model.calls), first, second)

    def _keep_model(self, span: tuple[int, int, int], first: Any, second: Any) -> Any:
        self.models.append(span)
        views = [comparable([r.result, r.structured_response]) for r in (first, second)]
        self.responses.append(("model", *views))
        return second

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call the tool part twice."""
        first, second = handler(request), handler(request)
        self.responses.append(("tool", comparable(first), comparable(second)))
        return second

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the tool part twice."""
        first, second = await handler(request), await handler(request)
        self.responses.append(("tool", comparable(first), comparable(second)))
        return second


class Inspector(Outer):
    """Notes every request that is not what it was after it has been handled."""

    def __init__(self) -> None:
        """Start with nothing noted."""
        super().__init__()
        self.changed: list[str] = []

    def _compare(self, where: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        self.changed += [f"{where} changed `{k}` in place" for k, v in before.items() if after.get(k) != v]

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Compare the model request before and after."""
        before = _model_view(request)
        response = handler(request)
        self._compare("the model wrap", before, _model_view(request))
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Compare the model request before and after."""
        before = _model_view(request)
        response = await handler(request)
        self._compare("the model wrap", before, _model_view(request))
        return response

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Compare the tool request before and after."""
        before = _tool_view(request)
        result = handler(request)
        self._compare("the tool wrap", before, _tool_view(request))
        return result

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Compare the tool request before and after."""
        before = _tool_view(request)
        result = await handler(request)
        self._compare("the tool wrap", before, _tool_view(request))
        return result

    @contextmanager
    def watching(self, kind: type[AgentMiddleware[Any, Any, Any]]) -> Iterator[None]:
        """Watch the state given to the node hooks of this class as well."""
        with ExitStack() as stack:
            for hook in NODE_HOOKS:
                for name, watched in ((hook, self._hook), (f"a{hook}", self._async_hook)):
                    original = getattr(kind, name)
                    if original is not getattr(AgentMiddleware, name):
                        stack.enter_context(patch.object(kind, name, watched(name, original)))
            yield

    def _hook(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(middleware: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            before = comparable(state)
            update = original(middleware, state, *args, **kwargs)
            self._compare(name, before, comparable(state))
            return update

        return watched

    def _async_hook(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        async def watched(middleware: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            before = comparable(state)
            update = await original(middleware, state, *args, **kwargs)
            self._compare(name, before, comparable(state))
            return update

        return watched


def _model_view(request: Any) -> dict[str, Any]:
    fields = ("messages", "system_message", "tools", "tool_choice", "response_format", "model_settings", "state")
    return {"model": id(request.model)} | {f: comparable(getattr(request, f)) for f in fields}


def _tool_view(request: Any) -> dict[str, Any]:
    return {"tool": id(request.tool), "tool_call": comparable(request.tool_call), "state": comparable(request.state)}


class LastState(Outer):
    """Keeps the state as it was, live, when the run ended. First in the list, its after_agent is last."""

    def __init__(self) -> None:
        """Start with nothing."""
        super().__init__()
        self.state: dict[str, Any] = {}

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Keep the state."""
        self.state = dict(state)


def typed(value: Any) -> Any:
    """The value, each part with its type, so that what only looks alike differs."""
    if isinstance(value, Mapping):
        return {k: typed(v) for k, v in value.items()}
    if isinstance(value, IndexedMessages):  # the list that a history is while it is in use
        return typed(list(value))
    if isinstance(value, list | tuple):
        return (type(value).__qualname__, [typed(v) for v in value])
    return (type(value).__qualname__, comparable(value))
