"""The PostgreSQL that tests ask for is a real one, fresh per test, and survives being stopped and started."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest


@pytest.mark.parametrize("time", [1, 2])
def test_each_test_has_an_empty_database(postgres_url: str, time: int) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE mine (x int)")
        (version,) = connection.execute("SELECT version()").fetchone() or ("",)
    assert "PostgreSQL" in version


def test_an_own_server_keeps_its_data_over_a_crash(own_postgres: Any) -> None:
    with psycopg.connect(own_postgres.url()) as connection:
        connection.execute("CREATE TABLE mine (x int)")
    own_postgres.stop()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(own_postgres.url())
    own_postgres.start()
    with psycopg.connect(own_postgres.url()) as connection:
        assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)
