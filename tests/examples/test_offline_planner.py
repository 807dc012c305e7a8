"""The offline planner understands its domain in two languages, and depends on nothing but the messages."""

# ruff: noqa: RUF001 - Chinese punctuation is meant.

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable

from examples.order_assistant.offline_model import DialoguePlanner
from examples.order_assistant.planner import next_step
from examples.order_assistant.planner.goals import GOALS
from examples.order_assistant.planner.understand import LANGUAGES, Draft, Memory, understand
from examples.order_assistant.shop import Shop
from examples.order_assistant.tools import make_tools
from tests.examples.shop_calls import EMMA, WANG, call_tool

ALL_TOOLS = frozenset(
    ("get_profile", "get_latest_order", "get_order", "track_order", "search_products", "get_reviews", "refund_order")
)

SAYINGS = {
    "greet": ("Hi there!", "hello", "Good morning", "你好", "您好，在吗"),
    "help": ("help", "What can you do?", "I need help", "你能做什么？", "帮助"),
    "latest": (
        "Show me my latest order", "what did I order?", "What did I just buy?",
        "看看我最近的订单", "我上一单买了啥",
    ),
    "order": (
        "order 22301", "ORD-22301", "show me order ORD-22301", "what is in it?",
        "查一下订单22301", "那个订单的详情",
    ),
    "history": ("my orders", "List all my orders", "我的订单列表", "我有哪些订单"),
    "track": (
        "Where is my latest order?", "Where's it?", "track ORD-22301", "has it been delivered?",
        "我最近的订单到哪儿了？", "物流", "快递什么时候到", "ORD-22301到哪了",
    ),
    "search": (
        "Show me headphones", "do you have a kettle", "I'm looking for a mug",
        "有没有耳机", "我想买水壶", "推荐一款键盘",
    ),
    "reviews": (
        "reviews of the Ember Kettle", "What do people think of it?", "is it any good?",
        "余烬电热水壶的评价", "流明护眼台灯怎么样",
    ),
    "compare": (
        "Compare A and B", "Aurora Headphones vs Nimbus Earbuds", "which is better, A or B?",
        "比较A和B", "A和B哪个更好",
    ),
    "refund": (
        "refund it", "I want my money back for 22080", "I'd like to return that order", "cancel my order",
        "我要退款", "22080 退款", "我想退货", "取消订单", "退掉它",
    ),
    "policy": (
        "What is your refund policy?", "how long do I have to return something?",
        "退货政策是什么", "多久可以退",
    ),
    "profile": ("Who am I?", "what is my address", "我是谁", "我的收货地址"),
    "thanks": ("thanks", "Thank you so much", "谢谢"),
    "bye": ("bye", "Thanks, that's all", "再见", "谢谢，再见"),
    "unknown": ("asdf", "What is the capital of France?", "今天天气不错", "42", "🙂", ""),
}  # fmt: skip


@pytest.mark.parametrize(("goal", "saying"), [(goal, saying) for goal, row in SAYINGS.items() for saying in row])
def test_sayings_mean_what_people_mean(goal: str, saying: str) -> None:
    assert understand(saying, Memory()).goal == goal


