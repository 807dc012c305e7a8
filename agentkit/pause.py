"""Pausing a run for an answer from outside: the one way in which middleware asks somebody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt
from pydantic import PlainValidator, ValidationError, WithJsonSchema

from agentkit._compat import drop_stale_answer, has_saver, is_addressed, is_new
from agentkit.errors import MissingCheckpointer

__all__ = ["Delivery", "ask"]

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Delivery:
    """How an answer came."""

    addressed: bool
    """It was given to this question by its id."""
    new: bool
    """It was given with this resume; an older one is read again, since the step runs again."""


def ask(
    question: Mapping[str, Any],
    check: Callable[[Any, Delivery], AnswerT],
    schema: Mapping[str, Any],
    *,
    asker: str,
    asking: Callable[[], object] | None = None,
) -> AnswerT:
    """Pause until somebody answers; run again with the answer, return it.

    An answer that `check` refuses fails the resume and nothing else: siblings that run at the same time finish, nothing
    is stored, and the question can be answered again.

    Args:
        question: Shown to whoever answers: plain data, which any saver can store.
        check: Given the answer and how it came, returns it in the form to be returned here, or raises a `ValueError` of
            the caller's choice. It is called again for each answer when the step runs again, so it must not have
            effects.
        schema: What an answer looks like, as JSON schema, for those who build forms.
        asker: Who asks, for the error's text.
        asking: Called when nobody has answered yet, before the run pauses: for reports, which would be made again
            whenever the step runs again. Default: nothing.

    Raises:
        MissingCheckpointer: If the run has no checkpointer, so that a pause could never be resumed.
        ValueError: As `check` raised it.
    """
    config = get_config()
    if not has_saver(config):
        raise MissingCheckpointer(asker)
    drop_stale_answer(config)
    form: Any = Annotated  # made at run time; type checkers know only literal arguments
    checked = PlainValidator(lambda given: check(given, Delivery(is_addressed(given, config), is_new(given, config))))
    answer = cast(type[AnswerT], form[Any, checked, WithJsonSchema(dict(schema))])
    try:
        return interrupt(dict(question), response_schema=answer)
    except ValidationError as refused:
        error: ValueError = refused.errors()[0]["ctx"]["error"]
        vars(error).update(vars(refused))  # the engine's note that it is the answer that is wrong
        raise error from None
    except GraphInterrupt:
        if asking is not None:
            asking()
        raise
