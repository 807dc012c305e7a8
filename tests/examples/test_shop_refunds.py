"""Money goes back by the rules, and once."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.order_assistant.database import transaction
from examples.order_assistant.shop import Shop
from tests.examples.shop_calls import EMMA, LUKAS, Answer, call_tool

Call = Callable[..., Answer]
Rows = Callable[..., list[tuple[Any, ...]]]


def _refunds(rows: Rows, number: str) -> list[tuple[Any, ...]]:
    return rows("SELECT minor, reason FROM refunds WHERE order_number = ? ORDER BY id", number)


def test_a_whole_order_is_refunded(call: Call, rows: Rows) -> None:
    done = call(EMMA, "refund_order", order_number="22080", reason="too loud").data
    assert done["amount"] == {"text": "$129.00", "minor": 12900, "currency": "USD"}
    assert _refunds(rows, "ORD-22080") == [(12900, "too loud")]
    assert call(EMMA, "get_order", order_number="22080").data["refundable"]["obstacle"] == "already_refunded"


def test_parts_add_up_to_the_whole_and_no_further(call: Call, rows: Rows) -> None:
    first = call(EMMA, "refund_order", order_number="22080", reason="a", amount_minor=6500, call_id="1")
    assert first.data["refunded_in_all"]["text"] == "$65.00"
    too_much = call(EMMA, "refund_order", order_number="22080", reason="b", amount_minor=6401, call_id="2")
    assert too_much.text == "amount_too_high: $64.01 is more than the $64.00 that is left to refund (6400 minor)"
    rest = call(EMMA, "refund_order", order_number="22080", reason="c", call_id="3")
    assert rest.data["amount"]["text"] == "$64.00"
    assert call(EMMA, "refund_order", order_number="22080", reason="d", call_id="4").text == (
        "already_refunded: the order ORD-22080 has been refunded in full"
    )
    assert _refunds(rows, "ORD-22080") == [(6500, "a"), (6400, "c")]


@pytest.mark.parametrize(
    ("customer", "number", "code"),
    [
        (EMMA, "ORD-22301", "in_transit"),
        (EMMA, "ORD-21469", "too_late"),
        (EMMA, "ORD-20832", "already_refunded"),
    ],
)
def test_rules_that_forbid_a_refund(call: Call, rows: Rows, customer: str, number: str, code: str) -> None:
    before = _refunds(rows, number)
    assert call(customer, "refund_order", order_number=number, reason="r").text.startswith(f"{code}: ")
    assert _refunds(rows, number) == before


@pytest.mark.parametrize(("days_ago", "allowed"), [(30, True), (31, False)])
def test_thirty_days_count_from_the_delivery(shop: Shop, call: Call, days_ago: int, allowed: bool) -> None:
    with transaction(shop.path) as connection:
        connection.execute(
            "UPDATE shipments SET delivered_on = date('2026-03-16', ?) WHERE order_number = 'ORD-22080'",
            (f"-{days_ago} days",),
        )
    answer = call(EMMA, "refund_order", order_number="ORD-22080", reason="r")
    assert answer.failed is not allowed


@pytest.mark.parametrize("minor", [0, -1, -12900])
def test_an_amount_has_to_be_positive(call: Call, rows: Rows, minor: int) -> None:
    assert call(EMMA, "refund_order", order_number="22080", reason="r", amount_minor=minor).text.startswith(
        "bad_amount: "
    )
    assert _refunds(rows, "ORD-22080") == []


def test_an_order_that_has_not_left_is_cancelled_by_its_full_refund(call: Call) -> None:
    call(LUKAS, "refund_order", order_number="22327", reason="r", amount_minor=100, call_id="1")
    assert call(LUKAS, "get_order", order_number="22327").data["status"] == "processing"
    call(LUKAS, "refund_order", order_number="22327", reason="r", call_id="2")
    assert call(LUKAS, "get_order", order_number="22327").data["status"] == "cancelled"


def test_the_same_call_again_is_one_refund(shop: Shop, rows: Rows) -> None:
    wish = {"order_number": "22080", "reason": "r", "amount_minor": 500}
    first = call_tool(shop, EMMA, "refund_order", **wish)  # type: ignore[arg-type]
    again = call_tool(Shop.open(shop.path), EMMA, "refund_order", **{**wish, "order_number": "ORD-22080"})  # type: ignore[arg-type]
    assert first.data == again.data
    assert _refunds(rows, "ORD-22080") == [(500, "r")]


def test_a_full_refund_repeated_answers_as_the_first_time(call: Call) -> None:
    first = call(EMMA, "refund_order", order_number="22080", reason="r")
    assert call(EMMA, "refund_order", order_number="22080", reason="r").data == first.data


@pytest.mark.parametrize(
    "other",
    [{"call_id": "call-2"}, {"thread": "thread-2"}, {"amount_minor": 501}],
    ids=["another call", "another thread", "a reused id with another amount"],
)
def test_another_wish_is_another_refund(call: Call, rows: Rows, other: dict[str, Any]) -> None:
    wish = {"order_number": "22080", "reason": "r", "amount_minor": 500}
    call(EMMA, "refund_order", **wish)
    call(EMMA, "refund_order", **{**wish, **other})
    assert len(_refunds(rows, "ORD-22080")) == 2


def _at_once(jobs: list[Callable[[], Answer]]) -> list[Answer]:
    start, answers = threading.Barrier(len(jobs)), []

    def run(job: Callable[[], Answer]) -> None:
        start.wait()
        answers.append(job())

    workers = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return answers


def test_the_same_call_in_two_threads_at_once_is_one_refund(shop: Shop, rows: Rows) -> None:
    def refund() -> Answer:
        return call_tool(shop, EMMA, "refund_order", order_number="22080", reason="r")

    one, other = _at_once([refund, refund])
    assert one.data == other.data
    assert _refunds(rows, "ORD-22080") == [(12900, "r")]


def test_two_calls_at_once_never_pay_more_than_was_paid(shop: Shop, rows: Rows) -> None:
    def refund(call_id: str) -> Callable[[], Answer]:
        return lambda: call_tool(shop, EMMA, "refund_order", call_id=call_id, order_number="22080", reason=call_id)

    answers = _at_once([refund("a"), refund("b"), refund("c")])
    assert sorted(answer.failed for answer in answers) == [False, True, True]
    assert [minor for minor, _ in _refunds(rows, "ORD-22080")] == [12900]


@pytest.fixture(scope="module")
def module_shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.open(tmp_path_factory.mktemp("shop") / "shop.db")


@settings(deadline=None, max_examples=30)
@given(amounts=st.lists(st.integers(-5, 8000), max_size=6))
def test_refunds_never_exceed_the_payment(module_shop: Shop, amounts: list[int]) -> None:
    with transaction(module_shop.path) as connection:
        connection.execute("DELETE FROM refunds WHERE order_number = 'ORD-22080'")
    paid_back = 0
    for index, minor in enumerate(amounts):
        wish = {"order_number": "22080", "reason": "r", "amount_minor": minor}
        answer = call_tool(module_shop, EMMA, "refund_order", call_id=str(index), **wish)  # type: ignore[arg-type]
        accepted = 0 < minor <= 12900 - paid_back
        assert answer.failed is not accepted
        paid_back += minor if accepted else 0
        if accepted:
            assert answer.data["refunded_in_all"]["minor"] == paid_back
