"""Whole conversations with the assistant: what the customer reads, and what is in the database afterwards."""

# ruff: noqa: RUF001 - Chinese punctuation is meant.

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain.agents.middleware import wrap_tool_call
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from agentkit import exit_of, thread
from agentkit.ledger import Ledger
from agentkit.middleware import Decision, decide, pending_approvals
from examples.order_assistant.assistant import build
from examples.order_assistant.script import SCRIPTS
from examples.order_assistant.shop import Shop
from examples.order_assistant.tools import ShopContext
from tests.examples.shop_calls import EMMA, LUKAS, WANG

Handler = Callable[[ToolCallRequest], ToolMessage | Command[Any]]
Rows = Callable[..., list[tuple[Any, ...]]]


def _plain(messages: list[BaseMessage]) -> list[tuple[object, ...]]:
    """What matters of messages: all but random ids."""
    return [
        (
            message.type,
            message.content,
            [(call["name"], call["args"]) for call in getattr(message, "tool_calls", ())],
            getattr(message, "status", None),
            getattr(message, "usage_metadata", None),
        )
        for message in messages
    ]


class Customer:
    """Somebody who talks to the assistant on one thread."""

    def __init__(self, shop: Shop, customer: str, checkpointer: Any = None) -> None:
        self.agent = build(shop.path, checkpointer=checkpointer or InMemorySaver())
        self.context, self.config = ShopContext(customer), thread(f"t-{customer}")
        self.new: list[BaseMessage] = []

    def say(self, text: str) -> str:
        before = len(self.agent.get_state(self.config).values.get("messages", ()))
        return self._run({"messages": text}, before + 1)

    def decide(self, kind: Literal["approve", "reject"]) -> str:
        """The shop's consent to the payment that waits for it, or its refusal."""
        paused = self.agent.get_state(self.config)
        [one] = pending_approvals(paused)
        decision = Decision(type=kind, by="staff")
        return self._run(decide(paused, {one.id: decision}), len(paused.values["messages"]))

    def _run(self, given: Any, before: int) -> str:
        result = self.agent.invoke(given, self.config, context=self.context)
        self.new = result["messages"][before:]
        if waiting := pending_approvals(result):
            return f"waiting: {waiting[0].name}"
        ended = exit_of(result)
        assert ended is not None
        assert ended.reason == "answer"
        return str(self.new[-1].text)

    @property
    def tool_rounds(self) -> list[list[str]]:
        return [
            [call["name"] for call in message.tool_calls]
            for message in self.new
            if isinstance(message, AIMessage) and message.tool_calls
        ]


def test_the_english_script(shop: Shop, rows: Rows) -> None:
    emma, lines = Customer(shop, EMMA), SCRIPTS["en"].lines
    assert emma.say(lines[0]).startswith("Hello!")
    assert "ORD-22301" in emma.say(lines[1])
    assert emma.tool_rounds == [["get_latest_order"], ["track_order"]]
    assert "best: 4.9 against 2.5" in emma.say(lines[2])
    assert emma.tool_rounds == [["get_reviews", "get_reviews"]]
    assert "can't find order ORD-22327 among your orders" in emma.say(lines[3])
    assert isinstance(emma.new[1], ToolMessage)
    assert emma.new[1].status == "error"
    assert "Shall I refund $129.00" in emma.say(lines[4])
    assert "Shall I refund $65.00 of the $129.00" in emma.say(lines[5])
    assert rows("SELECT * FROM refunds WHERE order_number = 'ORD-22080'") == []
    assert emma.say(lines[6]) == "waiting: refund_order"
    assert rows("SELECT * FROM refunds WHERE order_number = 'ORD-22080'") == []
    assert "I have refunded $65.00 for order ORD-22080" in emma.decide("approve")
    assert rows("SELECT minor FROM refunds WHERE order_number = 'ORD-22080'") == [(6500,)]
    assert emma.say(lines[8]).startswith("Goodbye")


