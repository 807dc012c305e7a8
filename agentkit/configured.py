"""The one model that an agent is configured with, if there is just one: for who records runs before any request."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from agentkit.hooks import Hook, Table

__all__ = ["only_model"]

_KNOWN: Final = ("agentkit.", "langchain.agents.middleware.")
_DEPTH: Final = 4


def only_model(model: Any, hooks: Table) -> str | None:
    """The model's name; None where a request may go to another one, or nobody says what it is called.

    A wrap of model calls may ask any model that it likes. Of those that agentkit and LangChain ship it is known that
    they ask none but the one that they are given, or those that they hold.

    Args:
        model: The agent's model.
        hooks: Its middlewares.
    """
    if not isinstance(model, BaseChatModel):
        return None
    if not all(map(_is_known, hooks.of("wrap_model_call"))):
        return None
    if any(other is not model for one in hooks.middleware for other in _models_in(vars(one), _DEPTH)):
        return None
    named = ((model.metadata or {}).get("ls_model_name"), *(getattr(model, field, None) for field in _fields(model)))
    return next((name for name in named if isinstance(name, str) and name), None)


def _fields(model: BaseChatModel) -> list[str]:
    return [field for field in ("model_name", "model") if field in type(model).model_fields]


def _is_known(hook: Hook) -> bool:
    """Whether the class stands in agentkit or LangChain; those that LangChain's decorators make only seem to."""
    cls = type(hook.middleware)
    return cls.__module__.startswith(_KNOWN) and getattr(sys.modules[cls.__module__], cls.__name__, None) is cls


def _models_in(value: Any, depth: int) -> Iterator[BaseChatModel]:
    if isinstance(value, BaseChatModel):
        yield value
        return
    held = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    for each in held if depth else ():
        yield from _models_in(each, depth - 1)
