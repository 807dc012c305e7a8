"""The offline planner in conversation: what it looks up, what it remembers, and when money moves."""

# ruff: noqa: RUF001 - Chinese punctuation is meant.

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from examples.order_assistant import tools
from examples.order_assistant.planner import next_step
from examples.order_assistant.planner.understand import LANGUAGES
from examples.order_assistant.shop import Shop
from tests.examples.shop_calls import EMMA, WANG, call_tool

ALL_TOOLS = frozenset(
    ("get_profile", "get_latest_order", "get_order", "track_order", "search_products", "get_reviews", "refund_order")
)


class Talk:
    """A conversation with the planner on a real shop, without an agent in between."""

    def __init__(self, shop: Shop, customer: str, tools: frozenset[str] = ALL_TOOLS) -> None:
        self.shop, self.customer, self.tools = shop, customer, tools
        self.messages: list[BaseMessage] = []
        self.calls: list[list[tuple[str, dict[str, Any]]]] = []

    def say(self, text: str) -> str:
        self.messages.append(HumanMessage(text))
        self.calls = []
        while (step := next_step(self.messages, self.tools)).calls:
            self.calls.append([(call.tool, dict(call.arguments)) for call in step.calls])
            ids = [f"{len(self.messages)}-{index}" for index in range(len(step.calls))]
            calls = [
                {"name": call.tool, "args": dict(call.arguments), "id": call_id}
                for call, call_id in zip(step.calls, ids, strict=True)
            ]
            self.messages.append(AIMessage("", tool_calls=calls))
            for call, call_id in zip(step.calls, ids, strict=True):
                answer = call_tool(self.shop, self.customer, call.tool, call_id=call_id, **call.arguments)
                status = "error" if answer.failed else "success"
                self.messages.append(ToolMessage(answer.text, tool_call_id=call_id, status=status))
        self.messages.append(AIMessage(step.text))
        return step.text


def test_where_is_my_latest_order_takes_two_look_ups(shop: Shop) -> None:
    talk = Talk(shop, EMMA)
    answer = talk.say("Where is my latest order?")
    assert talk.calls == [[("get_latest_order", {})], [("track_order", {"order_number": "ORD-22301"})]]
    assert "ORD-22301 went out with" in answer
    assert "out for delivery" in answer


def test_comparing_two_products_looks_both_up_at_once(shop: Shop) -> None:
    talk = Talk(shop, EMMA)
    answer = talk.say("Compare the reviews of the Aurora Headphones and the Nimbus Earbuds")
    assert talk.calls == [
        [("get_reviews", {"product": "Aurora Headphones"}), ("get_reviews", {"product": "Nimbus Earbuds"})]
    ]
    assert "Buyers like the Aurora Headphones best" in answer


def test_comparing_with_an_unknown_product_still_shows_the_other(shop: Shop) -> None:
    answer = Talk(shop, EMMA).say("Compare the Ember Kettle and the Sony Walkman")
    assert answer.startswith("Ember Kettle ($65.00): ")
    assert answer.endswith("I don't know a product called “Sony Walkman”.")


def test_it_is_the_order_talked_about_last(shop: Shop) -> None:
    talk = Talk(shop, EMMA)
    talk.say("order 22080")
    talk.say("thanks")
    assert "ORD-22080 went out" in talk.say("where is it?")
    assert "ORD-22301" in talk.say("and my latest order?")
    assert "ORD-22301 is on its way, so I can't refund it yet" in talk.say("refund it")


def test_them_are_the_products_listed_last(shop: Shop) -> None:
    talk = Talk(shop, WANG)
    assert "极光头戴耳机，¥999.00" in talk.say("有没有耳机？")
    talk.say("比较它们")
    assert talk.calls == [[("get_reviews", {"product": "AU-101"}), ("get_reviews", {"product": "AU-102"})]]
    talk.say("和余烬电热水壶比较")
    assert talk.calls == [[("get_reviews", {"product": "AU-101"}), ("get_reviews", {"product": "余烬电热水壶"})]]


def test_money_moves_only_after_a_yes(shop: Shop) -> None:
    talk = Talk(shop, EMMA)
    assert "Shall I refund $129.00 for order ORD-22080?" in talk.say("Refund ORD-22080, it leaks")
    assert talk.calls == [[("get_order", {"order_number": "ORD-22080"})]]
    assert "Shall I refund $65.00 of the $129.00" in talk.say("only the kettle")
    talk.say("yes")
    wish = {"order_number": "ORD-22080", "amount_minor": 6500, "reason": "Refund ORD-22080, it leaks; only the kettle"}
    assert talk.calls == [[("refund_order", wish)]]
    assert "Nothing is waiting" in talk.say("yes")


@pytest.mark.parametrize("between", ["no", "where is it?", "hello", "不用了"])
def test_a_refund_that_was_not_confirmed_at_once_needs_asking_again(shop: Shop, between: str) -> None:
    talk = Talk(shop, EMMA)
    talk.say("refund 22080")
    talk.say(between)
    talk.say("yes")
    assert talk.calls == []


@pytest.mark.parametrize(
    ("saying", "answer"),
    [
        ("refund $500 of 22080", "At most $129.00 can be refunded for order ORD-22080"),
        ("refund 20 euros of 22080", "Order ORD-22080 was paid in USD"),
        ("refund 21469", "Order ORD-21469 was delivered more than 30 days ago"),
        ("refund 20832", "Order ORD-20832 has already been refunded in full"),
        ("refund 22327", "I can't find order 22327 among your orders"),
    ],
)
def test_impossible_refunds_are_explained_before_they_are_tried(shop: Shop, saying: str, answer: str) -> None:
    talk = Talk(shop, EMMA)
    assert answer in talk.say(saying)
    talk.say("yes")
    assert talk.calls == []


def test_a_tool_that_is_not_bound_is_not_called(shop: Shop) -> None:
    talk = Talk(shop, EMMA, ALL_TOOLS - {"refund_order"})
    talk.say("refund 22080")
    assert "without the tool “refund_order”" in talk.say("yes")


def test_every_refusal_of_the_tools_has_words_in_both_languages(shop: Shop) -> None:
    """A code without words would show the customer the tool's English text."""
    folder = Path(str(tools.__file__)).parent
    sources = [folder / name for name in ("shop.py", "search.py", "refunds.py", "tools.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    codes = set(re.findall(r'ShopError\(\s*"([a-z_]+)"', text)) | {"in_transit", "too_late", "already_refunded"}
    said_by_the_plan = {"bad_amount", "amount_too_high"}
    assert len(codes) >= 8
    assert codes - said_by_the_plan <= LANGUAGES["en"].errors.keys()
