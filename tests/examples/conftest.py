"""A shop of one's own for each test."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from examples.order_assistant.shop import Shop
from tests.examples.shop_calls import Answer, call_tool


@pytest.fixture(scope="session")
def read_only_shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """One shop for the tests that change nothing."""
    return Shop.open(tmp_path_factory.mktemp("shop") / "shop.db")


@pytest.fixture
def shop(read_only_shop: Shop) -> Shop:
    """A freshly seeded shop, always at the same path: its tools are then built once."""
    return Shop(Path(shutil.copy(read_only_shop.path, read_only_shop.path.with_name("test.db"))))


@pytest.fixture
def rows(shop: Shop) -> Callable[..., list[tuple[Any, ...]]]:
    """Ask the test's shop in SQL, past the code under test."""

    def ask(sql: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(shop.path)) as connection:
            return connection.execute(sql, values).fetchall()

    return ask


@pytest.fixture
def call(shop: Shop) -> Callable[..., Answer]:
    """`call_tool` on the test's own shop."""

    def bound(customer: str | None, name: str, **arguments: Any) -> Answer:
        return call_tool(shop, customer, name, **arguments)

    return bound
