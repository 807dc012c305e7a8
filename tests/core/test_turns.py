"""A message or a decision takes place once, however often it is delivered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, RemoveMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from agentkit import create_agent, exit_of, thread
from agentkit.errors import ConfigurationWarning, InvalidTurn, ThreadBusy, UnknownInterrupt
from agentkit.middleware import Approval, pending_approvals
from agentkit.testing import ScriptedModel, ai, assert_paired, tool_call
from agentkit.turns import adecide, arun_turn, decide, run_turn

Deliver = Callable[..., Any]


def _sync_run(twin: Callable[..., Any]) -> Deliver:
    return lambda *args, **kwargs: asyncio.run(twin(*args, **kwargs))


@pytest.fixture(params=["sync", "async"])
def deliver(request: pytest.FixtureRequest) -> Deliver:
    """`run_turn` in each form."""
    return run_turn if request.param == "sync" else _sync_run(arun_turn)


@pytest.fixture
def answer(deliver: Deliver) -> Deliver:
    """`decide` in the same form."""
    return decide if deliver is run_turn else _sync_run(adecide)


@dataclass
class Payments:
    """A tool with an effect."""

    made: list[int] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)

    def pay(self, amount: int) -> str:
        """Pay."""
        if self.fails:
            raise self.fails.pop()
        self.made.append(amount)
        return f"paid {amount}"


def paying(payments: Payments, *script: Any, **kwargs: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(*(script or (ai("", tool_call("pay", {"amount": 5})), "paid")))
    return create_agent(model, [payments.pay], checkpointer=InMemorySaver(), **kwargs), model


def human_ids(result: Any) -> list[Any]:
    return [message.id for message in result["messages"] if isinstance(message, HumanMessage)]


def test_a_message_is_answered_once_however_often_it_comes(deliver: Deliver) -> None:
    payments = Payments()
    agent, model = paying(payments)
    first = deliver(agent, "t", "m1", "pay 5")
    assert [deliver(agent, "t", "m1", "pay 5") for _ in range(3)] == [first] * 3
    assert (payments.made, model.calls) == ([5], 2)
    assert human_ids(first) == ["m1"]
    assert exit_of(deliver(agent, "t", "m1", "pay 5")) == exit_of(first)


def test_the_result_is_the_one_of_that_turn_also_when_later_ones_came(deliver: Deliver) -> None:
    agent, model = paying(Payments(), "one", "two", "three")
    results = [deliver(agent, "t", f"m{i}", "hi") for i in range(3)]
    assert [deliver(agent, "t", f"m{i}", "hi") for i in range(3)] == results
    assert model.calls == 3


@pytest.mark.parametrize("broken_at", ["model", "tool", "after the tool"])
def test_a_turn_that_broke_off_continues_when_the_message_comes_again(deliver: Deliver, broken_at: str) -> None:
    payments = Payments(fails=[ConnectionError("away")] if broken_at == "tool" else [])
    script: list[Any] = [ai("", tool_call("pay", {"amount": 5})), "paid"]
    if broken_at != "tool":
        script.insert(0 if broken_at == "model" else 1, ConnectionError("away"))
    agent, model = paying(payments, *script)
    with pytest.raises(ConnectionError, match="away"):
        deliver(agent, "t", "m1", "pay 5")
    result = deliver(agent, "t", "m1", "pay 5")
    assert result["messages"][-1].text == "paid"
    assert (payments.made, human_ids(result)) == ([5], ["m1"])
    assert_paired(model, result["messages"])


def test_a_message_behind_one_that_broke_off_starts_its_own_turn_and_the_first_stays_over(deliver: Deliver) -> None:
    payments = Payments()
    agent, model = paying(payments, ai("", tool_call("pay", {"amount": 5})), ConnectionError("away"), "hello")
    with pytest.raises(ConnectionError):
        deliver(agent, "t", "m1", "pay 5")
    second = deliver(agent, "t", "m2", "hello?")
    assert second["messages"][-1].text == "hello"
    deliver(agent, "t", "m1", "pay 5")
    assert (payments.made, model.calls, human_ids(second)) == ([5], 3, ["m1", "m2"])


def test_results_of_a_step_that_broke_off_are_kept_when_another_message_comes(deliver: Deliver) -> None:
    """The process ended when the tools were done and their results kept, before the step's checkpoint was."""
    payments = Payments()
    agent, model = paying(payments, ai("", tool_call("pay", {"amount": 5})), "paid", "hello")
    put, broken = agent.checkpointer.put, []

    def crash(config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
        if metadata["step"] == 2 and not broken:
            broken.append(metadata)
            raise ConnectionError("away")
        return put(config, checkpoint, metadata, versions)

    agent.checkpointer.put = crash
    with pytest.raises(ConnectionError):
        deliver(agent, "t", "m1", "pay 5")
    assert exit_of(agent.get_state(thread("t"))) is None  # nobody takes the turn for one that is over
    ended = deliver(agent, "t", "m2", "hello")
    assert [message.text for message in ended["messages"] if message.type == "tool"] == ["paid 5"]
    assert payments.made == [5]
    assert_paired(model, ended["messages"])


class Forgets(AgentMiddleware[Any, Any, Any]):
    """Removes all messages but the last two, as a compaction does."""

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id=message.id) for message in state["messages"][:-1]]}


