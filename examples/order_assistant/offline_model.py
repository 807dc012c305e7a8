"""A stand-in for a language model, so that the assistant runs without a network or a key."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from examples.order_assistant.planner import Step, next_step

__all__ = ["DialoguePlanner"]

_TOKEN = re.compile(r"[\u3000-\u9fff\uff00-\uffef]|\s*[^\s\u3000-\u9fff\uff00-\uffef]+|\s+")


class DialoguePlanner(BaseChatModel):
    """A deterministic dialogue planner behind LangChain's chat model interface. It is *not* a language model.

    It knows about twenty things customers of the demo shop ask for, in English and Chinese, by tables of patterns
    (`planner/`), and answers with templates. What it does next depends on the messages it is given and on nothing else,
    so it continues any conversation from a checkpoint, in any process. It calls only tools that are bound. "Tokens" are
    words and Chinese characters.
    """

    pace: float = 0.0
    """Seconds to wait between two streamed tokens, to be read like a typewriter."""

    @property
    def _llm_type(self) -> str:
        return "dialogue-planner"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": "dialogue-planner"}

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Allow these tools; every other is out of reach."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        step = self._step(messages, kwargs)
        calls = _tool_calls(messages, step)
        message = AIMessage(
            content=step.text,
            tool_calls=calls,
            usage_metadata=_usage(messages, step),
            response_metadata=_metadata(step),
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        step = self._step(messages, kwargs)
        for message in self._chunks(messages, step):
            chunk = ChatGenerationChunk(message=message)
            if run_manager and message.content:
                run_manager.on_llm_new_token(str(message.content), chunk=chunk)
            yield chunk

    def _chunks(self, messages: list[BaseMessage], step: Step) -> Iterator[AIMessageChunk]:
        for token in _TOKEN.findall(step.text):
            if self.pace:
                time.sleep(self.pace)
            yield AIMessageChunk(content=token)
        for index, call in enumerate(_tool_calls(messages, step)):
            head = tool_call_chunk(name=call["name"], args="", id=call["id"], index=index)
            yield AIMessageChunk(content="", tool_call_chunks=[head])
            for token in _TOKEN.findall(json.dumps(call["args"], ensure_ascii=False)):
                piece = tool_call_chunk(name=None, args=token, id=None, index=index)
                yield AIMessageChunk(content="", tool_call_chunks=[piece])
        yield AIMessageChunk(
            content="",
            usage_metadata=_usage(messages, step),
            response_metadata=_metadata(step),
            chunk_position="last",
        )

    def _step(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> Step:
        forbidden = kwargs.get("tool_choice") == "none"
        names = {tool["function"]["name"] for tool in kwargs.get("tools", ()) if "function" in tool}
        return next_step(messages, frozenset() if forbidden else names)


def _tool_calls(messages: Sequence[BaseMessage], step: Step) -> list[ToolCall]:
    """The step's calls, with ids that follow from the conversation: asked again, the planner gives the same ids."""
    last = messages[-1] if messages else None
    where = f"{len(messages)}|{last.id or last.text if last else ''}"
    calls = []
    for index, call in enumerate(step.calls):
        arguments = dict(call.arguments)
        seed = f"{where}|{index}|{call.tool}|{json.dumps(arguments, sort_keys=True)}"
        identity = f"call_{hashlib.sha256(seed.encode()).hexdigest()[:20]}"
        calls.append(ToolCall(name=call.tool, args=arguments, id=identity, type="tool_call"))
    return calls


def _metadata(step: Step) -> dict[str, Any]:
    return {"finish_reason": "tool_calls" if step.calls else "stop", "model_name": "dialogue-planner"}


def _usage(messages: Sequence[BaseMessage], step: Step) -> UsageMetadata:
    given = sum(_count(_written(message)) for message in messages)
    made = _count(step.text) + sum(_count(json.dumps(dict(call.arguments))) + 1 for call in step.calls)
    return UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)


def _written(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return str(message.text) + "".join(json.dumps(call["args"]) for call in calls)


def _count(text: str) -> int:
    return len(_TOKEN.findall(text))
