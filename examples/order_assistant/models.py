"""Which model the assistant talks through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from examples.order_assistant.offline_model import DialoguePlanner

__all__ = ["OFFLINE", "ModelUnusable", "choose_model", "describe"]

OFFLINE = "offline"
_DEFAULT_OPENAI_MODEL = "gpt-5.5"


class ModelUnusable(ValueError):
    """The model cannot be set up: unknown provider, package not installed, key missing."""

    def __init__(self, name: str, problem: str) -> None:
        """Say which model, what is wrong with it and what to do."""
        super().__init__(
            f"cannot use model {name!r}: {problem}; name another with --model PROVIDER:NAME, or use --model {OFFLINE}"
        )
        self.name = name


def choose_model(name: str | None, environ: Mapping[str, str], pace: float = 0.0) -> BaseChatModel:
    """The named model, else an OpenAI-compatible endpoint from the environment, else the offline planner.

    Args:
        name: `PROVIDER:NAME` for LangChain's `init_chat_model`, `offline`, or None.
        environ: Looked at for `OPENAI_API_KEY`, `OPENAI_BASE_URL` and `OPENAI_MODEL`.
        pace: Seconds between two tokens of the offline planner.

    Raises:
        ModelUnusable: The model cannot be set up.
    """
    settings: dict[str, Any] = {}
    if name is None and (environ.get("OPENAI_API_KEY") or environ.get("OPENAI_BASE_URL")):
        name = f"openai:{environ.get('OPENAI_MODEL') or _DEFAULT_OPENAI_MODEL}"
        # A server of one's own often wants no key, but the client insists on one.
        settings = {} if environ.get("OPENAI_API_KEY") else {"api_key": "none"}
    if name is None or name == OFFLINE:
        return DialoguePlanner(pace=pace)
    try:
        model = init_chat_model(name, **settings)
    except Exception as error:  # each provider has exceptions of its own for the same few mistakes
        first_sentence = " ".join(str(error).split()).partition(". ")[0]
        raise ModelUnusable(name, first_sentence.rstrip(".")) from error
    assert isinstance(model, BaseChatModel)  # only a call without a name gives a configurable model
    return model


def describe(model: BaseChatModel) -> tuple[str, bool]:
    """The model's name and whether it is the offline planner."""
    if isinstance(model, DialoguePlanner):
        return OFFLINE, True
    return str(getattr(model, "model_name", None) or getattr(model, "model", None) or model.get_name()), False
