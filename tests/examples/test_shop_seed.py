"""The demo shop is the same everywhere, and its rows fit together."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from examples.order_assistant.database import DatabaseUnusable, default_path, prepare, transaction
from examples.order_assistant.seed import create_tables, fill
from examples.order_assistant.shop import Shop

Rows = Callable[..., list[tuple[Any, ...]]]


def _dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def _seeded(seed: int) -> list[str]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create_tables(connection)
        fill(connection, seed)
        return list(connection.iterdump())


def test_two_shops_are_equal_row_by_row(tmp_path: Path) -> None:
    assert _dump(prepare(tmp_path / "one.db")) == _dump(prepare(tmp_path / "deep" / "er" / "two.db"))


def test_the_seed_matters() -> None:
    assert _seeded(1) == _seeded(1)
    assert _seeded(1) != _seeded(2)


def test_the_shop_is_of_a_realistic_size(rows: Rows) -> None:
    counts = {
        table: rows(f"SELECT count(*) FROM {table}")[0][0]
        for table in ("customers", "products", "orders", "order_lines", "shipments", "tracking_events", "reviews")
    }
    assert min(counts.values()) >= 20
    assert 300 <= sum(counts.values()) <= 2000
    assert {locale for (locale,) in rows("SELECT DISTINCT locale FROM customers")} == {"en-US", "de-DE", "zh-CN"}
    assert {currency for (currency,) in rows("SELECT DISTINCT currency FROM orders")} == {"EUR", "USD", "CNY"}


def test_rows_fit_together(rows: Rows) -> None:
    assert rows("PRAGMA foreign_key_check") == []
    wrong_totals = rows(
        "SELECT number FROM orders WHERE paid_minor != "
        "(SELECT sum(quantity * unit_minor) FROM order_lines WHERE order_number = number)"
    )
    assert wrong_totals == []
    overpaid = rows(
        "SELECT number FROM orders JOIN refunds ON order_number = number GROUP BY number HAVING sum(minor) > paid_minor"
    )
    assert overpaid == []
    assert (
        rows("SELECT number FROM orders JOIN customers c ON c.id = customer_id WHERE orders.currency != c.currency")
        == []
    )


def test_parcels_follow_their_orders_and_never_come_from_the_future(rows: Rows) -> None:
    [(today,)] = rows("SELECT value FROM settings WHERE key = 'today'")
    assert rows("SELECT number FROM orders WHERE placed_on > ?", today) == []
    assert rows("SELECT tracking_number FROM tracking_events WHERE happened_at > ?", f"{today} 23:59") == []
    odd = rows(
        "SELECT number FROM orders LEFT JOIN shipments ON order_number = number WHERE "
        "(status IN ('processing', 'cancelled')) != (tracking_number IS NULL) "
        "OR (status = 'delivered') != (delivered_on IS NOT NULL) OR shipped_on < placed_on OR delivered_on < shipped_on"
    )
    assert odd == []
    disordered = rows(
        "SELECT a.tracking_number FROM tracking_events a JOIN tracking_events b USING (tracking_number) "
        "WHERE a.position < b.position AND a.happened_at >= b.happened_at"
    )
    assert disordered == []


def test_foreign_keys_are_enforced(shop: Shop) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"), transaction(shop.path) as connection:
        connection.execute("INSERT INTO orders VALUES ('ORD-1', 'C-9', '2026-01-01', 'processing', 'EUR', 100)")


def test_opening_again_keeps_what_happened(shop: Shop) -> None:
    shop.refund("C-1001", "ORD-22080", 100, "scratched", "key")
    before = _dump(shop.path)
    Shop.open(shop.path)
    assert _dump(shop.path) == before


def test_many_first_openings_at_once_seed_it_once(tmp_path: Path) -> None:
    start, failures = threading.Barrier(6), []

    def open_it() -> None:
        start.wait()
        try:
            Shop.open(tmp_path / "shop.db")
        except Exception as error:
            failures.append(error)

    workers = [threading.Thread(target=open_it) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    assert _dump(tmp_path / "shop.db") == _dump(prepare(tmp_path / "other.db"))


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.commit()
    before = _dump(path)
    with pytest.raises(DatabaseUnusable, match="another program's database; name another file with --db PATH"):
        prepare(path)
    assert _dump(path) == before


def test_another_schema_version_is_refused(shop: Shop) -> None:
    with closing(sqlite3.connect(shop.path)) as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(DatabaseUnusable, match="schema version 7"):
        prepare(shop.path)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be taken for one\n" * 50, encoding="utf-8")
    with pytest.raises(DatabaseUnusable, match=r"notes\.txt.*not a database"):
        prepare(path)


def test_the_default_place_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ORDER_ASSISTANT_HOME", str(tmp_path))
    assert default_path() == tmp_path / "shop.db"
    monkeypatch.delenv("ORDER_ASSISTANT_HOME")
    assert default_path().is_absolute()
    assert default_path().name == "shop.db"