def test_a_message_that_a_compaction_removed_is_still_known(deliver: Deliver) -> None:
    agent, model = paying(Payments(), "one", "two", middleware=[Forgets()])
    first = deliver(agent, "t", "m1", "hi")
    assert human_ids(first) == []
    assert deliver(agent, "t", "m1", "hi") == first
    deliver(agent, "t", "m2", "hi")
    assert deliver(agent, "t", "m1", "hi") == first
    assert model.calls == 2


def test_a_message_that_came_another_way_is_known_too(deliver: Deliver) -> None:
    agent, model = paying(Payments(), "one", "two")
    agent.invoke({"messages": [HumanMessage("hi", id="m1")]}, thread("t"))
    agent.invoke({"messages": [HumanMessage("again", id="m2")]}, thread("t"))
    assert human_ids(deliver(agent, "t", "m1", "hi")) == ["m1", "m2"]
    assert deliver(agent, "t", "m2", "again")["messages"][-1].text == "two"
    assert model.calls == 2


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ("hi", ["m1"]),
        (HumanMessage("hi"), ["m1"]),
        ([("user", "hi")], ["m1"]),
        ({"messages": "hi"}, ["m1"]),
        ({"messages": [{"role": "user", "content": "hi"}]}, ["m1"]),
        ([SystemMessage("be brief"), HumanMessage("a"), HumanMessage("b")], ["m1/0", "m1/1", "m1"]),
        ([HumanMessage("a", id="own"), HumanMessage("b", id="mine")], ["own", "mine"]),
    ],
)
def test_every_form_of_input_adds_its_messages_once(deliver: Deliver, given: Any, ids: list[str]) -> None:
    agent, model = paying(Payments(), "one", "two")
    deliver(agent, "t", "m1", given)
    result = deliver(agent, "t", "m1", given)
    assert [message.id for message in result["messages"][:-1]] == ids
    assert model.calls == 1


class Sums(TypedDict):
    added: Annotated[int, lambda old, new: old + new]


