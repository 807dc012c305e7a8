"""Living beside a provider's own instrumentation: who makes the span of a request to a model.

agentkit does, and asks the others to be silent around its own request, and only there. What the official ones would
have put on their span (the server's address, the response's id) they hand over instead.
"""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry import context as otel

from agentkit._compat import inference_data
from agentkit.telemetry.semconv import GenAI

__all__ = ["Nested", "beside_langchain_instrumentation", "silenced"]

_SUPPRESS: Final = "suppress_language_model_instrumentation"
_FROM_NESTED: Final = {
    "server_address": GenAI.SERVER_ADDRESS,
    "server_port": GenAI.SERVER_PORT,
    "response_id": GenAI.RESPONSE_ID,
    "response_model_name": GenAI.RESPONSE_MODEL,
}


@dataclass(frozen=True, slots=True)
class Nested:
    """What a silenced instrumentation hands over."""

    data: Any

    def attributes(self) -> dict[str, Any]:
        """What it says of the request."""
        return {
            key: value
            for name, key in _FROM_NESTED.items()
            if (value := getattr(self.data, name, None)) is not None and isinstance(value, str | int)
        }


def silenced(context: otel.Context) -> tuple[otel.Context, Nested | None]:
    """The context in which providers' instrumentations make no span of their own, and what they hand over."""
    if (made := inference_data()) is None:
        return otel.set_value(_SUPPRESS, True, context), None
    key, data = made
    return otel.Context({**context, _SUPPRESS: True, key: data}), Nested(data)


def beside_langchain_instrumentation(metadata: MutableMapping[str, Any]) -> bool:
    """Ask the official LangChain instrumentation, if it is there, to leave this run's agent and model spans to us."""
    module = sys.modules.get("opentelemetry.instrumentation.genai.langchain")
    if module is None:
        return False
    metadata["otel_trace"] = metadata["otel_agent_span"] = False
    return True
