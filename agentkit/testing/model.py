"""A chat model that answers from a script and remembers what it was asked."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

from agentkit.testing.messages import ScriptError, merged, split

__all__ = ["Bind", "Request", "ScriptedModel", "Step"]


@dataclass(frozen=True)
class Request:
    """One request as the model received it."""

    messages: list[BaseMessage]
    """The messages as they were at that moment, the system message included."""
    tools: list[str] = field(default_factory=list)
    """Names of the tools that were offered."""
    tool_choice: Any = None
    """The tool choice that was bound, or None."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Everything else that was bound or passed: `stop`, `response_format`, model settings."""

    @property
    def turn(self) -> int:
        """How many AI messages stand behind the last human message: 0 for the first call of a user turn."""
        count = 0
        for message in reversed(self.messages):
            if isinstance(message, HumanMessage):
                break
            count += isinstance(message, AIMessage)
        return count


@dataclass(frozen=True)
class Bind:
    """One use of `bind_tools`."""

    tools: list[str]
    """Names of the tools, in the order given."""
    kwargs: dict[str, Any]
    """The other arguments, `tool_choice` among them."""


_Answer: TypeAlias = AIMessage | str | BaseException | Sequence[AIMessageChunk | BaseException]
Step: TypeAlias = _Answer | Callable[[Request], _Answer | Awaitable[_Answer]]
"""What a script is made of; see `ScriptedModel`."""