@pytest.mark.parametrize("later", [False, True])
def test_a_graph_without_messages_has_turns_too(deliver: Deliver, later: bool) -> None:
    builder = StateGraph(Sums)
    builder.add_node("one", lambda state: {"added": 1})
    builder.add_edge(START, "one")
    builder.add_edge("one", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    first = deliver(graph, "t", "m1", {"added": 10})
    if later:
        assert deliver(graph, "t", "m2", {"added": 100}) == {"added": 112}
    assert deliver(graph, "t", "m1", {"added": 10}) == first == {"added": 11}


# ---- decisions


def approving(payments: Payments) -> tuple[Any, ScriptedModel]:
    script = (
        ai("", tool_call("pay", {"amount": 5}, "a"), tool_call("pay", {"amount": 7}, "b")),
        "paid",
        "what then?",
    )
    return paying(payments, *script, middleware=[Approval("pay")])


def test_a_message_whose_turn_waits_for_a_decision_is_not_run_again(deliver: Deliver) -> None:
    payments = Payments()
    agent, model = approving(payments)
    paused = deliver(agent, "t", "m1", "pay")
    again = deliver(agent, "t", "m1", "pay")
    assert pending_approvals(again) == pending_approvals(paused)
    assert {one.tool_call_id for one in pending_approvals(paused)} == {"a", "b"}
    assert (payments.made, model.calls) == ([], 1)


def test_each_decision_takes_effect_once(deliver: Deliver, answer: Deliver) -> None:
    payments = Payments()
    agent, model = approving(payments)
    first, second = pending_approvals(deliver(agent, "t", "m1", "pay"))
    for _ in range(2):
        paused = answer(agent, "t", first.id, {"type": "approve"})
        assert [one.id for one in pending_approvals(paused)] == [second.id]
    assert payments.made == [5]
    ended = answer(agent, "t", second.id, {"type": "reject"})
    assert answer(agent, "t", second.id, {"type": "approve"}) == ended  # the first answer counts
    assert answer(agent, "t", first.id, {"type": "approve"}) == ended
    assert deliver(agent, "t", "m1", "pay") == ended
    assert (payments.made, model.calls) == ([5], 2)
    assert_paired(model, ended["messages"])


def test_a_run_that_broke_off_after_a_decision_continues_with_it(deliver: Deliver, answer: Deliver) -> None:
    payments = Payments()
    script = (ai("", tool_call("pay", {"amount": 5})), ConnectionError("away"), ConnectionError("away"), "paid")
    agent, _ = paying(payments, *script, middleware=[Approval("pay")])
    (asked,) = pending_approvals(deliver(agent, "t", "m1", "pay"))
    with pytest.raises(ConnectionError):
        answer(agent, "t", asked.id, {"type": "approve"})
    with pytest.raises(ConnectionError):
        answer(agent, "t", asked.id, {"type": "approve"})
    assert deliver(agent, "t", "m1", "pay")["messages"][-1].text == "paid"
    assert payments.made == [5]


def test_a_decision_whose_call_failed_is_not_asked_for_again(deliver: Deliver, answer: Deliver) -> None:
    payments = Payments(fails=[ConnectionError("away")])
    agent, _ = paying(payments, middleware=[Approval("pay")])
    (asked,) = pending_approvals(deliver(agent, "t", "m1", "pay"))
    with pytest.raises(ConnectionError):
        answer(agent, "t", asked.id, {"type": "approve"})
    assert answer(agent, "t", asked.id, {"type": "approve"})["messages"][-1].text == "paid"
    assert payments.made == [5]


def test_an_answer_is_never_taken_for_the_next_question_of_the_same_tool(deliver: Deliver, answer: Deliver) -> None:
    heard: list[Any] = []

    def pay(amount: int) -> str:
        """Pay."""
        heard.append((interrupt("to whom?"), interrupt("really?")))
        return "paid"

    agent = create_agent(
        ScriptedModel(ai("", tool_call("pay", {"amount": 5})), "paid"), [pay], checkpointer=InMemorySaver()
    )
    first = deliver(agent, "t", "m1", "pay")["__interrupt__"][0]
    second = answer(agent, "t", first.id, "ann")["__interrupt__"][0]
    assert answer(agent, "t", first.id, "ann")["__interrupt__"] == [second]
    assert heard == []
    answer(agent, "t", second.id, "yes")
    assert heard == [("ann", "yes")]


def test_a_new_message_withdraws_the_question_and_its_answer_comes_too_late(deliver: Deliver, answer: Deliver) -> None:
    payments = Payments()
    agent, model = approving(payments)
    first, second = pending_approvals(deliver(agent, "t", "m1", "pay"))
    answer(agent, "t", first.id, {"type": "approve"})
    ended = deliver(agent, "t", "m2", "wait!")
    with pytest.raises(UnknownInterrupt, match="withdrawn") as caught:
        answer(agent, "t", second.id, {"type": "approve"})
    assert (caught.value.interrupt_id, caught.value.waiting) == (second.id, ())
    answer(agent, "t", first.id, {"type": "approve"})
    deliver(agent, "t", "m1", "pay")
    assert deliver(agent, "t", "m2", "wait!") == ended
    assert payments.made == [5]
    assert_paired(model, ended["messages"])


def test_a_refused_decision_can_be_given_again(deliver: Deliver, answer: Deliver) -> None:
    payments = Payments()
    agent, _ = approving(payments)
    first, _ = pending_approvals(deliver(agent, "t", "m1", "pay"))
    with pytest.raises(ValueError, match="not allowed"):
        answer(agent, "t", first.id, {"type": "maybe"})
    answer(agent, "t", first.id, {"type": "approve"})
    assert payments.made == [5]


@pytest.mark.parametrize("where", ["interrupt_before", "interrupt_after"])
def test_a_breakpoint_is_not_passed_by_a_second_delivery(deliver: Deliver, where: str) -> None:
    payments = Payments()
    node = {"interrupt_before": ["tools"], "interrupt_after": ["model"]}[where]
    agent, _ = paying(payments, **{where: node})
    deliver(agent, "t", "m1", "pay 5")
    deliver(agent, "t", "m1", "pay 5")
    assert payments.made == []
    agent.invoke(None, thread("t"))
    assert payments.made == [5]


# ---- at the same time


def test_deliveries_at_the_same_time_are_one_turn() -> None:
    payments = Payments()
    agent, model = paying(payments)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: run_turn(agent, "t", "m1", "pay 5"), range(4)))
    assert results == [results[0]] * 4
    assert (payments.made, model.calls) == ([5], 2)


