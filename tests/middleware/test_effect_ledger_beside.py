"""`EffectLedger` beside other middleware, with named effects, and without its database."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from tenacity import wait_none

from agentkit import Middleware, as_tool, create_agent, thread
from agentkit.errors import ConfigurationError, LedgerUnavailable
from agentkit.ledger import Ledger
from agentkit.middleware import Approval, EffectLedger, ToolRetry, decide, standard
from agentkit.testing import EntryPoint, ScriptedModel, ai, run, tool_call
from agentkit.tools import IdempotencyKey, tool
from tests.middleware.effects import NOW, agent_of, answers, breaking, called

# ---- retries


def test_a_retry_around_it_repeats_an_idempotent_call_with_one_key(
    ledger: Ledger, clock: Any, call: EntryPoint
) -> None:
    keys: list[str] = []

    @tool(effect="write", idempotent=True)
    def pay(x: int, key: Annotated[str, IdempotencyKey] = "") -> str:
        """Pay."""
        keys.append(key)
        if len(keys) < 3:
            raise ConnectionError("reset")
        return "paid"

    agent = agent_of(ledger, [pay], called("pay", 5), "done", around=[ToolRetry(wait=wait_none())])
    ended = run(agent, "go", thread("t"), entry=call)
    assert answers(ended.messages)[0].text == "paid"
    assert len(keys) == 3 and len(set(keys)) == 1
    assert [(e.status, e.attempt) for e in ledger.effects()] == [("done", 3)]


def test_langchains_retry_around_it_does_not_repeat_what_may_have_happened(
    ledger: Ledger, desk: Any, call: EntryPoint
) -> None:
    def lost(x: int) -> str:
        raise ConnectionError("reset after the effect")

    retry: Any = ToolRetryMiddleware(max_retries=3, initial_delay=0.0, jitter=False)
    pay = desk.tool("pay", lost, effect="write")
    for create in (create_agent, langchain_create_agent):
        desk.ran.clear()
        agent: Any = create(
            ScriptedModel(called("pay", 5), "done"),
            [pay],
            middleware=[retry, EffectLedger(ledger, on_doubt="tell")],
        )
        ended = run(agent, "go", entry=call)
        assert desk.names == ["pay"]
        assert "unknown" in answers(ended.messages)[0].text


@pytest.mark.parametrize("create", [create_agent, langchain_create_agent], ids=["agentkit", "langchain"])
def test_a_retry_inside_it_does_not_hide_a_doubt(ledger: Ledger, desk: Any, call: EntryPoint, create: Any) -> None:
    """LangChain's factory keeps list order, so `ToolRetry` can stand inside; it says what is unknown."""

    def lost(x: int) -> str:
        raise ConnectionError("reset after the effect")

    guard = EffectLedger(ledger, on_doubt="tell", key=lambda request: "17")
    agent = create(
        ScriptedModel(called("pay", 5), ai("", tool_call("pay", {"x": 5}, "again")), "done"),
        [desk.tool("pay", lost, effect="write")],
        middleware=[guard, ToolRetry(wait=wait_none())],
    )
    ended = run(agent, "go", entry=call)
    assert desk.names == ["pay"]
    assert "whether an earlier call" in answers(ended.messages)[1].text
    assert [e.status for e in ledger.in_doubt(**NOW)] == ["in_doubt"]


# ---- which call is which


def test_parallel_calls_and_reused_ids_are_effects_of_their_own(ledger: Ledger, desk: Any, call: EntryPoint) -> None:
    steps = (called("pay", 1, 2, 3), called("pay", 1, 2), "done")  # the second answer uses ids of the first again
    ended = run(agent_of(ledger, [desk.tool("pay", effect="write")], *steps), "go", thread("t"), entry=call)
    assert desk.values == [1, 1, 2, 2, 3]
    assert [m.text for m in answers(ended.messages)] == ["pay 1", "pay 2", "pay 3", "pay 1", "pay 2"]
    assert len({e.key for e in ledger.effects()}) == 5


