"""The raw arguments of streamed tool calls, so that half an argument is not taken for a whole one.

When a reply is merged from chunks, broken JSON is completed silently and looks like a valid call. What was really sent
is heard from the stream, or stands in the reply's content blocks, and is parsed strictly.
"""

from __future__ import annotations

import json
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
        raw = {**self._heard(), **_written(reply)}
        broken = {call_id: text for call_id, text in raw.items() if text.strip() and not _is_object(text)}
        return refuse(reply, broken) if broken else reply

    def _heard(self) -> dict[str, str]:
        """The raw arguments by call id. A fragment without an id goes on with the call of its index, or the last."""
        raw: dict[str, str] = {}
        by_index: dict[Any, str] = {}
        current: str | None = None
        for fragment in self._fragments:
            index = fragment.get("index")
            current = fragment.get("id") or by_index.get(index, current)
            if current is None:
                continue
            if index is not None:
                by_index[index] = current
            raw[current] = raw.get(current, "") + (fragment.get("args") or "")
        return raw


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