def test_the_chinese_script(shop: Shop, rows: Rows) -> None:
    wang, lines = Customer(shop, WANG), SCRIPTS["zh"].lines
    assert wang.say(lines[0]).startswith("您好")
    assert "订单 ORD-22288 已于2026年3月13日由" in wang.say(lines[1])
    assert "买家更喜欢山脊双肩背包" in wang.say(lines[2])
    assert wang.tool_rounds == [["get_reviews", "get_reviews"]]
    assert wang.say(lines[3]) == "在您的订单中没有找到 ORD-22301。请核对订单号，格式如 ORD-12345。"
    assert "退款 ¥1,037.00 吗？" in wang.say(lines[4])
    assert rows("SELECT * FROM refunds WHERE order_number = 'ORD-22171'") == []
    assert wang.say(lines[5]) == "waiting: refund_order"
    assert "已为订单 ORD-22171 退款 ¥1,037.00" in wang.decide("approve")
    assert rows("SELECT minor FROM refunds WHERE order_number = 'ORD-22171'") == [(103700,)]
    assert wang.say(lines[7]).startswith("再见")


def test_the_foreign_orders_of_the_scripts_exist(rows: Rows) -> None:
    owners: dict[str, str] = dict(
        rows("SELECT number, customer_id FROM orders WHERE number IN ('ORD-22327', 'ORD-22301')")
    )
    assert owners == {"ORD-22327": LUKAS, "ORD-22301": EMMA}


def test_two_customers_on_one_agent_see_their_own(shop: Shop) -> None:
    agent = build(shop.path, checkpointer=InMemorySaver())
    answers = [
        agent.invoke({"messages": "my latest order"}, thread(customer), context=ShopContext(customer))["messages"][
            -1
        ].text
        for customer in (EMMA, LUKAS, WANG)
    ]
    assert [answer.split()[1] for answer in answers] == ["ORD-22301", "ORD-22327", "ORD-22288"]


@pytest.mark.parametrize("way", ["refused", "dropped"])
def test_without_the_shops_consent_nothing_is_paid(shop: Shop, rows: Rows, way: str) -> None:
    emma = Customer(shop, EMMA)
    emma.say("refund order 22080")
    assert emma.say("yes") == "waiting: refund_order"
    answer = emma.decide("reject") if way == "refused" else emma.say("Where is my latest order?")
    assert answer.startswith("The shop did not consent" if way == "refused" else "Order ORD-22301")
    results = [m for m in emma.agent.get_state(emma.config).values["messages"] if isinstance(m, ToolMessage)]
    assert [m.status for m in results if m.name == "refund_order"] == ["error"]
    assert rows("SELECT minor FROM refunds WHERE order_number = 'ORD-22080'") == []


def test_a_refund_waits_for_its_yes_across_a_restart(shop: Shop, rows: Rows, tmp_path: Path) -> None:
    file = str(tmp_path / "threads.db")
    with SqliteSaver.from_conn_string(file) as saver:
        assert "Shall I refund" in Customer(shop, EMMA, saver).say("refund order 22080")
    with SqliteSaver.from_conn_string(file) as saver:
        assert Customer(Shop.open(shop.path), EMMA, saver).say("yes") == "waiting: refund_order"
    assert rows("SELECT minor FROM refunds WHERE order_number = 'ORD-22080'") == []
    with SqliteSaver.from_conn_string(file) as saver:
        assert "I have refunded $129.00" in Customer(Shop.open(shop.path), EMMA, saver).decide("approve")
    assert rows("SELECT minor FROM refunds WHERE order_number = 'ORD-22080'") == [(12900,)]


def test_a_crash_right_after_the_payment_pays_once(shop: Shop, rows: Rows, tmp_path: Path) -> None:
    """The money moved, but the process died before the result was stored; the resumed run makes the call again."""
    payments: list[str | None] = []

    @wrap_tool_call
    def dies_once(request: ToolCallRequest, handler: Handler) -> ToolMessage | Command[Any]:
        result = handler(request)
        if request.tool_call["name"] == "refund_order":
            payments.append(request.tool_call["id"])
            if len(payments) == 1:
                raise SystemError("power cut")
        return result

    context, config = ShopContext(EMMA), thread("t")
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        agent = build(shop.path, checkpointer=saver, middleware=[dies_once])
        agent.invoke({"messages": "refund order 22080"}, config, context=context)
        with pytest.raises(SystemError, match="power cut"):
            agent.invoke({"messages": "yes"}, config, context=context)
        result = agent.invoke(None, config, context=context)
    assert len(payments) == 2
    assert payments[0] == payments[1]
    assert "I have refunded $129.00" in result["messages"][-1].text
    assert rows("SELECT minor FROM refunds WHERE order_number = 'ORD-22080'") == [(12900,)]


