"""Structured answers: how a strategy is chosen for a model, and how a reply becomes a value."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langchain.agents.structured_output import (
    AutoStrategy,
    MultipleStructuredOutputsError,
    OutputToolBinding,
    ProviderStrategy,
    ProviderStrategyBinding,
    StructuredOutputError,
    StructuredOutputValidationError,
    ToolStrategy,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

__all__ = ["Format", "Parsed", "effective", "is_structured_result", "normalise", "parse", "schemas_of", "tools_of"]

Format: TypeAlias = AutoStrategy[Any] | ToolStrategy[Any] | ProviderStrategy[Any]
Chosen: TypeAlias = ToolStrategy[Any] | ProviderStrategy[Any]
Bindings: TypeAlias = Mapping[str, OutputToolBinding[Any]]

_MARK: Final = "agentkit_structured"
_ERROR_TEXT: Final = "Error: {error}\n Please fix your mistakes."

# Model families whose providers take a schema natively, for models that bring no profile: the family, its versions, and
# what may follow them in the name (a variant, a variant or a dot, or only a date and revision).
_VARIANT: Final = r"(?:$|[-/:])"
_DOTTED: Final = r"(?:$|[-/:.])"
_DATED: Final = r"(?:-\d{8}|-\d{4}-\d{2}-\d{2})?(?:-v\d(?::\d)?)?(?:$|[/:])"
_NATIVE: Final[tuple[tuple[str, str, str], ...]] = (
    ("gpt-", r"4\.1|4o|5|5\.1|5\.2-(?:chat|codex)|5\.3|5\.4-(?:mini|nano)|5\.5|6-(?:astra|luna|sol)", _VARIANT),
    ("gpt-", r"5\.2|5\.4", _DATED),
    ("claude-", r"(?:fable|mythos)-5|haiku-4-5|opus-4-[5-8]|sonnet-4-[56]", _DATED),
    ("grok-", r"4|build", _DOTTED),
)
_NATIVE_NAMES: Final = re.compile(
    "(?:^|[/:.])(?:" + "|".join(f"{family}(?:{versions}){tail}" for family, versions, tail in _NATIVE) + ")"
)


def normalise(response_format: Any) -> Format | None:
    """A `response_format` as a strategy: a raw schema is decided at each call."""
    if response_format is None or isinstance(response_format, AutoStrategy | ToolStrategy | ProviderStrategy):
        return response_format
    return AutoStrategy(schema=response_format)


def tools_of(strategy: Chosen | Format | None) -> dict[str, OutputToolBinding[Any]]:
    """The tools that stand for a strategy's schemas, by name; none for a provider strategy."""
    if strategy is None or isinstance(strategy, ProviderStrategy):
        return {}
    if isinstance(strategy, AutoStrategy):
        strategy = ToolStrategy(schema=strategy.schema)
    bindings = [OutputToolBinding.from_schema_spec(spec) for spec in strategy.schema_specs]
    return {binding.tool.name: binding for binding in bindings}


def schemas_of(strategy: Format | None) -> list[Any]:
    """The schemas whose values a run may answer with."""
    if strategy is None:
        return []
    specs = getattr(strategy, "schema_specs", None) or [getattr(strategy, "schema_spec", strategy)]
    return [spec.schema for spec in specs]


def effective(given: Format | None, model: BaseChatModel, has_tools: bool) -> Chosen | None:
    """The strategy for one call: an undecided one is decided by what the model's provider can do."""
    if not isinstance(given, AutoStrategy):
        return given
    if takes_schema(model, has_tools):
        return ProviderStrategy(schema=given.schema)
    return ToolStrategy(schema=given.schema)


