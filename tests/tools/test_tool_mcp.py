"""Contracts on the tools of a real MCP server, over stdio."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from agentkit import AgentState, create_agent
from agentkit.middleware import ToolRetry
from agentkit.testing import ScriptedModel, ai, arun, tool_call
from agentkit.tools import Contract, contract_of, with_contract

client_module = pytest.importorskip(
    "langchain_mcp_adapters.client", reason="langchain-mcp-adapters is not installed (extra: test)"
)
tools_module = pytest.importorskip("langchain_mcp_adapters.tools")
pytest.importorskip("mcp.server.fastmcp", reason="mcp below 2 is not installed (extra: test)")

_SERVER = '''
import asyncio, sys
from pathlib import Path
from typing import Literal
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

server = FastMCP("shop", log_level="ERROR")
journal = Path(sys.argv[1])


def note(line):
    with journal.open("a") as file:
        file.write(line + "\\n")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def find_order(number: int, kind: Literal["open", "closed"] = "open") -> dict[str, str]:
    """Find an order."""
    note(f"find {number}")
    return {"id": f"A-{number}", "kind": kind}


@server.tool(annotations=ToolAnnotations(readOnlyHint=False, idempotentHint=True))
async def refund(number: int) -> str:
    """Refund an order; slow."""
    note(f"refund {number}")
    await asyncio.sleep(10)
    return "refunded"


@server.tool()
async def pack(number: int) -> str:
    """Pack an order."""
    note(f"begin {number}")
    await asyncio.sleep(0.02)
    note(f"end {number}")
    return f"packed {number}"


server.run()
'''


class Order(AgentState[Any]):
    order_id: str


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """What the server did."""
    path = tmp_path / "journal.txt"
    path.touch()
    return path


@asynccontextmanager
async def shop(journal: Path) -> AsyncIterator[dict[str, BaseTool]]:
    """The server's tools by name, over one session; in the test's own task, since sessions may not change tasks."""
    server = journal.with_name("server.py")
    server.write_text(_SERVER)
    connection = {
        "command": sys.executable,
        "args": [str(server), str(journal)],
        "transport": "stdio",
        "env": {"PYTHONPATH": os.pathsep.join(sys.path)},
    }
    async with client_module.MultiServerMCPClient({"shop": connection}).session("shop") as session:
        yield {tool.name: tool for tool in await tools_module.load_mcp_tools(session)}


def asked(name: str, *args: dict[str, Any]) -> ScriptedModel:
    return ScriptedModel(ai("", *(tool_call(name, one, f"c{n}") for n, one in enumerate(args))), "done")


def results(ended: Any) -> list[ToolMessage]:
    return [m for m in ended.messages if isinstance(m, ToolMessage)]


async def test_an_mcp_tool_promises_nothing_unless_its_server_is_trusted(journal: Path) -> None:
    async with shop(journal) as tools:
        assert all(contract_of(tool) == Contract() for tool in tools.values())
        trusted = {name: contract_of(with_contract(tool, trust_hints=True)) for name, tool in tools.items()}
        assert trusted["find_order"] == Contract(effect="read")
        assert trusted["refund"] == Contract(effect="write", idempotent=True)
        assert trusted["pack"] == Contract()
        assert contract_of(with_contract(tools["pack"], trust_hints=True, effect="write")) == Contract(effect="write")


async def test_arguments_are_checked_before_the_server_is_asked(journal: Path) -> None:
    async with shop(journal) as tools:
        model = asked("find_order", {"kind": "lost"}, {"number": "seven"}, {"number": 7})
        bad, worse, good = results(await arun(create_agent(model, [tools["find_order"]]), "go"))
        assert (
            "- number: Field required" in bad.text and "Must be one of 'open', 'closed' (you sent 'lost')" in bad.text
        )
        assert "- number: Must be of type integer (you sent 'seven')" in worse.text
        assert "It takes number (integer), kind ('open' | 'closed', optional)" in worse.text
        assert (bad.status, worse.status, good.status) == ("error", "error", "success")
        assert journal.read_text() == "find 7\n"


async def test_state_fields_are_filled_from_structured_content(journal: Path) -> None:
    async with shop(journal) as tools:
        find = with_contract(tools["find_order"], effect="read", writes={"order_id": "id"})
        ended = await arun(create_agent(asked("find_order", {"number": 7}), [find], state_schema=Order), "go")
        assert ended.values["order_id"] == "A-7"


async def test_a_time_out_is_an_error_result_and_is_repeated_only_if_declared(journal: Path, clock: Any) -> None:
    async with shop(journal) as tools:
        for contract, attempts in (({"effect": "write"}, 1), ({"idempotent": True}, 2)):
            journal.write_text("")
            refund = with_contract(tools["refund"], timeout=0.5, **contract)
            agent = create_agent(asked("refund", {"number": 1}), [refund], middleware=[ToolRetry(attempts=2)])
            [told] = results(await arun(agent, "go"))
            assert told.status == "error" and "did not answer within 0.5 s" in told.text
            assert journal.read_text() == "refund 1\n" * attempts


@pytest.mark.parametrize("contract", [{"max_concurrency": 1}, {"sequential": True}], ids=str)
async def test_order_and_number_at_once_hold(journal: Path, contract: dict[str, Any]) -> None:
    async with shop(journal) as tools:
        pack = with_contract(tools["pack"], **contract)
        ended = await arun(create_agent(asked("pack", {"number": 1}, {"number": 2}, {"number": 3}), [pack]), "go")
        lines = journal.read_text().split("\n")[:-1]
        assert [a.split()[1] for a in lines[::2]] == [b.split()[1] for b in lines[1::2]] and len(lines) == 6
        if "sequential" in contract:
            assert lines[::2] == ["begin 1", "begin 2", "begin 3"]
        assert len(results(ended)) == 3
