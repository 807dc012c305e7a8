"""`EffectLedger` in an agent: what is executed, what is answered from the record, what a person is asked."""

from __future__ import annotations

import asyncio
import threading
from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from sqlalchemy import text

from agentkit import Middleware, create_agent, thread
from agentkit.errors import InvalidSettlement, MissingCheckpointer
from agentkit.ledger import Doubt, Ledger, Settlement
from agentkit.middleware import EffectLedger
from agentkit.testing import EntryPoint, ScriptedModel, ai, run, tool_call
from agentkit.tools import tool
from tests.middleware.effects import NOW, Once, agent_of, answers, breaking, called

# ---- what is recorded


def test_each_writing_call_has_its_entry_and_reads_have_none(ledger: Ledger, desk: Any, entry: EntryPoint) -> None:
    tools = [
        desk.tool("pay", effect="write"),
        desk.tool("look", effect="read"),
        desk.tool("other"),
    ]
    calls = ai("", *(tool_call(name, {"x": n}, name) for n, name in enumerate(("pay", "look", "other"))))
    ended = run(agent_of(ledger, tools, calls, "done"), "go", thread("t"), entry=entry)
    assert desk.names == ["look", "other", "pay"]
    kept = {effect.tool: effect for effect in ledger.effects()}
    assert sorted(kept) == ["other", "pay"]
    assert (kept["pay"].status, kept["pay"].args, kept["pay"].thread_id) == ("done", {"x": 0}, "t")
    given = next(m for m in answers(ended.messages) if m.name == "pay")
    assert kept["pay"].outcome.text == given.text == "pay 0"
    assert ledger.in_doubt(**NOW) == []


def test_tools_that_do_not_say_what_they_do_can_be_left_out(ledger: Ledger, desk: Any) -> None:
    agent = agent_of(ledger, [desk.tool("other")], called("other", 1), "done", unknown="read")
    agent.invoke({"messages": "go"}, thread("t"))
    assert (desk.names, ledger.effects()) == (["other"], [])


@pytest.mark.parametrize(
    "result",
    [
        "plain text",
        [{"type": "text", "text": "a block"}, {"type": "image_url", "image_url": {"url": "data:,x"}}],
        {"id": 7, "items": [1, None, True, 0.5]},
        ToolMessage("with an artifact", tool_call_id="c0", artifact={"rows": [(1, b"x")]}),
        Command(update={"messages": [ToolMessage("a command", tool_call_id="c0")]}),
    ],
    ids=["text", "blocks", "data", "artifact", "command"],
)
def test_a_recorded_result_comes_back_as_what_it_was(ledger: Ledger, desk: Any, result: Any, call: EntryPoint) -> None:
    """A retry that knows nothing of it asks twice; the second answer is the record's."""
    got: list[Any] = []

    class Outer(Middleware):
        def wrap_tool_call(self, request: Any) -> Any:
            for _ in range(2):
                result = yield request
                got.append(deepcopy(result))  # the loop gives messages their ids in place
            return result

    agent = agent_of(ledger, [desk.tool("pay", lambda x: result)], called("pay", 1), "done", around=[Outer()])
    run(agent, "go", thread("t"), entry=call)
    assert desk.names == ["pay"]
    assert got[0] == got[1]
    assert type(getattr(got[0], "artifact", None)) is type(getattr(got[1], "artifact", None))


def test_a_result_that_cannot_be_recorded_is_refused_by_name_and_not_executed_again(
    ledger: Ledger, desk: Any, call: EntryPoint
) -> None:
    class Receipt:
        pass

    pay = desk.tool("pay", lambda x: ToolMessage("paid", tool_call_id="c0", artifact={"receipt": Receipt()}))
    agent = agent_of(ledger, [pay], called("pay", 1), "done")
    ended = run(agent, "go", thread("t"), entry=call, catch=True)
    assert type(ended.error).__name__ == "UnrecordableResult"
    assert "`pay`" in str(ended.error) and "artifact['receipt']" in str(ended.error) and "Receipt" in str(ended.error)
    again = run(agent, None, thread("t"), entry=call)
    assert desk.names == ["pay"]
    assert "took effect" in answers(again.messages)[0].text


# ---- failures


def test_a_failure_that_the_tool_reports_does_not_keep_the_model_from_another_call(
    ledger: Ledger, desk: Any, call: EntryPoint
) -> None:
    def refuses(x: int) -> str:
        if x > 10:
            raise ToolException("too much")
        return f"paid {x}"

    steps = (called("pay", 50), called("pay", 5), "done")
    agent = agent_of(ledger, [desk.tool("pay", refuses, effect="write")], *steps, key=lambda request: "the order")
    ended = run(agent, "go", thread("t"), entry=call)
    assert [m.text for m in answers(ended.messages)] == ["too much", "paid 5"]
    (effect,) = ledger.effects()
    assert (effect.status, effect.attempt) == ("done", 2)