@pytest.mark.parametrize(
    ("saying", "products"),
    [
        (
            "Compare the reviews of the Aurora Headphones and the Nimbus Earbuds",
            ("Aurora Headphones", "Nimbus Earbuds"),
        ),
        ("compare Ember Kettle with Breeze Toaster, please", ("Ember Kettle", "Breeze Toaster")),
        ("Which is better, the Glide Mouse or the Orbit Keyboard?", ("Glide Mouse", "Orbit Keyboard")),
        ("Which has better reviews: AU-101, AU-102 or AU-103?", ("AU-101", "AU-102", "AU-103")),
        ("What do people say about the Halo Soundbar?", ("Halo Soundbar",)),
        ("Is the Mist Humidifier any good?", ("Mist Humidifier",)),
        ("compare them", ()),
        ("Compare the first two", ()),
        ("what about their reviews?", ()),
        ("比较一下极光头戴耳机和云朵无线耳塞的评价", ("极光头戴耳机", "云朵无线耳塞")),
        ("余烬电热水壶和微风多士炉哪个更好？", ("余烬电热水壶", "微风多士炉")),
        ("极光头戴耳机，云朵无线耳塞，哪款评价更高", ("极光头戴耳机", "云朵无线耳塞")),
        ("流明护眼台灯的评价怎么样？", ("流明护眼台灯",)),
        ("比较前两个", ()),
        ("它的评价呢", ()),
    ],
)
def test_product_names_are_cut_out_of_the_question(saying: str, products: tuple[str, ...]) -> None:
    assert understand(saying, Memory()).products == products


@pytest.mark.parametrize(
    ("saying", "amount"),
    [
        ("refund $20", (2000, "USD")),
        ("refund 12.50 euros of it", (1250, "EUR")),
        ("refund €1,249.00", (124900, "EUR")),
        ("退20元", (2000, "CNY")),
        ("退款￥19.9", (1990, "CNY")),
        ("refund order 22080", None),
    ],
)
def test_amounts_are_read(saying: str, amount: tuple[int, str] | None) -> None:
    assert understand(saying, Memory()).amount == amount


def test_an_amount_is_no_order_number() -> None:
    request = understand("refund $22080 of order 22301", Memory())
    assert (request.order, request.amount) == ("22301", (2208000, "USD"))


@pytest.mark.parametrize(
    "yes", ["yes", "Yes, please.", "OK, go ahead", "confirm", "好的", "是的，请退款", "确认", "可以"]
)
@pytest.mark.parametrize("no", ["no", "No, leave it", "don't", "cancel", "不", "不用了", "算了"])
def test_yes_and_no_count_only_while_a_refund_waits(yes: str, no: str) -> None:
    waiting = Memory(draft=Draft("ORD-22080", None, "r"))
    assert [understand(yes, waiting).goal, understand(no, waiting).goal] == ["confirm", "decline"]
    assert understand(yes, Memory()).goal == "unasked_yes"
    assert understand(no, Memory()).goal != "decline"


@pytest.mark.parametrize(
    "saying", ["yes, but only the kettle", "yes if it is free", "好像不对", "yesterday", "可以便宜点吗"]
)
def test_half_a_yes_is_none(saying: str) -> None:
    assert understand(saying, Memory(draft=Draft("ORD-22080", None, "r"))).goal != "confirm"


@pytest.mark.parametrize(
    ("saying", "before", "language"), [("22301", "zh", "zh"), ("22301", "en", "en"), ("order 22301", "zh", "en")]
)
def test_without_words_the_language_stays(saying: str, before: str, language: str) -> None:
    assert understand(saying, Memory(language=before)).language == language


