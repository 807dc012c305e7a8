"""The names of OpenTelemetry's conventions for generative AI that agentkit uses, in this module only.

The installed constants package marks every one of them deprecated, since the area moved to a repository of its own that
has no release yet; so the names stand here, as the official Python instrumentations emit them. A test compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["FORWARD", "MCP", "PROVIDERS", "GenAI", "Own"]


class GenAI:
    """Names of the conventions."""

    OPERATION: Final = "gen_ai.operation.name"
    PROVIDER: Final = "gen_ai.provider.name"
    AGENT_NAME: Final = "gen_ai.agent.name"
    CONVERSATION: Final = "gen_ai.conversation.id"
    OUTPUT_TYPE: Final = "gen_ai.output.type"

    REQUEST_MODEL: Final = "gen_ai.request.model"
    REQUEST_STREAM: Final = "gen_ai.request.stream"
    TEMPERATURE: Final = "gen_ai.request.temperature"
    TOP_P: Final = "gen_ai.request.top_p"
    MAX_TOKENS: Final = "gen_ai.request.max_tokens"
    FREQUENCY_PENALTY: Final = "gen_ai.request.frequency_penalty"
    PRESENCE_PENALTY: Final = "gen_ai.request.presence_penalty"
    TOP_K: Final = "gen_ai.request.top_k"
    CHOICES: Final = "gen_ai.request.choice.count"
    EFFORT: Final = "gen_ai.request.reasoning.level"
    PREVIOUS: Final = "gen_ai.request.previous_response.id"
    SEED: Final = "gen_ai.request.seed"
    STOP: Final = "gen_ai.request.stop_sequences"

    RESPONSE_ID: Final = "gen_ai.response.id"
    RESPONSE_MODEL: Final = "gen_ai.response.model"
    FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
    FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"

    INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
    OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
    CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
    CACHE_WRITE: Final = "gen_ai.usage.cache_write.input_tokens"
    REASONING: Final = "gen_ai.usage.reasoning.output_tokens"
    TOKEN_TYPE: Final = "gen_ai.token.type"

    TOOL_NAME: Final = "gen_ai.tool.name"
    TOOL_TYPE: Final = "gen_ai.tool.type"
    TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
    TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
    TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
    TOOL_RESULT: Final = "gen_ai.tool.call.result"

    INPUT_MESSAGES: Final = "gen_ai.input.messages"
    OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
    SYSTEM: Final = "gen_ai.system_instructions"
    TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"

    ERROR_TYPE: Final = "error.type"
    SERVER_ADDRESS: Final = "server.address"
    SERVER_PORT: Final = "server.port"


class Own:
    """Names of agentkit's own attributes."""

    RUN_ID: Final = "agentkit.run.id"
    SEGMENT: Final = "agentkit.run.segment"
    PARENT_RUN: Final = "agentkit.parent_run.id"
    STEP: Final = "agentkit.step"
    ATTEMPT: Final = "agentkit.attempt"
    OUTCOME: Final = "agentkit.outcome"
    REASON: Final = "agentkit.outcome.reason"
    MODEL_CALLS: Final = "agentkit.model.calls"
    TOOL_CALLS: Final = "agentkit.tool.calls"
    CHECKPOINT: Final = "agentkit.checkpoint.id"
    REEXECUTED: Final = "agentkit.tool.reexecuted"
    DROPPED: Final = "agentkit.events.dropped"
    LINK: Final = "agentkit.link.type"
    ENTRYPOINT: Final = "agentkit.entrypoint"
    HOOK: Final = "agentkit.hook.name"
    HOOK_OF: Final = "agentkit.hook.middleware"


class MCP:
    """Names of the conventions for the Model Context Protocol."""

    METHOD: Final = "mcp.method.name"
    PROTOCOL: Final = "mcp.protocol.version"
    SESSION: Final = "mcp.session.id"
    TRANSPORT: Final = "network.transport"


FORWARD: Final[Mapping[str, str]] = {
    GenAI.EFFORT: "2026-12: recommended by the conventions' head; emitted by opentelemetry-util-genai 1.3b0",
    GenAI.PREVIOUS: "2026-12: recommended by the conventions' head; emitted by opentelemetry-util-genai 1.3b0",
    GenAI.CACHE_WRITE: "2026-12: replaces cache_creation; emitted by opentelemetry-util-genai 1.3b0",
}
"""Names that the installed constants package does not have yet, with when and why they are used all the same."""

PROVIDERS: Final[Mapping[str, str]] = {
    "amazon_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
}
"""What LangChain calls a provider, and what the conventions call it; others keep LangChain's name."""
