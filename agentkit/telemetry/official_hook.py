"""The hooks for content of the official instrumentations, such as the one that uploads it, for agentkit's runs too.

```python
Tracing(Telemetry(content_hook=official_hook()))
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.trace import Span

from agentkit.errors import MissingDependency

__all__ = ["OfficialHook", "official_hook"]

_PARTS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "text": ("TextPart", ("content",)),
    "reasoning": ("ReasoningPart", ("content",)),
    "tool_call": ("ToolCallRequestPart", ("arguments", "name", "id")),
    "tool_call_response": ("ToolCallResponsePart", ("response", "id")),
    "blob": ("BlobPart", ("mime_type", "modality", "content")),
    "uri": ("UriPart", ("mime_type", "modality", "uri")),
}
"""What the official package calls each kind of part, and its fields."""


def official_hook() -> OfficialHook:
    """The hook that the variable `OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK` names, as `content_hook` takes one.

    Without the variable it does nothing. `upload` writes to `OTEL_INSTRUMENTATION_GENAI_UPLOAD_BASE_PATH`.

    Raises:
        MissingDependency: If `opentelemetry-util-genai` is not installed.
    """
    try:
        from opentelemetry.util.genai.completion_hook import load_completion_hook
    except ImportError as missing:
        raise MissingDependency("opentelemetry-util-genai", "genai", "official_hook") from missing
    return OfficialHook(load_completion_hook())


class OfficialHook:
    """Hands content to a hook of the official instrumentations, in the classes that it wants."""

    def __init__(self, hook: Any) -> None:
        """Take the hook: something with the official `on_completion`."""
        self.hook = hook

    def on_completion(
        self,
        *,
        inputs: list[dict[str, Any]],
        outputs: list[dict[str, Any]],
        system_instruction: list[dict[str, Any]],
        tool_definitions: list[dict[str, Any]] | None = None,
        span: Span | None = None,
        log_record: Any = None,
    ) -> None:
        """As `ContentHook`. What the hook changes in content stays with it."""
        from opentelemetry.util.genai import types

        tools = [types.GenericToolDefinition(name=each["name"], type=each["type"]) for each in tool_definitions or ()]
        self.hook.on_completion(
            inputs=[types.InputMessage(each["role"], _parts(types, each["parts"])) for each in inputs],
            outputs=[
                types.OutputMessage(each["role"], _parts(types, each["parts"]), each["finish_reason"])
                for each in outputs
            ],
            system_instruction=_parts(types, system_instruction),
            tool_definitions=tools or None,
            span=span,
            log_record=log_record,
        )


def _parts(types: Any, parts: list[dict[str, Any]]) -> list[Any]:
    made = []
    for part in parts:
        if (kind := _PARTS.get(part["type"])) is not None:
            name, fields = kind
            made.append(getattr(types, name)(**{field: part.get(field) for field in fields}))
    return made
