"""Tools of MCP servers: a call takes the trace along to its server, and its span says that it was one.

```python
tools = await load_mcp_tools(traced(session))
```

No span is added: the call's own, `execute_tool`, has the attributes of the conventions for the Model Context Protocol.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast
from urllib.parse import urlsplit

from opentelemetry import context as otel
from opentelemetry.trace import Span, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agentkit.errors import ConfigurationError, MissingDependency
from agentkit.telemetry.guard import guarded
from agentkit.telemetry.hook_spans import TOOL_SPAN
from agentkit.telemetry.semconv import MCP, GenAI

__all__ = ["TracedSession", "described", "traced"]

_W3C: Final = TraceContextTextMapPropagator()
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def traced(server: Any) -> Any:
    """What `load_mcp_tools` of `langchain-mcp-adapters` takes as its session, with calls that take the trace along.

    Args:
        server: An open `mcp.ClientSession`, or a connection as `MultiServerMCPClient` takes it (a dict with its
            `transport`): then each call opens a session of its own.

    Returns:
        A `TracedSession`. It goes wherever a `ClientSession` is called on.

    Raises:
        ConfigurationError: If it is neither.
    """
    if not isinstance(server, Mapping) and not hasattr(server, "call_tool"):
        raise ConfigurationError(f"traced: takes an mcp.ClientSession or a connection, not {type(server).__name__}.")
    return TracedSession(server)


class TracedSession:
    """A session whose calls of tools take the trace along. Everything else is the session's own."""

    def __init__(self, server: Any) -> None:
        """See `traced`."""
        self._server = server
        self._about = described(server) if isinstance(server, Mapping) else {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *args: Any, meta: Any = None, **kwargs: Any
    ) -> Any:
        """Call a tool; `_meta` has `traceparent` and `tracestate` beside what the caller put there."""
        carrier: dict[str, Any] = {}
        _W3C.inject(carrier)
        given = {**carrier, **(meta or {})}
        async with self._session() as session:
            _describe(self._about)
            return await session.call_tool(name, arguments, *args, meta=given or None, **kwargs)

    async def list_tools(self, *args: Any, **kwargs: Any) -> Any:
        """List the tools."""
        async with self._session() as session:
            return await session.list_tools(*args, **kwargs)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Any]:
        """The session, or a new one of the connection."""
        if not isinstance(self._server, Mapping):
            yield self._server
            return
        try:
            from langchain_mcp_adapters.sessions import create_session
        except ImportError as missing:
            raise MissingDependency("langchain-mcp-adapters", "mcp", "traced") from missing
        async with create_session(cast(Any, self._server)) as session:
            opened = await session.initialize()
            self._about = {**self._about, MCP.PROTOCOL: str(opened.protocolVersion)}
            yield session


@guarded
def _describe(about: Mapping[str, Any]) -> None:
    """Say on the call's span that a server of MCP's was asked; on nobody else's."""
    span = cast(Span, otel.get_value(TOOL_SPAN) or get_current_span())
    if (getattr(span, "attributes", None) or {}).get(GenAI.OPERATION) == "execute_tool":
        span.set_attributes({MCP.METHOD: "tools/call", **about})


def described(connection: Mapping[str, Any]) -> dict[str, Any]:
    """What a connection tells of its server; never its command, headers or path, which may hold secrets."""
    if connection.get("transport") == "stdio":
        return {MCP.TRANSPORT: "pipe"}
    parts = urlsplit(str(connection.get("url", "")))
    port = parts.port or _PORTS.get(parts.scheme)
    if not parts.hostname or port is None:
        return {MCP.TRANSPORT: "tcp"}
    return {MCP.TRANSPORT: "tcp", GenAI.SERVER_ADDRESS: parts.hostname, GenAI.SERVER_PORT: port}