class _Log:
    """What a model was asked. Copies of a model share it, whatever the way they were copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests: list[Request] = []
        self.binds: list[Bind] = []

    def __copy__(self) -> _Log:
        return self

    def __deepcopy__(self, memo: Any) -> _Log:
        return self

    def add(self, request: Request) -> int:
        """Keep the request and return its number, from 0."""
        with self.lock:
            self.requests.append(request)
            return len(self.requests) - 1


class ScriptedModel(BaseChatModel):
    """Answers from a script; records every request and every `bind_tools`.

    ```python
    model = ScriptedModel(ai("", tool_call("add", {"a": 1, "b": 2})), "It is 3.")
    agent = create_agent(model, [add])
    agent.invoke({"messages": "1 + 2?"})
    assert model.calls == 2 and model.requests[0].tools == ["add"]
    ```

    A step is

    - an `AIMessage`, or a `str` for one with that text;
    - an exception, which is raised;
    - a list of `AIMessageChunk`, streamed as they are or merged into one message; an exception among them
      is raised when its turn comes, as when a connection breaks;
    - a function of the `Request`, sync or async, that gives one of these. An async one runs on an event loop of
      its own when the model is called synchronously; a sync one runs on the caller's loop.

    Each call takes the next step, whichever thread it comes from. Steps are copied before they are handed out,
    so a script can be used again.

    Args:
        *steps: The script. It may be given as `steps=[...]` instead.
        repeat: After the last step, repeat it instead of raising `ScriptError`.
        stream: Whether the model can stream. If so, a message is sent in several chunks: the text word by word,
            tool calls as fragments of their JSON, usage and response metadata on the last chunk. Streamed and
            merged, it is the message of the script, except for a `name`, which LangChain's merging drops.
        **fields: Other fields of `BaseChatModel`, for example `profile`.
    """

    steps: list[Any] = Field(default_factory=list, exclude=True, repr=False)
    repeat: bool = False

    _log: _Log = PrivateAttr(default_factory=_Log)

    def __init__(self, *steps: Step, repeat: bool = False, stream: bool = True, **fields: Any) -> None:
        """Take the script; see the class."""
        if steps:
            if "steps" in fields:
                raise ScriptError("ScriptedModel got its steps twice. Give them as arguments or as `steps`, not both.")
            fields["steps"] = steps
        fields["repeat"] = repeat
        fields.setdefault("disable_streaming", not stream)
        super().__init__(**fields)

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in the order of arrival."""
        return self._log.requests

    @property
    def binds(self) -> list[Bind]:
        """Every use of `bind_tools` so far."""
        return self._log.binds

    @property
    def calls(self) -> int:
        """How often the model has been called."""
        return len(self._log.requests)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: Any = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind the tools as OpenAI specifications, and record it.

        Args:
            tools: Tools, functions, schemas, or ready-made specifications, which are passed on as they are.
            tool_choice: Passed on, unless it is None.
            **kwargs: Passed on.
        """
        specs = [t if isinstance(t, dict) else convert_to_openai_tool(t) for t in tools]
        self._log.binds.append(Bind([_tool_name(s) for s in specs], {"tool_choice": tool_choice, **kwargs}))
        if tool_choice is not None:
            kwargs["tool_choice"] = tool_choice
        return self.bind(tools=specs, **kwargs)

    def _take(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> tuple[Step, Request]:
        """Record a request and find the step that answers it."""
        rest = {k: v for k, v in kwargs.items() if k not in ("tools", "tool_choice", "stream")}
        if stop is not None:
            rest["stop"] = stop
        request = Request(
            # copies, so that the record shows what the model saw, whatever becomes of the messages
            [m.model_copy(deep=isinstance(m.content, list)) for m in messages],
            [_tool_name(t) for t in kwargs.get("tools") or ()],
            kwargs.get("tool_choice"),
            rest,
        )
        number = self._log.add(request)
        if number < len(self.steps):
            return self.steps[number], request
        if self.repeat and self.steps:
            return self.steps[-1], request
        raise ScriptError(
            f"The model was called {number + 1} times; its script has {len(self.steps)} steps. "
            "Add the missing steps, or set repeat=True."
        )

    def _answer(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]) -> Any:
        step, request = self._take(messages, stop, kwargs)
        answer = step(request) if callable(step) else step
        return _playable(_wait_for(answer) if inspect.isawaitable(answer) else answer)

    async def _aanswer(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]) -> Any:
        step, request = self._take(messages, stop, kwargs)
        answer = step(request) if callable(step) else step
        return _playable(await answer if inspect.isawaitable(answer) else answer)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _whole(self._answer(messages, stop, kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _whole(await self._aanswer(messages, stop, kwargs))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _parts(self._answer(messages, stop, kwargs)):
            if run_manager:
                run_manager.on_llm_new_token(str(chunk.message.text), chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _parts(await self._aanswer(messages, stop, kwargs)):
            if run_manager:
                await run_manager.on_llm_new_token(str(chunk.message.text), chunk=chunk)
            yield chunk


def _wait_for(answer: Awaitable[Any]) -> Any:
    """Run an async step from sync code, also where an event loop is running already."""

    async def run() -> Any:
        return await answer

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, asyncio.run, run()).result()


def _tool_name(spec: Mapping[str, Any]) -> str:
    """The name of a tool specification; provider tools have none and go by their type."""
    function = spec.get("function", spec)
    return str(function.get("name") or spec.get("type"))


def _playable(step: Any) -> AIMessage | list[AIMessageChunk | BaseException]:
    """A copy of the step's message or chunks; an exception is raised."""
    if isinstance(step, BaseException):
        raise step
    if isinstance(step, str):
        return AIMessage(step)
    if isinstance(step, AIMessage):
        return step.model_copy(deep=True)
    if isinstance(step, list | tuple) and step and all(isinstance(p, AIMessageChunk | BaseException) for p in step):
        return [p if isinstance(p, BaseException) else p.model_copy(deep=True) for p in step]
    raise ScriptError(
        f"A step gave {type(step).__name__} ({step!r:.80}). A step is an AIMessage, a str, an exception, a non-empty "
        "list of AIMessageChunk, or a function of the request that gives one of these."
    )


def _whole(answer: AIMessage | list[AIMessageChunk | BaseException]) -> ChatResult:
    message = answer if isinstance(answer, AIMessage) else merged(answer)
    return ChatResult(generations=[ChatGeneration(message=message)])


def _parts(answer: AIMessage | list[AIMessageChunk | BaseException]) -> Iterator[ChatGenerationChunk]:
    for part in split(answer) if isinstance(answer, AIMessage) else answer:
        if isinstance(part, BaseException):
            raise part
        yield ChatGenerationChunk(message=part)