def takes_schema(model: BaseChatModel, has_tools: bool) -> bool:
    """Whether the model's provider takes a schema natively: by the model's profile, else by its name."""
    found = (getattr(model, key, None) for key in ("model_name", "model", "model_id"))
    name = next((value for value in found if isinstance(value, str) and value), "").lower()
    # Gemini before 3 cannot take a schema and tools together.
    torn = has_tools and "gemini" in name and "gemini-3" not in name
    if model.profile is not None and model.profile.get("structured_output") and not torn:
        return True
    return _NATIVE_NAMES.search(name) is not None


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply says: its messages, and the structured value, if it holds one."""

    messages: list[BaseMessage]
    value: Any = None
    failed: bool = False
    """Whether a structured answer was given that does not validate; the messages then say so to the model."""
    error: StructuredOutputError | None = None


def parse(reply: AIMessage, strategy: Chosen | None, bindings: Bindings, declared: Collection[str]) -> Parsed:
    """Read a reply by the strategy it was asked with.

    Args:
        reply: The model's reply.
        strategy: The strategy in force.
        bindings: The structured tools that were offered.
        declared: Those of them that the agent was built with.

    Raises:
        StructuredOutputValidationError: If the answer does not validate and errors are not handled.
        MultipleStructuredOutputsError: If there are several and errors are not handled.
    """
    if isinstance(strategy, ProviderStrategy):
        return _parse_native(reply, strategy)
    if isinstance(strategy, ToolStrategy):
        return _parse_call(reply, strategy, bindings, declared)
    return Parsed([reply])


def is_structured_result(result: ToolMessage, declared: Collection[str]) -> bool:
    """Whether a tool message stands for an accepted structured answer."""
    return result.status != "error" and (result.name in declared or _MARK in result.additional_kwargs)


def _parse_native(reply: AIMessage, strategy: ProviderStrategy[Any]) -> Parsed:
    if reply.tool_calls:  # pending calls run first
        return Parsed([reply])
    binding: ProviderStrategyBinding[Any] = ProviderStrategyBinding.from_schema_spec(strategy.schema_spec)
    try:
        return Parsed([reply], binding.parse(reply))
    except Exception as error:
        name = getattr(strategy.schema_spec.schema, "__name__", "response_format")
        raise StructuredOutputValidationError(name, error, reply) from error


def _parse_call(reply: AIMessage, strategy: ToolStrategy[Any], bindings: Bindings, declared: Collection[str]) -> Parsed:
    calls = [call for call in reply.tool_calls if call["name"] in bindings]
    if not calls:
        return Parsed([reply])
    try:
        if len(calls) > 1:
            raise MultipleStructuredOutputsError([call["name"] for call in calls], reply)
        value = _validated(bindings[calls[0]["name"]], calls[0], reply)
    except StructuredOutputError as error:
        text = _handled(error, strategy)
        if text is None:
            raise
        return Parsed([reply, *(_answer(call, text) for call in calls)], failed=True, error=error)
    text = strategy.tool_message_content or f"Returning structured response: {value}"
    answer = _answer(calls[0], text)
    if calls[0]["name"] not in declared:
        answer.additional_kwargs[_MARK] = True
    return Parsed([reply, answer], value)


def _validated(binding: OutputToolBinding[Any], call: ToolCall, reply: AIMessage) -> Any:
    try:
        return binding.parse(call["args"])
    except Exception as error:
        raise StructuredOutputValidationError(call["name"], error, reply) from error


def _answer(call: ToolCall, text: str) -> ToolMessage:
    return ToolMessage(text, tool_call_id=call["id"], name=call["name"])


def _handled(error: StructuredOutputError, strategy: ToolStrategy[Any]) -> str | None:
    """What the model is told of an error, or None if the strategy does not handle it."""
    handle = strategy.handle_errors
    if isinstance(handle, bool):
        return _ERROR_TEXT.format(error=error) if handle else None
    if isinstance(handle, str):
        return handle
    if isinstance(handle, type | tuple):
        return _ERROR_TEXT.format(error=error) if isinstance(error, handle) else None
    return handle(error)
