"""`Approval`: who is asked about which call, and what becomes of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from agentkit import Middleware, as_tool, create_agent, exit_of, thread
from agentkit.errors import (
    ConfigurationError,
    IncompleteDecision,
    InvalidEdit,
    MissingCheckpointer,
    NotEntitled,
    UnknownDecision,
    WrongCall,
)
from agentkit.middleware import Approval, ApprovalRule, decide, pending_approvals
from agentkit.testing import EntryPoint, ScriptedModel, ai, assert_paired, run, tool_call

CFG = thread("t")
BIG = ApprovalRule(tool="pay", when=lambda args, state: args["x"] > 1000, label="big payments")


def pay(x: int, id: str = "p") -> Any:
    return tool_call("pay", {"x": x}, id)


PAY_5 = (pay(5),)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class TestWhatIsAsked:
    @pytest.mark.parametrize(
        ("rule", "asked"),
        [
            (ApprovalRule(), ["look", "pay", "plain"]),
            (ApprovalRule(tool="pay"), ["pay"]),
            (ApprovalRule(tool=["pay", "look"]), ["look", "pay"]),
            (ApprovalRule(effect="write"), ["pay", "plain"]),
            (ApprovalRule(effect="read"), ["look"]),
            (ApprovalRule(risk="high"), ["pay"]),
            (ApprovalRule(risk=["high", "low"]), ["look", "pay"]),
            (ApprovalRule(tool="pay", risk="low"), []),
            (ApprovalRule(when=lambda args, state: args["x"] > 1), ["pay"]),
        ],
        ids=lambda value: value.name if isinstance(value, ApprovalRule) else "",
    )
    def test_a_rule_covers_what_it_says(self, desk: Any, rule: ApprovalRule, asked: list[str]) -> None:
        tools = [desk.tool("pay", effect="write", risk="high"), desk.tool("look", effect="read", risk="low")]
        calls = [tool_call("pay", {"x": 2}, "1"), tool_call("look", {"x": 1}, "2"), tool_call("plain", {"x": 0}, "3")]
        model = ScriptedModel(ai("", *calls), "done")
        agent = create_agent(
            model, [*tools, desk.tool("plain")], middleware=[Approval(rule)], checkpointer=InMemorySaver()
        )
        paused = agent.invoke({"messages": "go"}, CFG)
        assert sorted(one.name for one in pending_approvals(paused)) == asked
        assert desk.names == sorted({"pay", "look", "plain"} - {*asked})

    def test_without_a_policy_every_call_that_may_write_is_asked_about(self, desk: Any) -> None:
        model = ScriptedModel(ai("", tool_call("plain", {}, "1"), tool_call("look", {}, "2")), "done")
        tools = [desk.tool("plain"), desk.tool("look", effect="read")]
        agent = create_agent(model, tools, middleware=[Approval()], checkpointer=InMemorySaver())
        assert [one.name for one in pending_approvals(agent.invoke({"messages": "go"}, CFG))] == ["plain"]

    def test_a_condition_sees_arguments_and_state(self, desk: Any) -> None:
        seen: list[Any] = []

        def after_the_first(args: Any, state: Any) -> bool:
            seen.append(args)
            return len(state["messages"]) > 1

        model = ScriptedModel(ai("", pay(1)), ai("", pay(2)), "done")
        agent = create_agent(
            model,
            [desk.tool("pay")],
            middleware=[Approval(ApprovalRule(when=after_the_first))],
            checkpointer=InMemorySaver(),
        )
        (question,) = pending_approvals(agent.invoke({"messages": "go"}, CFG))
        assert question.args == {"x": 2}
        assert seen == [{"x": 1}, {"x": 2}]
        assert desk.values == [1]

    def test_where_a_condition_fails_a_person_is_asked(self, desk: Any, caplog: pytest.LogCaptureFixture) -> None:
        rule = ApprovalRule(when=lambda args, state: args["amount"] > 1, label="by amount")
        agent = create_agent(
            ScriptedModel(ai("", pay(5)), "done"),
            [desk.tool("pay")],
            middleware=[Approval(rule)],
            checkpointer=InMemorySaver(),
        )
        assert pending_approvals(agent.invoke({"messages": "go"}, CFG))
        assert "'by amount' failed with KeyError" in caplog.text

    def test_a_question_shows_what_would_run_and_how_it_may_be_answered(self, desk: Any) -> None:
        clock = Clock()
        rule = ApprovalRule(tool="pay", among=["ann", "bob"], expires=timedelta(minutes=5), allow=["approve"])
        agent = create_agent(
            ScriptedModel(ai("", pay(5))),
            [desk.tool("pay")],
            middleware=[Approval(rule, clock=clock)],
            checkpointer=InMemorySaver(),
        )
        (question,) = pending_approvals(agent.invoke({"messages": "go"}, CFG))
        assert (question.tool_call_id, question.name, question.args) == ("p", "pay", {"x": 5})
        assert question.request["among"] == ["ann", "bob"]
        assert question.request["allowed"] == ["approve", "reject"]
        assert question.request["expires_at"] == "2026-03-01T12:05:00+00:00"
        kinds = [form["properties"]["type"]["const"] for form in question.response_schema["oneOf"]]
        assert kinds == ["approve", "reject"]
        assert all("by" in form["required"] for form in question.response_schema["oneOf"])


@pytest.fixture
def asked(desk: Any, granularity: Any) -> Callable[..., Any]:
    """An agent that has asked about the calls of its first answer."""

    def make(*policy: Any, calls: Any = PAY_5, script: Any = ("done",), tools: Any = None, **kwargs: Any) -> Any:
        agent = create_agent(
            ScriptedModel(ai("", *calls), *script),
            tools or [desk.tool("pay", effect="write"), desk.tool("wipe", effect="write"), desk.tool("look")],
            middleware=[Approval(*(policy or ("pay",)), **kwargs)],
            checkpointer=InMemorySaver(),
            granularity=granularity,
        )
        agent.invoke({"messages": "go"}, CFG)
        return agent

    return make


def answer(agent: Any, entry: EntryPoint = "invoke", **decisions: Any) -> Any:
    return run(agent, decide(agent.get_state(CFG), decisions), CFG, entry=entry)


def raw(agent: Any, decision: Any) -> Any:
    """The decision sent to the one open question as it is, without `decide`."""
    (question,) = pending_approvals(agent.get_state(CFG))
    return Command(resume={question.id: decision})


def results(agent: Any) -> list[ToolMessage]:
    return [m for m in agent.get_state(CFG).values["messages"] if isinstance(m, ToolMessage)]


class TestDecisions:
    def test_approved_it_runs_as_shown(self, desk: Any, asked: Any, entry: EntryPoint) -> None:
        agent = asked()
        assert desk.ran == []
        ended = answer(agent, entry, p={"type": "approve", "by": "ann"})
        assert desk.ran == [("pay", {"x": 5})]
        assert [m.text for m in results(agent)] == ["pay 5"]
        assert ended.text == "done"

    def test_rejected_it_does_not_run_and_the_model_is_told_why(self, desk: Any, asked: Any, entry: EntryPoint) -> None:
        agent = asked()
        ended = answer(agent, entry, p={"type": "reject", "by": "ann", "message": "not this month"})
        (told,) = results(agent)
        assert (desk.ran, told.status, ended.text) == ([], "error", "done")
        assert "rejected by ann" in told.text
        assert "not this month" in told.text

    def test_a_response_stands_in_for_the_result(self, desk: Any, asked: Any, entry: EntryPoint) -> None:
        agent = asked()
        answer(agent, entry, p={"type": "respond", "message": "paid by hand"})
        (told,) = results(agent)
        assert (desk.ran, told.status, told.text) == ([], "success", "paid by hand")

    def test_edited_it_runs_as_edited_and_the_model_is_told(self, desk: Any, asked: Any, entry: EntryPoint) -> None:
        agent = asked()
        answer(agent, entry, p={"type": "edit", "by": "ann", "edited_action": {"args": {"x": 3}}})
        (told,) = results(agent)
        assert desk.ran == [("pay", {"x": 3})]
        assert "changed this call" in told.text
        assert "`pay(x=3)`" in told.text
        assert told.text.endswith("pay 3")

    def test_every_decision_is_recorded_with_who_and_when(self, desk: Any, asked: Any) -> None:
        agent = asked(calls=(pay(1, "a"), pay(2, "b")))
        answer(agent, a={"type": "approve", "by": "ann"}, b={"type": "reject", "by": "bob", "message": "no"})
        records = {one["tool_call_id"]: one for one in agent.get_state(CFG).values["approvals"]}
        assert (records["a"]["decision"], records["a"]["by"], records["a"]["args"]) == ("approve", "ann", {"x": 1})
        assert (records["b"]["decision"], records["b"]["by"], records["b"]["message"]) == ("reject", "bob", "no")
        assert all(
            datetime.fromisoformat(one["at"]) >= datetime.fromisoformat(one["asked_at"]) for one in records.values()
        )

    def test_in_a_batch_each_call_is_decided_by_itself(self, desk: Any, asked: Any, entry: EntryPoint) -> None:
        agent = asked(calls=(pay(1, "a"), tool_call("look", {"x": 2}, "b"), pay(3, "c")))
        assert desk.values == [2]  # the sibling went on
        answer(agent, entry, c={"type": "approve"})
        assert desk.values == [2, 3]
        assert [one.tool_call_id for one in pending_approvals(agent.get_state(CFG))] == ["a"]
        ended = answer(agent, entry, a={"type": "reject"})
        assert desk.values == [2, 3]
        assert {m.tool_call_id: m.status for m in results(agent)} == {"a": "error", "b": "success", "c": "success"}
        assert_paired(ended.messages)

    def test_a_rejection_can_end_the_run(self, desk: Any, asked: Any, entry: EntryPoint) -> None:
        agent = asked(script=("never said", "later"))
        ended = answer(agent, entry, p={"type": "reject", "by": "ann", "message": "stop it", "end": True})
        end = exit_of(agent.get_state(CFG))
        assert end is not None
        assert (end.reason, end.source) == ("rejected", "Approval.wrap_model_call")
        assert "stop it" in ended.text
        assert_paired(ended.messages)
        again = run(agent, "and now?", CFG, entry=entry)
        assert again.text == "never said"  # the model was not called before
        assert exit_of(agent.get_state(CFG)).reason == "answer"  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("decision", "reason", "last"),
        [({"type": "approve"}, "return_direct", "pay 5"), ({"type": "reject"}, "answer", "done")],
    )
    def test_a_rejection_is_for_the_model_also_where_a_result_would_be_the_answer(
        self, desk: Any, asked: Any, entry: EntryPoint, decision: Any, reason: str, last: str
    ) -> None:
        direct = desk.tool("pay")
        direct.return_direct = True
        agent = asked(tools=[direct])
        assert answer(agent, entry, p=decision).text == last
        assert exit_of(agent.get_state(CFG)).reason == reason  # type: ignore[union-attr]

    def test_a_second_tab_changes_nothing(self, desk: Any, asked: Any) -> None:
        agent = asked(calls=(pay(1, "a"), pay(2, "b")))
        before = agent.get_state(CFG)
        first = decide(before, {"a": {"type": "approve", "by": "ann"}})
        second = decide(before, {"a": {"type": "reject", "by": "bob"}})
        agent.invoke(first, CFG)
        agent.invoke(second, CFG)
        assert desk.values == [1]
        with pytest.raises(WrongCall, match="decided or withdrawn"):
            decide(agent.get_state(CFG), {"a": {"type": "reject"}})
        answer(agent, b={"type": "approve"})
        agent.invoke(second, CFG)
        assert desk.values == [1, 2]
        assert [one["by"] for one in agent.get_state(CFG).values["approvals"]] == ["ann", None]


class TestEdits:
    def test_an_edit_into_another_tool_is_judged_as_that_tools_call(self, desk: Any, asked: Any) -> None:
        agent = asked("pay", "wipe")
        answer(agent, p={"type": "edit", "by": "ann", "edited_action": {"name": "wipe", "args": {"x": 9}}})
        assert desk.ran == []
        (question,) = pending_approvals(agent.get_state(CFG))
        assert (question.name, question.args, question.request["rules"]) == ("wipe", {"x": 9}, ["tool=wipe"])
        answer(agent, p={"type": "reject", "by": "bob"})
        assert desk.ran == []
        assert [one["decision"] for one in agent.get_state(CFG).values["approvals"]] == ["edit", "reject"]

    def test_an_edit_into_a_tool_that_needs_no_approval_runs_as_that_tool(self, desk: Any, asked: Any) -> None:
        agent = asked()
        answer(agent, p={"type": "edit", "edited_action": {"name": "look", "args": {"x": 9}}})
        (told,) = results(agent)
        assert (desk.ran, told.name, told.tool_call_id) == ([("look", {"x": 9})], "look", "p")

    def test_an_edit_that_falls_under_a_stricter_rule_is_asked_about_again(self, desk: Any, asked: Any) -> None:
        agent = asked("pay", ApprovalRule(tool="pay", when=lambda args, state: args["x"] > 1000, label="big"))
        answer(agent, p={"type": "edit", "by": "ann", "edited_action": {"args": {"x": 5000}}})
        assert desk.ran == []
        (question,) = pending_approvals(agent.get_state(CFG))
        assert question.args == {"x": 5000}
        assert question.request["rules"] == ["tool=pay", "big"]
        answer(agent, p={"type": "approve", "by": "bob"})
        assert desk.ran == [("pay", {"x": 5000})]

    @pytest.mark.parametrize(
        ("action", "says"),
        [
            ({"args": {"x": "many"}}, "x: Input should be a valid integer"),
            ({"args": {"amount": 3}}, "takes no amount"),
            ({"args": {"x": 1}, "name": "nothing"}, "no tool 'nothing'"),
        ],
    )
    def test_an_edit_that_could_not_run_is_refused_and_the_question_stays(
        self, desk: Any, asked: Any, action: Any, says: str
    ) -> None:
        agent = asked()
        with pytest.raises(InvalidEdit, match=says):
            answer(agent, p={"type": "edit", "edited_action": action})
        assert desk.ran == []
        answer(agent, p={"type": "approve"})
        assert desk.ran == [("pay", {"x": 5})]

    def test_arguments_that_the_model_does_not_set_cannot_be_edited_in(self, asked: Any) -> None:
        @tool
        def pay(x: int, runtime: ToolRuntime) -> str:
            """Pay."""
            return "paid"

        agent = asked(tools=[pay])
        with pytest.raises(InvalidEdit, match="takes no runtime; it takes x"):
            answer(agent, p={"type": "edit", "edited_action": {"args": {"x": 1, "runtime": None}}})


class TestRefusedDecisions:
    @pytest.mark.parametrize(
        ("decision", "error", "says"),
        [
            ("yes", UnknownDecision, "a str without a `type`"),
            ({"type": "aprove"}, UnknownDecision, "'aprove' is not allowed"),
            ({"type": "respond"}, IncompleteDecision, "needs a `message`"),
            ({"type": "edit"}, IncompleteDecision, "needs an `edited_action`"),
            ({"type": "edit", "edited_action": {"name": "pay"}}, IncompleteDecision, "needs `args`"),
            ({"type": "approve", "by": 7}, IncompleteDecision, "`by` must be a text"),
            ({"type": "approve", "at": "noon"}, IncompleteDecision, "ISO 8601"),
            ({"type": "approve", "tool_call_id": "q"}, WrongCall, "it is for call 'q'"),
        ],
    )
    def test_it_is_named_and_nothing_runs_and_the_question_stays(
        self, desk: Any, asked: Any, call: EntryPoint, decision: Any, error: type[Exception], says: str
    ) -> None:
        agent = asked()
        with pytest.raises(error, match=says):
            run(agent, raw(agent, decision), CFG, entry=call)
        assert desk.ran == []
        run(agent, raw(agent, {"type": "approve"}), CFG, entry=call)
        assert desk.values == [5]

    def test_a_decision_that_names_nothing_may_be_meant_for_another_call(
        self, desk: Any, asked: Any, call: EntryPoint
    ) -> None:
        agent = asked(script=(ai("", pay(6, "q")), "done"))
        click: Any = Command(resume={"type": "approve"})
        with pytest.raises(IncompleteDecision, match="names no call"):
            run(agent, click, CFG, entry=call)
        named: Any = Command(resume={"type": "approve", "tool_call_id": "p"})
        run(agent, named, CFG, entry=call)
        with pytest.raises(WrongCall, match="for call 'p'"):
            run(agent, named, CFG, entry=call)  # a double click meets the next question
        assert desk.values == [5]

    def test_a_sibling_answered_in_the_same_resume_runs_once(self, desk: Any, asked: Any, call: EntryPoint) -> None:
        agent = asked(calls=(pay(1, "a"), pay(2, "b")))
        ids = {one.tool_call_id: one.id for one in pending_approvals(agent.get_state(CFG))}
        with pytest.raises(UnknownDecision):
            run(agent, Command(resume={ids["a"]: {"type": "approve"}, ids["b"]: {"type": "?"}}), CFG, entry=call)
        assert desk.values == [1]
        run(agent, Command(resume={ids["b"]: {"type": "approve"}}), CFG, entry=call)
        assert desk.values == [1, 2]

    def test_decide_refuses_before_anything_runs(self, asked: Any) -> None:
        state = asked().get_state(CFG)
        with pytest.raises(UnknownDecision):
            decide(state, {"p": {"type": "maybe"}})  # type: ignore[typeddict-item]
        with pytest.raises(WrongCall, match="Waiting: 'p'"):
            decide(state, {"q": {"type": "approve"}})
        with pytest.raises(WrongCall, match="no decision"):
            decide(state, {})

    def test_what_a_rule_does_not_allow_is_refused(self, desk: Any, asked: Any) -> None:
        agent = asked(ApprovalRule(tool="pay", allow=["approve"]))
        with pytest.raises(UnknownDecision, match="approve, reject"):
            answer(agent, p={"type": "edit", "edited_action": {"args": {"x": 1}}})


class TestSeveralApprovers:
    RULE = ApprovalRule(tool="pay", approvers=2, among=("ann", "bob", "cy"))

    def test_it_runs_when_enough_different_people_have_approved(self, desk: Any, asked: Any) -> None:
        agent = asked(self.RULE)
        answer(agent, p={"type": "approve", "by": "ann"})
        (question,) = pending_approvals(agent.get_state(CFG))
        assert (question.request["approved_by"], question.request["missing"], desk.ran) == (["ann"], 1, [])
        with pytest.raises(NotEntitled, match="'ann' has approved it already"):
            answer(agent, p={"type": "approve", "by": "ann"})
        with pytest.raises(NotEntitled, match="'dan' may not decide; ann, bob, cy may"):
            answer(agent, p={"type": "approve", "by": "dan"})
        with pytest.raises(IncompleteDecision, match="add `by`"):
            answer(agent, p={"type": "approve"})
        assert desk.ran == []
        answer(agent, p={"type": "approve", "by": "cy"})
        assert desk.values == [5]
        assert [one["by"] for one in agent.get_state(CFG).values["approvals"]] == ["ann", "cy"]

    def test_the_answers_may_come_with_and_without_the_questions_id(self, desk: Any, asked: Any) -> None:
        agent = asked(self.RULE)
        agent.invoke(Command(resume={"type": "approve", "by": "ann", "tool_call_id": "p"}), CFG)
        answer(agent, p={"type": "approve", "by": "bob"})
        assert desk.values == [5]
        assert [one["by"] for one in agent.get_state(CFG).values["approvals"]] == ["ann", "bob"]

    def test_one_rejection_is_enough(self, desk: Any, asked: Any) -> None:
        agent = asked(self.RULE)
        answer(agent, p={"type": "approve", "by": "ann"})
        ended = answer(agent, p={"type": "reject", "by": "bob"})
        assert (desk.ran, ended.text) == ([], "done")

    def test_an_edit_voids_earlier_consent_and_counts_as_its_authors(self, desk: Any, asked: Any) -> None:
        agent = asked(self.RULE)
        answer(agent, p={"type": "approve", "by": "ann"})
        answer(agent, p={"type": "edit", "by": "bob", "edited_action": {"args": {"x": 4}}})
        (question,) = pending_approvals(agent.get_state(CFG))
        assert (question.args, question.request["approved_by"], question.request["edited"]) == ({"x": 4}, ["bob"], True)
        answer(agent, p={"type": "approve", "by": "ann"})
        assert desk.values == [4]

    def test_the_people_of_a_rule_may_be_a_list_when_one_of_them_edits(self, desk: Any, asked: Any) -> None:
        agent = asked(ApprovalRule(tool="pay", among=["ann", "bob"]))
        answer(agent, p={"type": "edit", "by": "bob", "edited_action": {"args": {"x": 4}}})
        assert desk.values == [4]

    def test_each_rule_wants_its_own_people(self, desk: Any, asked: Any) -> None:
        agent = asked(
            ApprovalRule(tool="pay", among=["ann"], label="desk"), ApprovalRule(tool="pay", among=["bob"], label="boss")
        )
        answer(agent, p={"type": "approve", "by": "ann"})
        assert desk.ran == []
        answer(agent, p={"type": "approve", "by": "bob"})
        assert desk.values == [5]


class TestExpiry:
    def test_a_decision_that_comes_too_late_rejects_and_says_so(self, desk: Any, asked: Any, call: EntryPoint) -> None:
        clock = Clock()
        agent = asked(ApprovalRule(tool="pay", expires=60), clock=clock)
        clock.now += timedelta(seconds=61)
        run(agent, raw(agent, {"type": "approve", "by": "ann"}), CFG, entry=call)
        (told,) = results(agent)
        assert (desk.ran, told.status) == ([], "error")
        assert "came too late by ann" in told.text
        (record,) = agent.get_state(CFG).values["approvals"]
        assert (record["decision"], record["by"], record["at"]) == ("expired", "ann", "2026-03-01T12:01:01+00:00")

    def test_until_then_it_counts(self, desk: Any, asked: Any) -> None:
        clock = Clock()
        agent = asked(ApprovalRule(tool="pay", expires=timedelta(minutes=1)), clock=clock)
        clock.now += timedelta(seconds=60)
        run(agent, raw(agent, {"type": "approve"}), CFG)
        assert desk.values == [5]


class TestDurability:
    def test_a_new_message_withdraws_what_waits(self, desk: Any, asked: Any, entry: EntryPoint) -> None:
        agent = asked(script=("something else", "done"))
        old = decide(agent.get_state(CFG), {"p": {"type": "approve", "by": "ann"}})
        ended = run(agent, "forget it", CFG, entry=entry)
        assert (desk.ran, ended.text) == ([], "something else")
        assert_paired(ended.messages)
        (record,) = agent.get_state(CFG).values["approvals"]
        assert (record["decision"], record["by"], record["tool_call_id"]) == ("withdrawn", None, "p")
        run(agent, old, CFG, entry=entry)  # too late: answers nothing
        assert desk.ran == []
        assert pending_approvals(agent.get_state(CFG)) == []

    def test_what_siblings_did_is_kept_when_a_new_message_withdraws_a_call(
        self, desk: Any, asked: Any, entry: EntryPoint
    ) -> None:
        calls = (pay(1, "a"), tool_call("look", {"x": 2}, "b"), pay(3, "c"))
        agent = asked(calls=calls, script=("something else",))
        answer(agent, entry, a={"type": "approve", "by": "ann"})
        ended = run(agent, "forget the rest", CFG, entry=entry)
        assert desk.values == [1, 2]
        told = {m.tool_call_id: m for m in results(agent)}
        assert (told["a"].text, told["b"].text, told["c"].status) == ("pay 1", "look 2", "error")
        kept = {one["tool_call_id"]: one["decision"] for one in agent.get_state(CFG).values["approvals"]}
        assert kept == {"a": "approve", "c": "withdrawn"}
        assert ended.text == "something else"
        assert_paired(ended.messages)

    def test_they_are_kept_on_a_thread_that_the_agent_is_bound_to(self, desk: Any, call: EntryPoint) -> None:
        model = ScriptedModel(ai("", pay(1, "a"), tool_call("look", {"x": 2}, "b")), "done")
        tools = [desk.tool("pay"), desk.tool("look")]
        agent: Any = create_agent(model, tools, middleware=[Approval("pay")], checkpointer=InMemorySaver())
        bound = agent.with_config(CFG)
        run(bound, "go", entry=call)
        run(bound, "forget it", entry=call)
        assert {m.tool_call_id: m.status for m in results(agent)} == {"a": "error", "b": "success"}

    def test_everything_is_in_the_store(self, desk: Any, tmp_path: Path, granularity: Any) -> None:
        counted: list[int] = []

        def once(args: Any, state: Any) -> bool:
            counted.append(args["x"])
            return len(counted) == 1

        def agent(*script: Any) -> Any:
            saver = SqliteSaver(sqlite3.connect(tmp_path / "a.db", check_same_thread=False))
            rules = ApprovalRule(tool="pay", when=once, approvers=2, expires=3600)
            return create_agent(
                ScriptedModel(*script),
                [desk.tool("pay", effect="write")],
                middleware=[Approval(rules)],
                checkpointer=saver,
                granularity=granularity,
            )

        agent(ai("", pay(5))).invoke({"messages": "go"}, CFG)
        answer(agent(), p={"type": "approve", "by": "ann"})
        assert desk.ran == []
        ended = answer(agent("done"), p={"type": "approve", "by": "bob"})
        assert (ended.text, desk.values, counted) == ("done", [5], [5])
        assert [one["by"] for one in ended.values["approvals"]] == ["ann", "bob"]

    @pytest.mark.parametrize("config", [None, CFG], ids=["no thread", "thread"])
    def test_without_a_checkpointer_the_first_pause_says_so(self, desk: Any, call: EntryPoint, config: Any) -> None:
        agent = create_agent(ScriptedModel(ai("", pay(5))), [desk.tool("pay")], middleware=[Approval("pay")])
        with pytest.raises(MissingCheckpointer, match=r"Approval has to pause .* Pass `checkpointer=`"):
            run(agent, "go", config, entry=call)
        assert desk.ran == []

    def test_without_a_checkpointer_calls_that_nobody_asks_about_run(self, desk: Any, call: EntryPoint) -> None:
        agent = create_agent(ScriptedModel(ai("", pay(5)), "done"), [desk.tool("pay")], middleware=[Approval(BIG)])
        assert run(agent, "go", entry=call).text == "done"
        assert desk.values == [5]


class TestTogether:
    def test_an_agent_as_a_tool_pauses_the_outer_run(self, desk: Any, call: EntryPoint) -> None:
        inner = create_agent(
            ScriptedModel(ai("", pay(5)), "inner done"),
            [desk.tool("pay")],
            middleware=[Approval("pay")],
            name="clerk",
        )
        model = ScriptedModel(ai("", tool_call("clerk", {"request": "pay"}, "c")), "outer done")
        agent = create_agent(model, [as_tool(inner, description="Pays.")], checkpointer=InMemorySaver())
        paused = run(agent, "go", CFG, entry=call)
        (question,) = pending_approvals(agent.get_state(CFG))
        assert [i.id for i in paused.interrupts] == [question.id]
        ended = answer(agent, call, p={"type": "edit", "edited_action": {"args": {"x": 4}}})
        assert (ended.text, desk.values) == ("outer done", [4])

    def test_two_policies_are_both_asked(self, desk: Any) -> None:
        agent = create_agent(
            ScriptedModel(ai("", pay(5)), "done"),
            [desk.tool("pay", effect="write")],
            middleware=[Approval("pay"), Approval(ApprovalRule(effect="write", label="all writes"))],
            checkpointer=InMemorySaver(),
        )
        agent.invoke({"messages": "go"}, CFG)
        answer(agent, p={"type": "approve", "by": "ann"})
        assert desk.ran == []
        (question,) = pending_approvals(agent.get_state(CFG))
        assert question.request["rules"] == ["all writes"]
        answer(agent, p={"type": "approve", "by": "bob"})
        assert desk.values == [5]

    def test_the_tools_own_update_of_state_is_kept(self, desk: Any, asked: Any, entry: EntryPoint) -> None:
        def commands(x: int) -> Any:
            return Command(update={"messages": [ToolMessage(f"paid {x}", tool_call_id="p")]})

        agent = asked(tools=[desk.tool("pay", commands)])
        answer(agent, entry, p={"type": "edit", "by": "ann", "edited_action": {"args": {"x": 3}}})
        (told,) = results(agent)
        assert told.text.startswith("Note: a person changed this call before it ran by ann")
        assert told.text.endswith("paid 3")
        assert [one["by"] for one in agent.get_state(CFG).values["approvals"]] == ["ann"]

    def test_an_approved_call_streams_one_update(self, asked: Any) -> None:
        agent = asked()
        decision = decide(agent.get_state(CFG), {"p": {"type": "approve", "by": "ann"}})
        chunks = [c["tools"] for c in agent.stream(decision, CFG, stream_mode="updates") if "tools" in c]
        assert [(c["messages"][0].text, c["approvals"][0]["by"]) for c in chunks] == [("pay 5", "ann")]

    def test_a_call_that_another_middleware_rewrote_is_judged_as_it_stands(self, desk: Any) -> None:
        class Tenfold(Middleware):
            def wrap_tool_call(self, request: Any) -> Any:
                call = {**request.tool_call, "args": {"x": request.tool_call["args"]["x"] * 10}}
                return (yield request.override(tool_call=call))

        agent = create_agent(
            ScriptedModel(ai("", pay(500)), "done"),
            [desk.tool("pay")],
            middleware=[Tenfold(), Approval(BIG)],
            checkpointer=InMemorySaver(),
        )
        (question,) = pending_approvals(agent.invoke({"messages": "go"}, CFG))
        assert question.args == {"x": 5000}
        answer(agent, p={"type": "approve"})
        assert desk.values == [5000]


async def never(args: Any, state: Any) -> bool:
    return False


class TestPolicies:
    @pytest.mark.parametrize(
        ("make", "says"),
        [
            (lambda: ApprovalRule(effect="delete"), "effect is 'read' or 'write'"),  # type: ignore[arg-type]
            (lambda: ApprovalRule(approvers=0), "at least 1"),
            (lambda: ApprovalRule(approvers=3, among=["ann", "bob"]), "3 people must approve, but only 2 may"),
            (lambda: ApprovalRule(among="ann"), "among is a list"),
            (lambda: ApprovalRule(allow=["ok"]), "allow names"),  # type: ignore[list-item]
            (lambda: ApprovalRule(when=never), "async function"),  # type: ignore[arg-type]
            (lambda: ApprovalRule(expires=0), "above 0 seconds"),
            (lambda: Approval("pay", "pay"), "two rules are called 'tool=pay'"),
        ],
    )
    def test_a_policy_that_cannot_be_meant_is_refused_when_it_is_made(self, make: Callable[[], Any], says: str) -> None:
        with pytest.raises(ConfigurationError, match=says):
            make()


@pytest.mark.parametrize("label", ["", "mine"])
def test_a_rule_names_itself_alike_in_every_process(label: str) -> None:
    def large(args: Any, state: Any) -> bool:
        return bool(args["x"] > 1000)

    rule = ApprovalRule(tool=["pay", "wipe"], risk="high", when=large, approvers=2, label=label)
    assert rule.name == (label or f"tool=pay|wipe, risk=high, when={large.__qualname__}, approvers=2")


def test_langchains_own_factory_runs_it_too(desk: Any) -> None:
    agent: Any = langchain_create_agent(
        ScriptedModel(ai("", pay(5)), "never said"),
        [desk.tool("pay")],
        middleware=[Approval("pay")],
        checkpointer=InMemorySaver(),
    )
    paused = agent.invoke({"messages": [("user", "go")]}, CFG)
    ended = agent.invoke(decide(paused, {"p": {"type": "reject", "by": "ann", "end": True}}), CFG)
    assert desk.ran == []
    assert ended["messages"][-1].text == "`pay` was rejected by ann"
