"""The offline planner understands its domain in two languages, and any history has a next step."""

# ruff: noqa: RUF001 - Chinese punctuation is meant.

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from examples.order_assistant.planner import next_step
from examples.order_assistant.planner.goals import GOALS
from examples.order_assistant.planner.understand import LANGUAGES, Draft, Memory, understand

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
