"""Calls of a real MCP server's tools, over stdio: the trace arrives there, and no call has a second span."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agentkit import Middleware
from agentkit.errors import ConfigurationError
from agentkit.telemetry.mcp import traced
from agentkit.testing import ScriptedModel, ai, arun, tool_call

client_module = pytest.importorskip(
    "langchain_mcp_adapters.client", reason="langchain-mcp-adapters is not installed (extra: test)"
)
tools_module = pytest.importorskip("langchain_mcp_adapters.tools")
pytest.importorskip("mcp.server.fastmcp", reason="mcp below 2 is not installed (extra: test)")

_SERVER = '''
import json, sys
from pathlib import Path
from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("shop", log_level="ERROR")
journal = Path(sys.argv[1])


@server.tool()
def stock(sku: str, ctx: Context) -> str:
    """How many there are."""
    meta = ctx.request_context.meta
    with journal.open("a") as file:
        file.write(json.dumps(meta.model_dump() if meta else None) + "\\n")
    if sku == "lost":
        raise ValueError("no such article")
    return "12"


server.run()
'''


class Passing(Middleware):
    """A wrap of tools, so that there is a span of its own in between."""

    def wrap_tool_call(self, request: Any) -> Any:
        return (yield request)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "journal.txt"
    path.touch()
    return path


@pytest.fixture
def connection(journal: Path) -> dict[str, Any]:
    server = journal.with_name("server.py")
    server.write_text(_SERVER)
    return {
        "command": sys.executable,
        "args": [str(server), str(journal)],
        "transport": "stdio",
        "env": {"PYTHONPATH": os.pathsep.join(sys.path)},
    }


def model(sku: str = "lamp") -> ScriptedModel:
    return ScriptedModel(ai("", tool_call("stock", {"sku": sku})), "done")


async def test_the_trace_arrives_and_the_call_has_one_span(
    recorder: Any, connection: dict[str, Any], journal: Path
) -> None:
    """One server for a session, one for a call that opens its own: they take a second each to start."""
    recorder.options["hook_spans"] = True
    async with client_module.MultiServerMCPClient({"shop": connection}).session("shop") as session:
        mine = traced(session)
        tools = await tools_module.load_mcp_tools(mine)
        for sku in ("lamp", "lost"):
            await arun(recorder.create(model(sku), tools, middleware=[Passing()]), "hi")
        plain = await tools_module.load_mcp_tools(session)
        await arun(recorder.create(model(), plain), "hi")
        await mine.call_tool("stock", {"sku": "lamp"})
        await mine.call_tool("stock", {"sku": "lamp"}, meta={"traceparent": "mine"})
        assert mine.get_server_capabilities() is not None
        (listed,) = (await mine.list_tools()).tools
    alone = tools_module.convert_mcp_tool_to_langchain_tool(traced(connection), listed)
    assert (await arun(recorder.create(model(), [alone]), "hi")).text == "done"

    called, failed, untold, separate = recorder.named("execute_tool")
    methods = [span.attributes.get("mcp.method.name") for span in (called, failed, untold, separate)]
    assert methods == ["tools/call", "tools/call", None, "tools/call"]
    assert failed.attributes["error.type"] == "tool_error"
    assert separate.attributes["network.transport"] == "pipe"
    assert separate.attributes["mcp.protocol.version"][:2] == "20"  # protocols are named by their dates
    assert len([span for span in recorder.spans if "mcp.method.name" in span.attributes]) == 3
    assert recorder.findings() == []

    spans = {span.get_span_context().span_id: span for span in recorder.spans}
    metas = [meta or {} for meta in map(json.loads, journal.read_text().splitlines())]
    sent: list[Any] = [meta.get("traceparent") for meta in metas]
    assert sent[2:5] == [None, None, "mine"]  # not asked to, no trace, the caller's own
    senders = [spans[int(sent[place].split("-")[2], 16)] for place in (0, 1, 5)]
    assert [span.name for span in senders] == ["hook Passing.wrap_tool_call"] * 2 + ["execute_tool stock"]
    calls = (called, failed, separate)
    assert [span.parent.span_id for span in senders[:2]] == [span.get_span_context().span_id for span in calls[:2]]
    traces = [span.get_span_context().trace_id for span in calls]
    assert [int(sent[place].split("-")[1], 16) for place in (0, 1, 5)] == traces


def test_what_a_remote_connection_tells_holds_no_secret() -> None:
    about = traced(
        {"transport": "streamable_http", "url": "https://u:pw@mcp.shop.example/key-1", "headers": {"x": "y"}}
    )
    assert about._about == {
        "network.transport": "tcp",
        "server.address": "mcp.shop.example",
        "server.port": 443,
    }


def test_what_is_neither_session_nor_connection_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"takes an mcp\.ClientSession or a connection, not list"):
        traced([])