def test_wrong_arguments_are_a_failure_before_the_effect(ledger: Ledger, desk: Any, call: EntryPoint) -> None:
    bad = ai("", tool_call("pay", {"x": "much"}, "bad"))
    agent = agent_of(ledger, [desk.tool("pay", effect="write")], bad, called("pay", 5), "done")
    ended = run(agent, "go", thread("t"), entry=call)
    assert desk.values == [5]
    assert answers(ended.messages)[-1].text == "pay 5"
    assert ledger.in_doubt(**NOW) == []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_exception_leaves_a_doubt_and_a_person_says_what_happened(
    ledger: Ledger, desk: Any, call: EntryPoint, after: bool
) -> None:
    does, state = breaking(after=after)
    agent = agent_of(ledger, [desk.tool("pay", does, effect="write")], called("pay", 5), "done")
    assert isinstance(run(agent, "go", thread("t"), entry=call, catch=True).error, Once)
    (doubt,) = ledger.in_doubt(**NOW)
    assert (doubt.status, doubt.error, doubt.args) == ("in_doubt", "Once", {"x": 5})

    paused = run(agent, None, thread("t"), entry=call)
    (question,) = paused.interrupts
    assert (question.value["tool"], question.value["args"]) == ("pay", {"x": 5})
    outcome = {"outcome": "done", "result": "paid 5"} if after else {"outcome": "not_done"}
    answer = {"doubt": question.value["doubt"], "by": "ann", **outcome}
    ended = run(agent, Command(resume={question.id: answer}), thread("t"), entry=call)
    assert answers(ended.messages)[0].text == "paid 5"
    assert state["effects"] == 1
    assert [(e.status, e.settled_by) for e in ledger.effects()] == [("done", "ann")]


def test_a_person_who_does_not_know_leaves_it_open_and_the_model_is_told(
    ledger: Ledger, desk: Any, call: EntryPoint
) -> None:
    does, state = breaking(after=True)
    agent = agent_of(ledger, [desk.tool("pay", does, effect="write")], called("pay", 5), "done")
    run(agent, "go", thread("t"), entry=call, catch=True)
    (question,) = run(agent, None, thread("t"), entry=call).interrupts
    answer = {"doubt": question.value["doubt"], "outcome": "unknown"}
    ended = run(agent, Command(resume=answer), thread("t"), entry=call)
    (told,) = answers(ended.messages)
    assert told.status == "error" and "unknown" in told.text and "Do not repeat" in told.text
    assert state["effects"] == 1
    assert len(ledger.in_doubt(**NOW)) == 1


@pytest.mark.parametrize(
    "answer",
    ["yes", {"outcome": "done"}, {"doubt": "x", "outcome": "perhaps"}, {"doubt": "x", "outcome": "done", "sum": 1}],
    ids=["no dict", "no doubt", "no such outcome", "no such field"],
)
def test_an_answer_that_cannot_be_taken_is_named_and_the_question_stays_open(
    ledger: Ledger, desk: Any, answer: Any
) -> None:
    does, state = breaking(after=True)
    agent = agent_of(ledger, [desk.tool("pay", does, effect="write")], called("pay", 5), "done")
    run(agent, "go", thread("t"), catch=True)
    (question,) = run(agent, None, thread("t")).interrupts
    with pytest.raises(InvalidSettlement):
        agent.invoke(Command(resume=answer), thread("t"))
    assert state["effects"] == 1
    assert [i.id for i in agent.get_state(thread("t")).interrupts] == [question.id]


def test_an_operator_settles_it_in_the_ledger(ledger: Ledger, desk: Any, call: EntryPoint) -> None:
    does, state = breaking(after=True)
    agent = agent_of(ledger, [desk.tool("pay", does, effect="write")], called("pay", 5), "done")
    run(agent, "go", thread("t"), entry=call, catch=True)
    assert run(agent, None, thread("t"), entry=call).interrupts
    (doubt,) = ledger.in_doubt(**NOW)
    ledger.settle(doubt.key, Settlement("done", "paid 5", by="bob"))
    ended = run(agent, None, thread("t"), entry=call)
    assert answers(ended.messages)[0].text == "paid 5"
    assert state["effects"] == 1


def test_without_a_checkpointer_a_doubt_that_must_be_asked_about_is_a_named_error(ledger: Ledger, desk: Any) -> None:
    def times_out(x: int) -> str:
        raise ToolException("cut off") if x < 0 else TimeoutError

    pay = desk.tool("pay", times_out, effect="write", on_error="tell")
    agent = create_agent(
        ScriptedModel(called("pay", 1), called("pay", 1), "done"),
        [pay],
        middleware=[EffectLedger(ledger, key=lambda request: "17")],
    )
    with pytest.raises(MissingCheckpointer, match="EffectLedger has to pause"):
        agent.invoke({"messages": "go"})
    assert desk.names == ["pay"]


