"""What the tools tell, and to whom. The orders named here are those of the demo customers; see `seed_data.py`."""

# ruff: noqa: RUF001 - full-width digits are meant.

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage

from examples.order_assistant.shop import Shop, normalise_number
from examples.order_assistant.tools import make_tools
from tests.examples.shop_calls import EMMA, LUKAS, WANG, Answer, call_tool, runtime_for

Call = Callable[..., Answer]
BY_NUMBER = {"get_order": {}, "track_order": {}, "refund_order": {"reason": "just so"}}


def _owners(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT number, customer_id FROM orders"))


def _refund_count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        count: int = connection.execute("SELECT count(*) FROM refunds").fetchone()[0]
        return count


def test_the_model_is_never_asked_who_the_customer_is(read_only_shop: Shop) -> None:
    for tool in make_tools(read_only_shop):
        arguments = tool.tool_call_schema.model_json_schema().get("properties", {})  # type: ignore[union-attr]
        assert not {"customer", "customer_id", "user", "user_id", "runtime", "context"} & set(arguments), tool.name


@pytest.mark.parametrize("tool", sorted(BY_NUMBER))
def test_no_order_of_another_customer_is_reachable(read_only_shop: Shop, tool: str) -> None:
    owners = _owners(read_only_shop.path)
    before = _refund_count(read_only_shop.path)
    absent = call_tool(read_only_shop, EMMA, tool, order_number="ORD-99999", **BY_NUMBER[tool])
    assert absent.failed
    for number in (number for number, owner in owners.items() if owner != EMMA):
        answer = call_tool(read_only_shop, EMMA, tool, order_number=number, **BY_NUMBER[tool])
        assert answer.failed
        assert answer.text == absent.text.replace("ORD-99999", number)
    assert _refund_count(read_only_shop.path) == before


@settings(deadline=None)
@given(
    customer=st.sampled_from([EMMA, LUKAS, WANG, "C-1010", "' OR 1=1 --", "%"]),
    tool=st.sampled_from(["get_order", "track_order"]),
    typed=st.one_of(
        st.integers(19990, 22400).map(str),
        st.integers(19990, 22400).map(lambda number: f" ord-{number}  "),
        st.text(),
        st.sampled_from(
            ["%", "ORD-_____", "' OR '1'='1", "ORD-22301' --", "２２３０１", "#22301", "ORD-22301\0", "\ud800"]
        ),
    ),
)
def test_whatever_is_typed_only_ones_own_orders_are_shown(
    read_only_shop: Shop, customer: str, tool: str, typed: str
) -> None:
    answer = call_tool(read_only_shop, customer, tool, order_number=typed)
    own = _owners(read_only_shop.path).get(normalise_number(typed) or "") == customer
    if own:
        assert answer.data["number"] == normalise_number(typed)
    else:
        assert answer.failed
        assert answer.text.startswith("order_not_found: this customer has no order")


def test_nobody_signed_in_is_a_clear_error_of_every_tool(read_only_shop: Shop) -> None:
    arguments = {
        **{tool: {"order_number": "ORD-22301", **more} for tool, more in BY_NUMBER.items()},
        "search_products": {"query": "kettle"},
        "get_reviews": {"product": "AU-101"},
    }
    for tool in make_tools(read_only_shop):
        answer = call_tool(read_only_shop, None, tool.name, **arguments.get(tool.name, {}))
        assert answer.failed
        assert answer.text == "no_customer: nobody is signed in, so there is no account to look at", tool.name


def test_profile_lists_ones_own_latest_orders(call: Call) -> None:
    profile = call(WANG, "get_profile").data
    assert (profile["name"], profile["currency"], profile["today"]) == ("王芳", "CNY", "2026-03-16")
    assert [order["number"] for order in profile["recent_orders"]] == ["ORD-22288", "ORD-22171", "ORD-21196"]


@pytest.mark.parametrize(
    ("text", "customer"), [("c-1002", LUKAS), (" Lukas bergmann ", LUKAS), ("王芳", WANG), ("Lukas", None), ("", None)]
)
def test_whoever_starts_the_assistant_may_name_the_customer(
    read_only_shop: Shop, text: str, customer: str | None
) -> None:
    assert read_only_shop.customer_id(text) == customer


def test_an_unknown_customer_has_no_profile(call: Call) -> None:
    assert call("C-9999", "get_profile").text == "customer_not_found: there is no customer 'C-9999'"
    assert call("C-9999", "get_latest_order").text == "no_orders: this customer has not ordered anything yet"


def test_latest_order_shows_lines_and_amounts(call: Call) -> None:
    order = call(EMMA, "get_latest_order").data
    assert (order["number"], order["placed_on"], order["status"]) == ("ORD-22301", "2026-03-13", "shipped")
    assert [(line["name"], line["quantity"], line["total"]["text"]) for line in order["lines"]] == [
        ("Aurora Headphones", 1, "$139.00"),
        ("Braid USB-C Cable", 2, "$28.00"),
    ]
    assert order["paid"] == {"text": "$167.00", "minor": 16700, "currency": "USD"}
    assert order["refundable"]["obstacle"] == "in_transit"


@pytest.mark.parametrize("typed", ["ORD-22080", "ord-22080", "22080", "#22080", " ORD 22080 ", "２２０８０"])
def test_order_numbers_are_read_as_people_type_them(call: Call, typed: str) -> None:
    assert call(EMMA, "get_order", order_number=typed).data["number"] == "ORD-22080"


def test_tracking_tells_the_newest_event_first(call: Call) -> None:
    parcel = call(LUKAS, "track_order", order_number="ORD-22223").data
    assert [event["event"] for event in parcel["events"]] == [
        "delivery_failed", "out_for_delivery", "sorting_centre", "picked_up",
    ]  # fmt: skip
    assert parcel["delivered_on"] is None


def test_an_order_that_has_not_left_has_no_events(call: Call) -> None:
    parcel = call(LUKAS, "track_order", order_number="ORD-22327").data
    assert parcel == {"number": "ORD-22327", "status": "processing", "events": []}


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("headphones", "Aurora Headphones"),
        ("a kettle, please", "Ember Kettle"),
        ("mugs", "Stone Mug Set"),
        ("耳机", "Aurora Headphones"),
        ("保温杯", "Drift Water Bottle"),
        ("USB-C cable", "Braid USB-C Cable"),
    ],
)
def test_search_finds_what_people_call_it(call: Call, query: str, first: str) -> None:
    assert call(EMMA, "search_products", query=query).data["products"][0]["name"] == first