def test_a_refund_and_its_record_are_in_the_shops_database_together(shop: Shop, rows: Rows) -> None:
    emma = Customer(shop, EMMA)
    emma.say("refund order 22080")
    emma.say("yes")
    emma.decide("approve")
    [(status, outcome)] = rows("SELECT status, outcome FROM agentkit_effects WHERE tool = 'refund_order'")
    [(refund,)] = rows("SELECT id FROM refunds WHERE order_number = 'ORD-22080'")
    assert status == "done"
    assert f"RF-{refund:05d}" in outcome


def test_killed_between_commit_and_answer_it_finds_the_refund_and_its_result(shop: Shop, rows: Rows) -> None:
    saver, killed = InMemorySaver(), []
    emma = Customer(shop, EMMA, saver)

    class Killed(BaseException):
        """The process dies; nothing of it is told to anybody."""

    def dies(self: Ledger, *args: Any, **kwargs: Any) -> None:
        killed.append(1)
        raise Killed

    emma.say("refund order 22080")
    emma.say("yes")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Ledger, "finish", dies)
        emma.decide("approve")
    assert killed
    assert "I have refunded $129.00" in Customer(Shop.open(shop.path), EMMA, saver).decide("approve")
    assert rows("SELECT minor FROM refunds WHERE order_number = 'ORD-22080'") == [(12900,)]


SAID = ("Where is my latest order?", "比较极光头戴耳机和云朵无线耳塞", "order 22327", "refund 22080", "yes")


async def test_every_way_of_running_gives_the_same_messages(tmp_path: Path) -> None:
    histories: dict[str, list[BaseMessage]] = {}
    streamed: dict[str, str] = {}
    context = ShopContext(EMMA)
    for way in ("invoke", "stream", "ainvoke", "astream"):
        shop = Shop.open(tmp_path / f"{way}.db")
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / f"{way}.threads.db")) as saver:
            agent = build(shop.path, checkpointer=saver if way.startswith("a") else InMemorySaver())
            config, text = thread("t"), ""
            for said in SAID:
                asked = {"messages": [HumanMessage(said)]}
                if way == "invoke":
                    agent.invoke(asked, config, context=context)
                elif way == "ainvoke":
                    await agent.ainvoke(asked, config, context=context)
                elif way == "stream":
                    for message, _ in agent.stream(asked, config, context=context, stream_mode="messages"):
                        text += message.text if isinstance(message, AIMessageChunk) else ""
                else:
                    async for message, _ in agent.astream(asked, config, context=context, stream_mode="messages"):
                        text += message.text if isinstance(message, AIMessageChunk) else ""
            histories[way] = (await agent.aget_state(config)).values["messages"]
            streamed[way] = text
    wanted = _plain(histories["invoke"])
    for way, history in histories.items():
        assert _plain(history) == wanted, way
    spoken = "".join(message.text for message in histories["invoke"] if isinstance(message, AIMessage))
    assert streamed["stream"] == streamed["astream"] == spoken


def test_limits_of_the_framework_end_a_run_with_a_reason(shop: Shop) -> None:
    from agentkit import Limits

    agent = build(shop.path, checkpointer=InMemorySaver(), limits=Limits(model_calls=1))
    result = agent.invoke({"messages": "Where is my latest order?"}, thread("t"), context=ShopContext(EMMA))
    ended = exit_of(result)
    assert ended is not None
    assert ended.reason == "step_budget"


@pytest.mark.parametrize("said", ["Where is my latest order?", "我的最新订单呢？物流"])
def test_without_anybody_signed_in_the_customer_is_told(shop: Shop, said: str) -> None:
    agent = build(shop.path)
    result = agent.invoke({"messages": said})
    assert result["messages"][-1].text in (
        "You are not signed in, so I can't look at any orders.",
        "您尚未登录，无法查询订单。",
    )
