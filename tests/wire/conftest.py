"""Agents on ChatOpenAI against local servers, through each of an agent's entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from llmock.testing import LLMockServer
from pydantic import SecretStr

from tests.wire.driving import drive, loop
from tests.wire.wire_server import WireServer

__all__ = ["Chat", "Till", "drive", "loop"]


@pytest.fixture(scope="session")
def _wire_server() -> Iterator[WireServer]:
    server = WireServer()
    yield server
    server.close()


@pytest.fixture
def wire(_wire_server: WireServer) -> Iterator[WireServer]:
    """The scripted server; a request that a strict provider would refuse fails the test that made it."""
    yield _wire_server.plays()
    assert not _wire_server.refused


@pytest.fixture(scope="session")
def llmock_server() -> Iterator[LLMockServer]:
    """A server of our own, so that no other folder's event loop holds a client of its URL."""
    with LLMockServer() as server:
        yield server


Chat = Callable[..., ChatOpenAI]


@pytest.fixture(scope="session")
def chat(_wire_server: WireServer) -> Chat:
    """Makes a ChatOpenAI on the scripted server; it retries nothing by itself. Equal ones are made once."""

    @cache
    def make(**fields: Any) -> ChatOpenAI:
        settings = {"timeout": 5.0, "max_retries": 0, "stream_usage": True} | fields
        return ChatOpenAI(model="gpt-wire", base_url=_wire_server.base_url, api_key=SecretStr("unused"), **settings)

    return make


@dataclass
class Till:
    """What was really done: tools with an effect, and the effects in the order in which they happened."""

    refunds: list[tuple[str, int]] = field(default_factory=list)

    @property
    def tools(self) -> list[BaseTool]:
        """A write whose second argument is optional, so that half of its arguments pass for all of them; a read."""

        @tool
        def refund_order(order_id: str, amount: int = 0) -> str:
            """Refund an order."""
            self.refunds.append((order_id, amount))
            return f"refunded {order_id}: {amount}"

        @tool
        def look_up(order_id: str) -> str:
            """Look up an order."""
            return f"{order_id} is delivered"

        return [refund_order, look_up]


@pytest.fixture
def till() -> Till:
    return Till()
