"""Arguments that do not fit a tool's schema, in words that help the model to send better ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from agentkit.errors import InvalidArguments

__all__ = ["argument_problems", "check_plain_schema", "explain"]

_LONGEST: Final = 200  # characters of a value that are repeated to the model
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (Mapping,),
    "null": (type(None),),
}


def explain(tool: BaseTool, sent: Mapping[str, Any], error: ValidationError) -> InvalidArguments | None:
    """What to tell the model of arguments that pydantic refused; None if none of its own arguments is wrong.

    Args:
        tool: The tool.
        sent: What the model sent.
        error: What the tool's schema said.
    """
    shown = tool.args
    problems = []
    for one in error.errors(include_url=False, include_context=False):
        place = [str(part) for part in one["loc"]]
        if place and place[0] not in shown and place[0] not in sent:
            continue  # an injected argument, which the model cannot mend
        value = "" if one["type"] == "missing" or not place else f" (you sent {_short(one['input'])})"
        problems.append(f"{'.'.join(place) or 'arguments'}: {one['msg']}{value}")
    return InvalidArguments(tool.name, problems, _short(dict(sent)), _described(tool)) if problems else None


def argument_problems(tool: BaseTool, sent: Mapping[str, Any]) -> list[str]:
    """What is wrong with the arguments of a call, by the tool's schema; nothing is executed.

    Args:
        tool: Any LangChain tool.
        sent: The arguments that the model sent, without injected ones.

    Returns:
        One line per problem: the argument's name and what is wrong with it; empty if they fit.
    """
    schema = tool.tool_call_schema
    if isinstance(schema, dict):
        return list(_plain_problems(schema, sent))
    if not issubclass(schema, BaseModel):
        return []  # of pydantic's first version: known when the tool runs
    try:
        schema.model_validate(dict(sent))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        return [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in found]
    return []


def check_plain_schema(tool: BaseTool, sent: Mapping[str, Any]) -> None:
    """Check arguments against a schema that is plain JSON schema, as MCP tools have; LangChain checks none of it.

    What is checked is what models get wrong: names, types and enumerated values of the arguments themselves. The
    server still has the last word.

    Raises:
        InvalidArguments: If they do not fit.
    """
    schema = tool.args_schema
    if isinstance(schema, dict) and (problems := list(_plain_problems(schema, sent))):
        raise InvalidArguments(tool.name, problems, _short(dict(sent)), _described(tool))


def _plain_problems(schema: Mapping[str, Any], sent: Mapping[str, Any]) -> Iterator[str]:
    known: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in sent:
            yield f"{name}: Field required"
    for name, value in sent.items():
        if name in known:
            if problem := _wrong(known[name], value):
                yield f"{name}: {problem} (you sent {_short(value)})"
        elif schema.get("additionalProperties") is False:
            yield f"{name}: Unknown argument"


def _wrong(rule: Any, value: Any) -> str | None:
    if not isinstance(rule, Mapping):
        return None
    if "enum" in rule and value not in rule["enum"]:
        return f"Must be one of {', '.join(map(repr, rule['enum']))}"
    types = rule.get("type")
    names = [types] if isinstance(types, str) else list(types or ())
    if not names or any(name not in _TYPES or _is(value, name) for name in names):
        return None
    return f"Must be of type {' or '.join(names)}"


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _described(tool: BaseTool) -> str:
    """The arguments that a tool takes, in one line."""
    try:
        schema = tool.tool_call_schema
    except (TypeError, ValueError, NotImplementedError):  # a type that JSON schema cannot say
        return "other arguments"
    plain: dict[str, Any] = schema if isinstance(schema, dict) else getattr(schema, "model_json_schema", dict)()
    required = plain.get("required", ())
    shown = [
        f"{name} ({_typed(rule)}{'' if name in required else ', optional'})"
        for name, rule in plain.get("properties", {}).items()
    ]
    return ", ".join(shown) or "no arguments"


def _typed(rule: Any) -> str:
    if not isinstance(rule, Mapping):
        return "any"
    if "enum" in rule:
        return " | ".join(map(repr, rule["enum"]))
    if "anyOf" in rule:
        return " | ".join(_typed(one) for one in rule["anyOf"])
    kind = rule.get("type", "object" if "$ref" in rule else "any")
    return kind if isinstance(kind, str) else " | ".join(kind)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
