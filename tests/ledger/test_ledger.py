"""The ledger itself, on SQLite and PostgreSQL: who may execute, what operators see and settle, what a tool commits."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from langchain_core.messages import ToolMessage

from agentkit.errors import (
    EffectSuperseded,
    InvalidSettlement,
    InvalidStoreUrl,
    LedgerUnavailable,
    MissingDependency,
    NotJournaled,
    UnknownEffect,
    UnrecordableResult,
)
from agentkit.ledger import Call, Claim, Found, Ledger, Settlement

NOW = timedelta(0)


@pytest.fixture
def memory() -> Any:
    with Ledger("memory:") as opened:
        yield opened


def a_call(key: str = "k", **more: Any) -> Call:
    given: dict[str, Any] = {
        "key": key,
        "call_key": key,
        "thread_id": "t",
        "call_id": "c",
        "tool": "pay",
        "args": {"x": 1},
    }
    return Call(**{**given, **more})


def claimed(ledger: Ledger, call: Call) -> Claim:
    claim = ledger.claim(call)
    assert isinstance(claim, Claim)
    return claim


def result(text: str = "paid") -> ToolMessage:
    return ToolMessage(text, tool_call_id="c", name="pay")


def with_payments(ledger: Ledger) -> Any:
    with ledger.engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE payments (amount INTEGER)"))

    def paid() -> list[int]:
        with ledger.engine.begin() as connection:
            return list(connection.execute(sa.text("SELECT amount FROM payments")).scalars())

    return paid


def pay(connection: Any) -> None:
    connection.execute(sa.text("INSERT INTO payments VALUES (1)"))


# ---- who may execute


def test_of_many_threads_that_ask_for_one_effect_one_may_execute_it(ledger: Ledger) -> None:
    with ThreadPoolExecutor(16) as pool:
        got = list(pool.map(lambda _: ledger.claim(a_call()), range(32)))
    assert [type(one) for one in got].count(Claim) == 1


def test_many_effects_at_once_all_get_their_entry(ledger: Ledger) -> None:
    def execute(n: int) -> None:
        ledger.finish(claimed(ledger, a_call(f"k{n}")), result(str(n)), failed=False)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(execute, range(40)))
    assert {effect.outcome.text for effect in ledger.effects()} == {str(n) for n in range(40)}
    assert ledger.in_doubt(started_before=NOW) == []


def test_one_ledger_serves_several_event_loops(ledger: Ledger) -> None:
    async def look() -> int:
        return len(await ledger.ain_doubt(started_before=NOW))

    claimed(ledger, a_call())
    assert [asyncio.run(look()) for _ in range(2)] == [1, 1]


def test_a_woken_attempt_that_was_given_up_is_told_of_the_other_one(ledger: Ledger) -> None:
    frozen = claimed(ledger, a_call())
    ledger.settle("k", Settlement("not_done", by="ann"))
    second = claimed(ledger, a_call())
    with pytest.raises(EffectSuperseded, match=r"took effect all the same: look for a double effect"):
        ledger.finish(frozen, result(), failed=False)
    ledger.finish(second, result("second"), failed=False)
    assert ledger.get("k").outcome.text == "second"


# ---- the shared transaction


def test_effect_and_entry_are_committed_together_or_not_at_all(ledger: Ledger) -> None:
    paid = with_payments(ledger)
    claim = claimed(ledger, a_call(transactional=True))
    with pytest.raises(ZeroDivisionError), ledger.opened(claim), ledger.transaction() as connection:
        pay(connection)
        raise ZeroDivisionError
    assert (paid(), ledger.get("k").status) == ([], "started")
    again = claimed(ledger, a_call(transactional=True))
    with ledger.opened(again), ledger.transaction() as connection:
        pay(connection)
        ledger.record({"paid": 1})
    assert (paid(), ledger.get("k").status, ledger.get("k").outcome.text) == ([1], "done", '{"paid": 1}')


async def test_async_too_and_the_loop_goes_on(ledger: Ledger) -> None:
    paid = with_payments(ledger)
    turns: list[int] = []

    async def ticking() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    ticks = asyncio.create_task(ticking())
    with ledger.opened(claimed(ledger, a_call())):
        async with ledger.atransaction() as transaction:
            before = len(turns)
            await transaction.run_sync(pay)
            ledger.record("paid")
            assert len(turns) > before
    ticks.cancel()
    assert (paid(), ledger.get("k").status, ledger.get("k").outcome.text) == ([1], "done", "paid")


@pytest.mark.parametrize("moment", ["entering", "inside"])
async def test_a_cancelled_transaction_is_undone(memory: Ledger, moment: str) -> None:
    paid = with_payments(memory)
    inside = asyncio.Event()

    async def tool() -> None:
        async with memory.atransaction() as transaction:
            await transaction.run_sync(pay)
            inside.set()
            await asyncio.sleep(60)

    with memory.opened(claimed(memory, a_call())):
        going = asyncio.create_task(tool())
        await (asyncio.sleep(0) if moment == "entering" else inside.wait())
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
    assert (await asyncio.to_thread(paid), (await memory.aget("k")).status) == ([], "started")


def test_a_frozen_attempt_cannot_commit_once_another_was_begun(ledger: Ledger) -> None:
    paid = with_payments(ledger)
    frozen = claimed(ledger, a_call(transactional=True))
    claimed(ledger, a_call(transactional=True))
    with (
        pytest.raises(EffectSuperseded, match=r"rolled back"),
        ledger.opened(frozen),
        ledger.transaction() as connection,
    ):
        pay(connection)
    assert paid() == []


def test_a_transaction_is_to_be_had_once_in_a_recorded_call_only(memory: Ledger) -> None:
    with pytest.raises(NotJournaled, match="no call is being recorded"), memory.transaction():
        pass
    with memory.opened(claimed(memory, a_call())):
        with pytest.raises(NotJournaled, match="inside of its block"):
            memory.record("paid")
        with memory.transaction():
            pass
        with pytest.raises(NotJournaled, match="has had its transaction"), memory.transaction():
            pass


def test_what_cannot_be_recorded_is_refused_before_it_is_committed(memory: Ledger) -> None:
    paid = with_payments(memory)
    receipt = ToolMessage("paid", tool_call_id="c", artifact=object())
    with (
        pytest.raises(UnrecordableResult),
        memory.opened(claimed(memory, a_call())),
        memory.transaction() as connection,
    ):
        pay(connection)
        memory.record(receipt)
    assert paid() == []


# ---- operators


def test_doubts_are_listed_and_settled(ledger: Ledger, clock: Any) -> None:
    claimed(ledger, a_call("crashed", args={"x": 7}))
    clock.now += 1
    failed = claimed(ledger, a_call("timed-out"))
    ledger.break_off(failed, TimeoutError())
    assert [effect.key for effect in ledger.in_doubt()] == ["timed-out"]
    clock.now += 16 * 60
    claimed(ledger, a_call("running"))
    crashed, timed_out = ledger.in_doubt()
    assert (crashed.args, crashed.status, timed_out.error) == ({"x": 7}, "started", "TimeoutError")
    assert timed_out.started_at.utcoffset() == timedelta(0)

    settled = ledger.settle("crashed", Settlement("done", "paid 7", by="ann"))
    assert (settled.status, settled.outcome.text, settled.settled_by) == ("done", "paid 7", "ann")
    ledger.settle("timed-out", Settlement("not_done"))
    assert ledger.in_doubt() == []
    assert isinstance(ledger.claim(a_call("timed-out")), Claim), "it may be executed now"
    found = ledger.claim(a_call("crashed", args={"x": 7}))
    assert isinstance(found, Found) and found.verdict == "recorded"


async def test_settling_what_cannot_be_settled_is_named(memory: Ledger) -> None:
    with pytest.raises(UnknownEffect, match="'nothing'"):
        await memory.asettle("nothing", Settlement("done"))
    memory.finish(claimed(memory, a_call()), result(), failed=False)
    with pytest.raises(InvalidSettlement, match="not in doubt; it is 'done'"):
        await memory.asettle("k", Settlement("not_done"))
    with pytest.raises(InvalidSettlement, match="settles nothing"):
        await memory.asettle("k", Settlement("unknown"))
    with pytest.raises(InvalidSettlement, match="only what is done has a result"):
        Settlement("not_done", "paid")


async def test_old_entries_go_and_doubts_stay(ledger: Ledger, clock: Any) -> None:
    for n in range(3):
        ledger.finish(claimed(ledger, a_call(f"old{n}")), result(), failed=n == 0)
    ledger.serve(a_call("old1"))
    claimed(ledger, a_call("open"))
    ledger.break_off(claimed(ledger, a_call("doubt")), TimeoutError())
    clock.now += 3600
    ledger.finish(claimed(ledger, a_call("new")), result(), failed=False)
    assert await ledger.aprune(timedelta(minutes=30), dry_run=True) == 3
    assert ledger.prune(timedelta(minutes=30)) == 3
    assert {effect.key for effect in ledger.effects()} == {"open", "doubt", "new"}
    assert ledger.served("old1") == []


def test_entries_are_found_by_status_and_thread(memory: Ledger) -> None:
    memory.finish(claimed(memory, a_call("a")), result(), failed=False)
    claimed(memory, a_call("b", thread_id="other"))
    assert [effect.key for effect in memory.effects(status="done")] == ["a"]
    assert [effect.key for effect in memory.effects(thread_id="other")] == ["b"]
    assert len(memory.effects(limit=1)) == 1


# ---- databases that are not there


def test_a_database_that_restarts_is_named_while_it_is_away_and_used_again(own_postgres: Any) -> None:
    with Ledger(own_postgres.url()) as ledger:
        claim = claimed(ledger, a_call())
        own_postgres.stop()
        with pytest.raises(LedgerUnavailable, match=r"record the call .*OperationalError"):
            ledger.claim(a_call("other"))
        own_postgres.start()
        ledger.finish(claim, result(), failed=False)
        assert ledger.get("k").status == "done"
        assert isinstance(ledger.claim(a_call("other")), Claim)


def test_passwords_are_not_shown() -> None:
    url = "postgresql://ann:secret@127.0.0.1:1/none?connect_timeout=1"
    with Ledger(url) as ledger, pytest.raises(LedgerUnavailable) as caught:
        ledger.claim(a_call())
    assert "secret" not in repr(ledger) + str(caught.value)
    assert "ann" in repr(ledger)


@pytest.mark.parametrize("url", ["nonsense", "http://secret@host/x", "sqlite//ledger.db"])
def test_a_url_that_cannot_be_read_is_named_without_its_secrets(url: str) -> None:
    with pytest.raises(InvalidStoreUrl, match="sqlite:///") as caught:
        Ledger(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("missing", "url", "extra"),
    [
        ("sqlalchemy.exc", "sqlite:///x.db", r"agentkit\[sqlite\]"),
        ("psycopg", "postgresql://h/d", r"agentkit\[postgres\]"),
    ],
)
def test_a_missing_driver_is_named_with_its_extra(
    missing: str, url: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingDependency, match=extra):
        Ledger(url)


def test_an_engine_of_the_caller_is_used_and_left_open(tmp_path: Any) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    ledger = Ledger(engine)
    claimed(ledger, replace(a_call(), key="mine"))
    ledger.close()
    assert ledger.engine is engine
    assert ledger.get("mine").status == "started"
    engine.dispose()