def test_one_effect_named_by_the_application_happens_once_whoever_asks(
    ledger: Ledger, desk: Any, call: EntryPoint
) -> None:
    pay = desk.tool("pay", effect="write")

    def order(request: Any) -> str | None:
        return str(request.tool_call["args"]["note"]) if request.tool_call["name"] == "pay" else None

    for name in ("t1", "t2"):
        agent = agent_of(ledger, [pay], called("pay", 5, note="order 17"), "done", key=order)
        ended = run(agent, "go", thread(name), entry=call)
    assert len(desk.ran) == 1
    (told,) = answers(ended.messages)
    assert told.status == "success"
    assert "happened already" in told.text and told.text.endswith("pay 5")
    (effect,) = ledger.effects()
    assert (effect.thread_id, effect.effect_name) == ("t1", "order 17")
    assert [(one["thread_id"], one["call_id"]) for one in ledger.served(effect.key)] == [("t2", "c0")]


def test_the_result_of_other_arguments_is_never_given_silently(ledger: Ledger, desk: Any, call: EntryPoint) -> None:
    steps = (called("pay", 5), called("pay", 6), "done")
    agent = agent_of(ledger, [desk.tool("pay", effect="write")], *steps, key=lambda request: "17")
    ended = run(agent, "go", thread("t"), entry=call)
    assert desk.values == [5]
    refused = answers(ended.messages)[1]
    assert refused.status == "error"
    assert "Not executed" in refused.text and "x=5" in refused.text


def test_an_edited_call_is_answered_from_the_record_after_a_crash(ledger: Ledger, desk: Any) -> None:
    pay, around = desk.tool("pay", effect="write"), [Approval("pay")]
    agent = agent_of(ledger, [pay], called("pay", 5), "done", "done", around=around)
    agent.invoke({"messages": "go"}, thread("t"))
    before = agent.get_state(thread("t"))
    edit: Any = {"type": "edit", "edited_action": {"args": {"x": 1}}}
    ended = agent.invoke(decide(before, {"c0": edit}), thread("t"))
    # the process died before the step was stored: the thread stands where the question was asked
    again = agent.invoke(decide(before, {"c0": edit}), before.config)
    assert desk.values == [1]
    assert [m.text for m in answers(again["messages"])] == [m.text for m in answers(ended["messages"])]


def test_a_call_that_was_executed_with_other_arguments_is_told_so(ledger: Ledger, desk: Any, call: EntryPoint) -> None:
    """The key does not depend on arguments, so an edit after the effect meets the entry of another call's arguments."""

    class EditedAnew(Middleware):
        def wrap_tool_call(self, request: Any) -> Any:
            for x in (1, 2):
                result = yield request.override(tool_call={**request.tool_call, "args": {"x": x}})
            return result

    pay = desk.tool("pay", effect="write", idempotent=True)
    agent = agent_of(ledger, [pay], called("pay", 5), "done", around=[EditedAnew()])
    (told,) = answers(run(agent, "go", thread("t"), entry=call).messages)
    assert desk.values == [1]
    assert told.status == "error"
    assert "happened already, with other arguments" in told.text and "x=1" in told.text


# ---- beside others


def test_a_tool_that_pauses_begins_anew_and_is_no_doubt(ledger: Ledger, desk: Any, entry: EntryPoint) -> None:
    pay = desk.tool("pay", lambda x: f"{interrupt('which account?')} paid", effect="write")
    agent = agent_of(ledger, [pay], called("pay", 5), "done")
    assert [i.value for i in run(agent, "go", thread("t"), entry=entry).interrupts] == ["which account?"]
    assert ledger.effects() == []
    ended = run(agent, Command(resume="giro"), thread("t"), entry=entry)
    assert answers(ended.messages)[0].text == "giro paid"
    assert [(e.status, e.attempt) for e in ledger.effects()] == [("done", 1)]


def test_an_agent_as_a_tool_has_no_entry_but_its_calls_have(ledger: Ledger, desk: Any, call: EntryPoint) -> None:
    inner = create_agent(
        ScriptedModel(called("pay", 5), "paid it"),
        [desk.tool("pay", effect="write")],
        middleware=[EffectLedger(ledger)],
        name="helper",
    )
    outer = agent_of(
        ledger, [as_tool(inner, description="Pays.")], ai("", tool_call("helper", {"request": "pay"})), "done"
    )
    ended = run(outer, "go", thread("t"), entry=call)
    assert answers(ended.messages)[0].text == "paid it"
    assert [e.tool for e in ledger.effects()] == ["pay"]