def test_both_languages_can_say_the_same_things() -> None:
    english, chinese = LANGUAGES["en"], LANGUAGES["zh"]
    for table in ("say", "errors", "status", "event"):
        assert getattr(english, table).keys() == getattr(chinese, table).keys(), table
    assert {goal for goal, _ in english.goals} == {goal for goal, _ in chinese.goals} <= GOALS.keys()


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
    import re
    from pathlib import Path

    import examples.order_assistant.tools as tools

    folder = Path(str(tools.__file__)).parent
    sources = [folder / name for name in ("shop.py", "search.py", "refunds.py", "tools.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    codes = set(re.findall(r'ShopError\(\s*"([a-z_]+)"', text)) | {"in_transit", "too_late", "already_refunded"}
    said_by_the_plan = {"bad_amount", "amount_too_high"}
    assert len(codes) >= 8
    assert codes - said_by_the_plan <= LANGUAGES["en"].errors.keys()


words = st.sampled_from([saying for row in SAYINGS.values() for saying in row] + ["yes", "no", "好的", "$5", "order 1"])
noise = st.one_of(
    st.builds(lambda text: ToolMessage(text, tool_call_id="x"), st.text(max_size=20)),
    st.builds(lambda text: AIMessage(text), st.text(max_size=20)),
    st.just(AIMessage("", tool_calls=[{"name": "nothing", "args": {}, "id": "x"}])),
    st.just(SystemMessage("be nice")),
)


@settings(deadline=None)
@given(st.lists(st.one_of(words.map(HumanMessage), st.text(max_size=30).map(HumanMessage), noise), max_size=12))
def test_any_history_has_a_next_step_and_always_the_same(messages: list[BaseMessage]) -> None:
    step = next_step(messages, ALL_TOOLS)
    assert bool(step.text) != bool(step.calls)
    assert {call.tool for call in step.calls} <= ALL_TOOLS
    assert next_step(list(messages), ALL_TOOLS) == step
    assert not next_step(messages, frozenset()).calls


# ---- the chat model around it --------------------------------------------------------------------------------------


def _bound(shop: Shop) -> Runnable[Any, AIMessage]:
    return DialoguePlanner().bind_tools(make_tools(shop))


def _plain(message: AIMessage) -> tuple[object, ...]:
    return message.content, message.tool_calls, message.usage_metadata, message.response_metadata["finish_reason"]


@pytest.mark.parametrize(
    "saying", ["hello", "你好", "compare AU-101 and AU-102", "比较极光头戴耳机和云朵无线耳塞", "refund 22080"]
)
async def test_invoke_stream_and_their_async_forms_agree(read_only_shop: Shop, saying: str) -> None:
    model, messages = _bound(read_only_shop), [HumanMessage(saying, id="h")]
    whole = model.invoke(messages)
    streamed = [chunk for chunk in model.stream(messages) if isinstance(chunk, AIMessageChunk)]
    joined = sum(streamed[1:], start=streamed[0])
    assert len(streamed) > 2
    assert _plain(joined) == _plain(whole)
    assert _plain(await model.ainvoke(messages)) == _plain(whole)
    late = [chunk async for chunk in model.astream(messages)]
    assert [chunk.content for chunk in late] == [chunk.content for chunk in streamed]


def test_text_streams_word_by_word_and_character_by_character() -> None:
    english = [chunk.text for chunk in DialoguePlanner().stream("thanks") if chunk.text]
    chinese = [chunk.text for chunk in DialoguePlanner().stream("再见") if chunk.text]
    assert english[:3] == ["You're", " welcome.", " Is"]
    assert chinese[:3] == ["再", "见", "，"]


def test_call_ids_repeat_for_the_same_conversation_and_differ_otherwise(read_only_shop: Shop) -> None:
    model = _bound(read_only_shop)

    def ids(message_id: str) -> list[str | None]:
        asked = [HumanMessage("compare AU-101 and AU-102", id=message_id)]
        return [call["id"] for call in model.invoke(asked).tool_calls]

    assert ids("one") == ids("one")
    assert len({*ids("one"), *ids("two")}) == 4


def test_usage_grows_with_the_conversation(read_only_shop: Shop) -> None:
    model = _bound(read_only_shop)
    short = model.invoke([HumanMessage("hello")]).usage_metadata
    long = model.invoke([HumanMessage("hello"), AIMessage("Hello! How are you?"), HumanMessage("hello")]).usage_metadata
    assert short is not None
    assert long is not None
    assert short["input_tokens"] == 1
    assert long["input_tokens"] == 1 + 4 + 1
    assert long["output_tokens"] == short["output_tokens"] > 10


def test_forbidden_tools_are_not_called(read_only_shop: Shop) -> None:
    model = DialoguePlanner().bind_tools(make_tools(read_only_shop), tool_choice="none")
    answer = model.invoke("where is my latest order?")
    assert answer.tool_calls == []
    assert "without the tool" in answer.text