async def test_deliveries_at_the_same_time_are_one_turn_async() -> None:
    payments = Payments()
    agent, model = paying(payments)
    results = await asyncio.gather(*(arun_turn(agent, "t", "m1", "pay 5") for _ in range(4)))
    assert results == [results[0]] * 4
    assert (payments.made, model.calls) == ([5], 2)


async def test_a_thread_that_stays_busy_is_named_and_free_again_after_a_cancellation() -> None:
    started, payments = asyncio.Event(), Payments()

    async def slow(request: Any) -> Any:
        started.set()
        await asyncio.sleep(60)

    agent, _ = paying(payments, slow, "hello")
    running = asyncio.create_task(arun_turn(agent, "t", "m1", "hi", owner="desk"))
    await started.wait()
    with pytest.raises(ThreadBusy, match="desk"):
        await arun_turn(agent, "t", "m2", "hi", wait=0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await arun_turn(agent, "t", "m1", "hi"))["messages"][-1].text == "hello"


def test_other_threads_go_on_meanwhile() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(request: Any) -> Any:
        inside.set()
        assert go_on.wait(10)
        return "slow"

    agent, _ = paying(Payments(), slow, "quick")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_turn, agent, "t", "m1", "hi")
        assert inside.wait(10)
        assert run_turn(agent, "u", "m1", "hi", wait=0)["messages"][-1].text == "quick"
        go_on.set()
        assert running.result()["messages"][-1].text == "slow"


# ---- what is refused


@pytest.mark.parametrize(
    ("message_id", "given", "told"), [("", "hi", "id"), ("m1", None, "None"), ("m1", Command(resume=1), "Command")]
)
def test_what_is_no_turn_is_refused(deliver: Deliver, message_id: str, given: Any, told: str) -> None:
    agent, model = paying(Payments())
    with pytest.raises(InvalidTurn, match=told):
        deliver(agent, "t", message_id, given)
    assert model.calls == 0


def test_an_agent_that_keeps_nothing_and_a_nameless_thread_are_refused(deliver: Deliver, answer: Deliver) -> None:
    with pytest.raises(InvalidTurn, match="checkpointer"):
        deliver(create_agent(ScriptedModel("hi")), "t", "m1", "hi")
    agent, _ = paying(Payments())
    with pytest.raises(InvalidTurn, match="thread"):
        deliver(agent, {}, "m1", "hi")
    with pytest.raises(UnknownInterrupt, match="nothing"):
        answer(agent, "t", "nobody", True)


def test_a_saver_without_leases_is_told_once(tmp_path: Any) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        agent = create_agent(ScriptedModel("one", "two"), checkpointer=saver)
        with pytest.warns(ConfigurationWarning, match="SqliteSaver has no leases"):
            run_turn(agent, "t", "m1", "hi")
        run_turn(agent, "t", "m2", "hi")


def test_config_and_arguments_reach_the_run(deliver: Deliver) -> None:
    seen: list[Any] = []

    class Sees(AgentMiddleware[Any, Any, Any]):
        def before_agent(self, state: Any, runtime: Any) -> None:
            seen.append(runtime.context)

    agent, _ = paying(Payments(), "hi", middleware=[Sees()], context_schema=dict)
    deliver(agent, thread("t", metadata={"tenant": "x"}), "m1", "hi", context={"user": "ann"})
    assert seen == [{"user": "ann"}]
    assert (agent.get_state(thread("t")).metadata or {})["tenant"] == "x"