@pytest.mark.parametrize("create", [create_agent, langchain_create_agent], ids=["agentkit", "langchain"])
@pytest.mark.parametrize("shared", [True, False])
def test_two_ledgers_in_one_agent(desk: Any, create: Any, shared: bool, call: EntryPoint, tmp_path: Any) -> None:
    """Two middlewares, on one database or two: the call is executed once, and each database has its entry."""
    urls = [f"sqlite:///{tmp_path / name}.db" for name in (("a", "a") if shared else ("a", "b"))]
    with Ledger(urls[0]) as first, Ledger(urls[1]) as second:
        agent = create(
            ScriptedModel(called("pay", 5), "done"),
            [desk.tool("pay", effect="write")],
            middleware=[EffectLedger(first), EffectLedger(second, name="Second")],
        )
        ended = run(agent, "go", entry=call)
        assert desk.values == [5]
        assert answers(ended.messages)[0].text == "pay 5"
        assert [[e.status for e in one.effects()] for one in (first, second)] == [["done"], ["done"]]


def test_it_works_under_langchains_own_factory(ledger: Ledger, desk: Any, entry: EntryPoint) -> None:
    does, state = breaking(after=True)
    agent: Any = langchain_create_agent(
        ScriptedModel(called("pay", 5), "done"),
        [desk.tool("pay", does, effect="write")],
        middleware=[EffectLedger(ledger)],
        checkpointer=InMemorySaver(),
    )
    run(agent, "go", thread("t"), entry=entry, catch=True)
    (question,) = run(agent, None, thread("t"), entry=entry).interrupts
    answer = {"doubt": question.value["doubt"], "outcome": "done", "result": "paid 5"}
    ended = run(agent, Command(resume=answer), thread("t"), entry=entry)
    assert answers(ended.messages)[0].text == "paid 5"
    assert state["effects"] == 1


# ---- the ledger itself fails


def test_nothing_runs_unrecorded_when_the_ledger_cannot_be_reached(desk: Any, tmp_path: Any, call: EntryPoint) -> None:
    home = tmp_path / "later"
    with Ledger(f"sqlite:///{home / 'ledger.db'}") as ledger:
        agent = agent_of(ledger, [desk.tool("pay", effect="write")], called("pay", 5), "done", around=[ToolRetry()])
        error = run(agent, "go", thread("t"), entry=call, catch=True).error
        assert isinstance(error, LedgerUnavailable)
        assert "OperationalError" in str(error)
        assert desk.ran == []
        home.mkdir()
        ended = run(agent, None, thread("t"), entry=call)
        assert answers(ended.messages)[0].text == "pay 5"
        assert desk.values == [5]


def test_a_result_that_could_not_be_recorded_goes_on_and_stays_listed(
    tmp_path: Any, desk: Any, caplog: pytest.LogCaptureFixture, call: EntryPoint
) -> None:
    """The database goes away during the effect: the run has the result, the ledger a doubt, the log says so."""
    home = tmp_path / "ledger.db"
    with Ledger(f"sqlite:///{home}") as ledger:

        def pay(x: int) -> str:
            ledger.engine.dispose()
            home.rename(tmp_path / "away.db")
            home.mkdir()
            return "paid"

        agent = agent_of(ledger, [desk.tool("pay", pay, effect="write")], called("pay", 5), "done")
        ended = run(agent, "go", thread("t"), entry=call)
        assert answers(ended.messages)[0].text == "paid"
        assert "could not be recorded" in caplog.text
        home.rmdir()
        (tmp_path / "away.db").rename(home)
        assert [e.args for e in ledger.in_doubt(**NOW)] == [{"x": 5}]


@pytest.mark.parametrize("options", [{"on_doubt": "guess"}, {"unknown": "maybe"}])
def test_options_that_cannot_be_meant_are_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        EffectLedger("memory:", **options)


def test_the_standard_stack_takes_a_ledger(ledger: Ledger, desk: Any, call: EntryPoint) -> None:
    agent = create_agent(
        ScriptedModel(called("pay", 5), "done"),
        [desk.tool("pay", effect="write")],
        middleware=standard(ledger=ledger),
        checkpointer=InMemorySaver(),
    )
    run(agent, "go", thread("t"), entry=call)
    assert [e.status for e in ledger.effects()] == ["done"]
    assert [type(m).__name__ for m in standard()].count("EffectLedger") == 0