def test_search_prices_are_in_the_customers_currency(call: Call) -> None:
    prices = [
        call(customer, "search_products", query="kettle").data["products"][0]["price"]["text"]
        for customer in (EMMA, LUKAS, WANG)
    ]
    assert prices == ["$65.00", "€59.90", "¥459.00"]


def test_a_search_without_a_word_or_a_match(call: Call) -> None:
    assert call(EMMA, "search_products", query="?!").text.startswith("empty_query: ")
    assert call(EMMA, "search_products", query="submarine").data["products"] == []


def test_reviews_add_up_and_speak_the_customers_language_first(call: Call, rows: Callable[..., Any]) -> None:
    reviews = call(WANG, "get_reviews", product="Ember Kettle").data
    ratings = [rating for (rating,) in rows("SELECT rating FROM reviews WHERE sku = 'KI-201'")]
    assert reviews["count"] == len(ratings) == sum(reviews["by_stars"].values())
    assert reviews["average"] == round(sum(ratings) / len(ratings), 1)
    [chinese] = rows(
        "SELECT count(*) FROM reviews JOIN customers c ON c.id = customer_id WHERE sku = 'KI-201' AND locale = 'zh-CN'"
    )
    shown_first = [any("\u4e00" <= letter <= "\u9fff" for letter in review["body"]) for review in reviews["recent"]]
    assert shown_first == sorted(shown_first, reverse=True)
    assert sum(shown_first) == min(3, chinese[0])


def test_reviews_want_one_product(call: Call) -> None:
    ambiguous = call(EMMA, "get_reviews", product="ember")
    assert ambiguous.failed
    assert "Ember Kettle (KI-201), Ember Camping Stove (OU-404)" in ambiguous.text
    assert call(EMMA, "get_reviews", product="Sony headphones").text.startswith("product_not_found: ")
    assert call(EMMA, "get_reviews", product="ki-201").data["name"] == "Ember Kettle"


async def test_the_tools_also_run_async(shop: Shop) -> None:
    tool = next(tool for tool in make_tools(shop) if tool.name == "get_reviews")
    synchronous = call_tool(shop, EMMA, "get_reviews", product="AU-101")
    message = await tool.ainvoke(
        {"type": "tool_call", "name": tool.name, "id": "c", "args": {"product": "AU-101", "runtime": runtime_for(EMMA)}}
    )
    assert isinstance(message, ToolMessage)
    assert message.text == synchronous.text