@pytest.mark.parametrize("outcome", ["done", "not_done", "unknown"])
def test_a_function_settles_doubts(ledger: Ledger, desk: Any, call: EntryPoint, outcome: Any) -> None:
    asked: list[Doubt] = []

    def look_up(doubt: Doubt) -> Settlement:
        asked.append(doubt)
        return Settlement(outcome, "paid 5" if outcome == "done" else None, by="the bank")

    does, state = breaking(after=outcome != "not_done")
    agent = agent_of(ledger, [desk.tool("pay", does, effect="write")], called("pay", 5), "done", on_doubt=look_up)
    run(agent, "go", thread("t"), entry=call, catch=True)
    ended = run(agent, None, thread("t"), entry=call)
    (told,) = answers(ended.messages)
    assert state["effects"] == 1
    assert [doubt.effect.args for doubt in asked] == [{"x": 5}]
    assert ("unknown" in told.text) if outcome == "unknown" else (told.text == "paid 5")


# ---- time-outs and cancellations


def test_a_refund_that_timed_out_is_in_doubt_and_another_call_for_it_is_not_executed(
    ledger: Ledger, entry: EntryPoint
) -> None:
    refunded: list[int] = []
    release = threading.Event()

    @tool(effect="write", timeout=0.05)
    def refund(order: int) -> str:
        """Refund an order."""
        refunded.append(order)
        release.wait(5)
        return "refunded"

    first, second = (ai("", tool_call("refund", {"order": 17}, id)) for id in ("a", "b"))
    agent = create_agent(
        ScriptedModel(first, second, "I do not know."),
        [refund],
        middleware=[EffectLedger(ledger, on_doubt="tell", key=lambda r: str(r.tool_call["args"]["order"]))],
        checkpointer=InMemorySaver(),
    )
    ended = run(agent, "refund order 17", thread("t"), entry=entry)
    release.set()
    assert refunded == [17]
    timed_out, repeated = answers(ended.messages)
    assert "did not answer within" in timed_out.text
    assert repeated.status == "error" and "unknown" in repeated.text and repeated.tool_call_id == "b"
    (doubt,) = ledger.in_doubt(**NOW)
    assert (doubt.effect_name, doubt.error) == ("17", "ToolTimeout")


def test_a_transaction_that_timed_out_can_no_longer_commit(call: EntryPoint, tmp_path: Any) -> None:
    """So the call did not happen for certain: the model may try again, and it happens once."""
    woken, over, late = threading.Event(), threading.Event(), []
    with Ledger(f"sqlite:///{tmp_path / 'shop.db'}") as ledger:
        with ledger.engine.begin() as connection:
            connection.execute(text("CREATE TABLE refunds (number INTEGER)"))

        @tool(effect="write", transactional=True, timeout=0.1)
        def refund(order: int, slow: bool) -> str:
            """Refund an order."""
            if slow:
                woken.wait(10)
            try:
                with ledger.transaction() as connection:
                    connection.execute(text("INSERT INTO refunds VALUES (17)"))
            except Exception as error:
                late.append(type(error).__name__)
                raise
            finally:
                if slow:
                    over.set()
            return "refunded"

        calls = [ai("", tool_call("refund", {"order": 17, "slow": slow}, str(slow))) for slow in (True, False)]
        guard = EffectLedger(ledger, key=lambda request: "17")
        agent = create_agent(ScriptedModel(*calls, "done"), [refund], middleware=[guard], checkpointer=InMemorySaver())
        ended = run(agent, "go", thread("t"), entry=call)
        woken.set()
        assert over.wait(10)
        assert answers(ended.messages)[1].text == "refunded"
        assert late == ["EffectSuperseded"]
        with ledger.engine.begin() as connection:
            assert connection.execute(text("SELECT count(*) FROM refunds")).scalar_one() == 1
        assert [(e.status, e.attempt) for e in ledger.effects()] == [("done", 2)]


async def test_a_cancelled_call_is_in_doubt(ledger: Ledger) -> None:
    began, effects = asyncio.Event(), []

    @tool(effect="write")
    async def pay(x: int) -> str:
        """Pay."""
        effects.append(x)
        began.set()
        await asyncio.sleep(60)
        return "paid"

    agent = agent_of(ledger, [pay], called("pay", 5), "done")
    going = asyncio.create_task(agent.ainvoke({"messages": "go"}, thread("t")))
    await began.wait()
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going
    assert [e.status for e in await ledger.ain_doubt(**NOW)] == ["started"]
    paused = await agent.ainvoke(None, thread("t"))
    assert [i.value["args"] for i in paused["__interrupt__"]] == [{"x": 5}]
    assert effects == [5]
