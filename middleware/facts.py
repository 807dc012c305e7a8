"""`Facts`: show structured state fields to the model, at the end of the request."""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Mapping, Sequence
from typing import Any, Final, Literal

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

from agentkit.errors import ConfigurationError
from agentkit.middleware_base import Middleware

__all__ = ["Facts"]

_HEAD: Final = "Known facts (noted by the application, not said by the user):"


class Facts(Middleware):
    """Shows state fields to the model, in each request anew and nowhere else.

    ```python
    Facts(["user_id", "order_id", "order_status"])
    ```

    The facts stand behind all messages, so that everything before them stays byte for byte what the request before
    had, and a provider's prompt cache keeps working. They are never stored. Fields without a value are left out; with
    none left, nothing is shown.
    """

    def __init__(
        self, fields: Sequence[str] | Mapping[str, str], place: Literal["tail", "last"] = "tail", *, limit: int = 500
    ) -> None:
        """Choose the fields.

        Args:
            fields: Names of state fields, shown in this order; or a mapping from names to what the model sees them as.
            place: `"tail"`: a user message of its own, after all others. `"last"`: at the end of the last message, for
                models whose chat template wants user and assistant to alternate; if that message is none of the user's
                or a tool's, as `"tail"`.
            limit: Characters shown of one value; what is longer is cut off, and marked as such.

        Raises:
            ConfigurationError: If no fields are named, or a value makes no sense.
        """
        super().__init__()
        if isinstance(fields, str) or not fields:
            raise ConfigurationError(f"Facts: fields is a list of state fields, not {fields!r}.")
        if place not in ("tail", "last"):
            raise ConfigurationError(f"Facts: place is 'tail' or 'last', not {place!r}.")
        if limit < 1:
            raise ConfigurationError(f"Facts: limit must be at least 1 character, not {limit}.")
        self._fields = dict(fields) if isinstance(fields, Mapping) else {name: name for name in fields}
        self._place = place
        self._limit = limit

    @property
    def named_fields(self) -> Collection[str]:
        """The fields it shows."""
        return tuple(self._fields)

    def wrap_model_call(self, request: ModelRequest[Any]) -> Generator[ModelRequest[Any], ModelResponse[Any], Any]:
        """Add what is known to this request."""
        if facts := self._facts(request.state):
            request = request.override(messages=self._with(facts, request.messages))
        return (yield request)

    def _facts(self, state: Any) -> str:
        known = [(label, state.get(field)) for field, label in self._fields.items()]
        lines = [f"{label}: {self._shown(value)}" for label, value in known if not _is_empty(value)]
        return "\n".join([_HEAD, *lines]) if lines else ""

    def _shown(self, value: Any) -> str:
        """The value as JSON on one line: the same value gives the same text, and no value can pass for another line."""
        try:
            text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=_plain)
        except TypeError:  # keys that JSON has no form for, or no order
            text = json.dumps(str(value), ensure_ascii=False)
        return (
            text if len(text) <= self._limit else f"{text[: self._limit]}… ({len(text) - self._limit} more characters)"
        )

    def _with(self, facts: str, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
        last = messages[-1] if messages else None
        if self._place == "last" and isinstance(last, HumanMessage | ToolMessage):
            content: Any = f"{last.content}\n\n{facts}"
            if isinstance(last.content, list):
                content = [*last.content, {"type": "text", "text": facts}]
            return [*messages[:-1], last.model_copy(update={"content": content})]
        return [*messages, HumanMessage(facts)]


def _is_empty(value: Any) -> bool:
    """Whether there is nothing to show. Zero and False are values; nothing is asked of types that we do not know."""
    return value is None or (isinstance(value, str | list | dict | tuple) and not value)


def _plain(value: Any) -> Any:
    """What JSON has no form for."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return str(value)
