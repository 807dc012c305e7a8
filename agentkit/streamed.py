"""The raw arguments of streamed tool calls, so that half an argument is not taken for a whole one.

When a reply is merged from chunks, broken JSON is completed silently and looks like a valid call. What was really sent
is heard from the stream, or stands in the reply's content blocks, and is parsed strictly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs

from agentkit._compat import StreamingHandler
from agentkit.reply import refuse

__all__ = ["Ear", "listen"]


class Ear(BaseCallbackHandler):
    """Hears the fragments of the calls that a model streams."""

    run_inline = True  # it only appends; no thread is worth it
    ignore_chain = ignore_agent = ignore_retriever = ignore_retry = ignore_custom_event = True

    def __init__(self) -> None:
        """Hear one reply."""
        self._fragments: list[Any] = []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do; the default would format the whole prompt."""

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        """Keep the chunk's call fragments."""
        self._fragments.extend(getattr(getattr(chunk, "message", None), "tool_call_chunks", ()))

    def checked(self, reply: AIMessage) -> AIMessage:
        """The reply, with each call whose arguments were not sent as one JSON object among the unreadable ones."""
        heard = self._heard()
        written = _written(reply)
        broken: dict[int, str] = {}
        for position, call in enumerate(reply.tool_calls):
            texts = heard.get(call["id"] or "")
            raw = texts.pop(0) if texts else written.get(call["id"] or "", "")
            if raw.strip() and not _is_object(raw):
                broken[position] = raw
        return refuse(reply, broken) if broken else reply

    def _heard(self) -> dict[str, list[str]]:
        """The raw arguments by call id, in the order of the calls: ids may repeat.

        A fragment with an id goes on with the call of that id and index, or begins another one; a fragment without goes
        on with the call of its index, or with the last.
        """
        calls: list[_Call] = []
        for fragment in self._fragments:
            call_id, index, text = fragment.get("id"), fragment.get("index"), fragment.get("args") or ""
            call = next((call for call in reversed(calls) if call.goes_on(call_id, index)), None)
            if call is None and call_id:
                call = _Call(call_id, index)
                calls.append(call)
            if call is not None:
                call.text += text
        raw: dict[str, list[str]] = {}
        for call in calls:
            raw.setdefault(call.id, []).append(call.text)
        return raw


@dataclass(slots=True)
class _Call:
    """One call as it is heard."""

    id: str
    index: Any
    text: str = ""

    def goes_on(self, call_id: str | None, index: Any) -> bool:
        """Whether a fragment belongs to this call."""
        if call_id and call_id != self.id:
            return False
        if index is None and self.index is None:
            return not call_id or not _is_object(self.text)
        return bool(index == self.index)


def listen(model: Any, config: RunnableConfig) -> tuple[Ear, RunnableConfig | None]:
    """An ear, and the config to call the model with so that it hears: None where the reply will not be streamed.

    Args:
        model: The chat model.
        config: The config that the model would inherit.
    """
    ear = Ear()
    if not (getattr(model, "streaming", False) or _is_streamed(config)):
        return ear, None
    return ear, merge_configs(config, {"callbacks": [ear]})


def _is_streamed(config: RunnableConfig) -> bool:
    callbacks = config.get("callbacks")
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks or ()
    return any(isinstance(handler, StreamingHandler) for handler in handlers)


def _written(reply: AIMessage) -> dict[str, str]:
    """The raw arguments that stand in the reply's content blocks."""
    blocks = reply.content if isinstance(reply.content, list) else ()
    return {
        str(block["call_id"]): block["arguments"]
        for block in blocks
        if isinstance(block, dict)
        and block.get("type") == "function_call"
        and isinstance(block.get("arguments"), str)
        and block.get("call_id")
    }


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
