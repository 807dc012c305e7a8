"""The catalogue's middlewares beside one another, and several of one kind in one agent."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any, NotRequired

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from tenacity import wait_none

from agentkit import AgentState, Middleware, as_tool, create_agent, exit_of, thread
from agentkit.errors import ConfigurationError, HookError, IncompleteDecision, WrongCall
from agentkit.middleware import (
    Approval,
    ApprovalRule,
    Deadline,
    Gates,
    Handoff,
    Insist,
    RepeatedCall,
    Reuse,
    SameCallFailed,
    StepBudget,
    TokenBudget,
    ToolCallBudget,
    ToolRetry,
    decide,
    pending_approvals,
    standard,
)
from agentkit.testing import EntryPoint, ScriptedModel, ai, assert_paired, run, tool_call

CFG = thread("t")


def agent_of(model: ScriptedModel, tools: Any, *middleware: Any, **options: Any) -> Any:
    return create_agent(model, tools, middleware=middleware, checkpointer=InMemorySaver(), **options)


def until_told_to_stop(name: str = "look", new: bool = True) -> ScriptedModel:
    """Asks for tools while there are some."""

    def step(request: Any) -> Any:
        args = {"x": request.turn if new else 1}
        return ai("", tool_call(name, args, f"c{request.turn}")) if request.tools else "summary"

    return ScriptedModel(step, repeat=True)


def costing(tokens: int, text: str, *calls: Any) -> AIMessage:
    usage = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    return AIMessage(text, tool_calls=list(calls), usage_metadata=usage)


class TestSeveralGates:
    """Each has counts and an ending of its own, also where nobody gave them names."""

    @pytest.mark.parametrize("last", [False, True])
    def test_the_ending_is_that_of_the_gate_that_tripped(self, desk: Any, granularity: Any, last: bool) -> None:
        gates = [Gates(SameCallFailed(2), on_trip=Handoff("people")), Gates(StepBudget(3))]
        model = until_told_to_stop()
        agent = agent_of(model, [desk.tool("look")], *(gates[::-1] if last else gates), granularity=granularity)
        ended = run(agent, "hi", CFG)
        assert (exit_of(ended.raw).reason, ended.text) == ("step_budget", "summary")  # type: ignore[union-attr]

    def test_each_call_counts_once(self, desk: Any, granularity: Any) -> None:
        gates = [Gates(ToolCallBudget(4), on_trip="stop"), Gates(RepeatedCall(9))]
        agent = agent_of(until_told_to_stop(), [desk.tool("look")], *gates, granularity=granularity)
        ended = run(agent, "hi", CFG)
        assert desk.values == [0, 1, 2, 3]
        assert "4 calls were made" in exit_of(ended.raw).detail  # type: ignore[union-attr]

    @pytest.mark.parametrize("order", [1, -1])
    def test_remaining_steps_are_those_of_the_nearest_end(self, desk: Any, order: int) -> None:
        seen = []

        class Looks(Middleware):
            def wrap_model_call(self, request: Any) -> Any:
                seen.append(request.state["remaining_steps"])
                return (yield request)

        gates = [Gates(StepBudget(9)), Gates(StepBudget(3), on_trip="stop")][::order]
        run(agent_of(until_told_to_stop(), [desk.tool("look")], *gates, Looks()), "hi", CFG)
        assert seen == [2, 1, 0]

    def test_they_are_counted_apart_for_a_thread_in_another_agent_object(self, desk: Any) -> None:
        saver = InMemorySaver()
        for turn in (1, 2):
            gates = [Gates(StepBudget(9, per="thread")), Gates(StepBudget(4, per="thread"), on_trip="stop")]
            agent = create_agent(until_told_to_stop(), [desk.tool("look")], middleware=gates, checkpointer=saver)
            ended = run(agent, "hi", CFG)
            assert exit_of(ended.raw).source == ("Gates#2.after_model" if turn == 1 else "Gates#2.before_model")  # type: ignore[union-attr]

    def test_a_sub_agent_with_the_same_gate_leaves_the_outer_runs_time_alone(self, desk: Any) -> None:
        now = [0.0]
        gate = Gates(Deadline(10), on_trip="stop", clock=lambda: now[0])
        inner_model = ScriptedModel(ai("", tool_call("ask")), "told")
        inner = create_agent(inner_model, [desk.tool("ask", lambda x: str(interrupt("?")))], middleware=[gate])
        clerk = as_tool(inner, name="clerk", description="A clerk.")
        model = ScriptedModel(ai("", tool_call("clerk", {"request": "go"})), "done")
        agent = agent_of(model, [clerk], gate)
        agent.invoke({"messages": "hi"}, CFG)
        now[0] = 86_400.0  # a day's pause
        assert agent.invoke(Command(resume="yes"), CFG)["messages"][-1].text == "done"


class TestTokensOfRepliesThatDoNotStand:
    @pytest.mark.parametrize("stream", [False, True])
    def test_what_the_loop_asked_again_counts(self, desk: Any, entry: EntryPoint, stream: bool) -> None:
        call = tool_call("look", {"x": 1}, "c2")
        script: list[Any] = [costing(10, "", tool_call("look")), costing(100, ""), costing(10, "", call), "never"]
        agent = agent_of(ScriptedModel(*script, stream=stream), [desk.tool("look")], Gates(TokenBudget(115)))
        ended = run(agent, "hi", CFG, entry=entry)
        assert exit_of(ended.raw).detail.startswith("120 tokens were used")  # type: ignore[union-attr]
        assert desk.values == [0]

    def test_what_a_wrap_asked_again_counts(self, desk: Any, entry: EntryPoint) -> None:
        wrong, right = tool_call("look", {"x": "?"}, "c1"), tool_call("look", {"x": 1}, "c2")
        model = ScriptedModel(costing(10, "", wrong), costing(100, "words"), costing(10, "", right), "never")
        ended = run(agent_of(model, [desk.tool("look")], Gates(TokenBudget(115)), Insist()), "hi", CFG, entry=entry)
        assert (exit_of(ended.raw).reason, desk.ran) == ("token_budget", [])  # type: ignore[union-attr]

    def test_a_closing_answer_that_was_put_right_counts_once(self, desk: Any) -> None:
        model = ScriptedModel(lambda r: costing(10, "", tool_call("look", id=f"c{r.turn}")), repeat=True)
        agent = agent_of(model, [desk.tool("look")], Gates(StepBudget(2), TokenBudget(40, per="thread")))
        run(agent, "hi", CFG)  # 30 tokens
        ended = run(agent, "hi", CFG)
        assert "40 tokens were used" in exit_of(ended.raw).detail  # type: ignore[union-attr]

    def test_a_report_of_no_tokens_is_none(self, desk: Any, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, "agentkit"):
            run(agent_of(ScriptedModel(costing(0, "hello")), [], Gates(TokenBudget(100))), "hi", CFG)
        assert "1 model calls reported no usage" in caplog.text


class Sees(Middleware):
    """Remembers what a wrap outside of the others gets to see."""

    def __init__(self, change: Any = None) -> None:
        super().__init__()
        self.types: dict[str, type] = {}
        self.change = change

    def wrap_tool_call(self, request: Any) -> Any:
        result = yield request
        self.types[request.tool_call["id"]] = type(result)
        return self.change(result) if self.change and isinstance(result, ToolMessage) else result


class TestWhatOuterWrapsSee:
    def test_retried_and_approved_and_merged_results_are_tool_messages(self, desk: Any, entry: EntryPoint) -> None:
        failures = [ConnectionError("reset")]

        def flaky(x: int) -> str:
            if failures:
                raise failures.pop()
            return "fine"

        tools = [desk.tool("flaky", flaky, effect="read"), desk.tool("look", effect="read"), desk.tool("pay")]
        calls = [
            tool_call("flaky", id="f"),
            tool_call("look", id="l"),
            tool_call("look", id="m"),
            tool_call("pay", id="p"),
        ]
        sees = Sees()
        stack = [sees, Approval("pay"), Reuse(), ToolRetry(wait=wait_none())]
        agent = agent_of(ScriptedModel(ai("", *calls), "done"), tools, *stack)
        run(agent, "hi", CFG, entry=entry)
        ended = run(agent, decide(agent.get_state(CFG), {"p": {"type": "approve"}}), CFG, entry=entry)
        assert sees.types == {"f": ToolMessage, "l": ToolMessage, "m": Command, "p": ToolMessage}
        assert [m.text for m in ended.messages if isinstance(m, ToolMessage)] == ["fine", "look 0", "look 0", "pay 0"]
        state = agent.get_state(CFG).values
        assert (state["tool_retries"], len(state["approvals"])) == ({"ToolRetry": 1}, 1)

    def test_merged_calls_all_get_what_outer_wraps_make_of_the_result(self, desk: Any, entry: EntryPoint) -> None:
        redacts = Sees(lambda result: result.model_copy(update={"content": "***"}))
        model = ScriptedModel(ai("", *(tool_call("look", id=id) for id in "abc")), "done")
        ended = run(agent_of(model, [desk.tool("look", effect="read")], redacts, Reuse()), "hi", CFG, entry=entry)
        told = {m.tool_call_id: m.text for m in ended.messages if isinstance(m, ToolMessage)}
        assert told == {"a": "***", "b": "***", "c": "***"}
        assert desk.names == ["look"]


class TestRetries:
    def test_calls_of_one_answer_divide_the_budget(self, desk: Any, entry: EntryPoint) -> None:
        def down(x: int) -> str:
            raise ConnectionError("down")

        model = ScriptedModel(ai("", *(tool_call("down", {"x": x}, f"c{x}") for x in range(5))), "done")
        agent = agent_of(model, [desk.tool("down", down, effect="read")], ToolRetry(budget=3, wait=wait_none()))
        run(agent, "hi", CFG, entry=entry)
        assert len(desk.ran) == 5 + 3
        assert agent.get_state(CFG).values["tool_retries"] == {"ToolRetry": 3}

    def test_two_unnamed_ones_count_apart(self, desk: Any) -> None:
        class Refused(Exception):
            pass

        failures: list[Exception] = [ConnectionError("a"), Refused("b")]

        def flaky(x: int) -> str:
            if failures:
                raise failures.pop()
            return "fine"

        stack = [ToolRetry(wait=wait_none()), ToolRetry(retry_on=Refused, wait=wait_none())]
        agent = agent_of(
            ScriptedModel(ai("", tool_call("flaky")), "ok"), [desk.tool("flaky", flaky, effect="read")], *stack
        )
        run(agent, "hi", CFG)
        assert agent.get_state(CFG).values["tool_retries"] == {"ToolRetry": 1, "ToolRetry#2": 1}

    def test_a_named_one_stays_inside_of_the_approval(self, desk: Any, call: EntryPoint) -> None:
        failures = [ConnectionError("a"), ConnectionError("b")]

        def flaky(x: int) -> str:
            if failures:
                raise failures.pop()
            return "paid"

        pay = desk.tool("pay", flaky, effect="write", idempotent=True)
        stack = [ToolRetry(name="patient", wait=wait_none()), Approval()]
        agent = agent_of(ScriptedModel(ai("", tool_call("pay")), "done"), [pay], *stack)
        run(agent, "hi", CFG, entry=call)
        ended = run(agent, decide(agent.get_state(CFG), {"c1": {"type": "approve"}}), CFG, entry=call)
        assert (ended.text, ended.interrupts) == ("done", ())


class TestApprovalBesideOthers:
    def test_a_batch_of_everything_while_a_gate_trips(self, desk: Any, granularity: Any, call: EntryPoint) -> None:
        failures = [ConnectionError("reset")]

        def flaky(x: int) -> str:
            if failures:
                raise failures.pop()
            return "fine"

        batch = [
            tool_call("pay", {"x": 1}, "edited"), tool_call("pay", {"x": 2}, "rejected"),
            tool_call("look", {"x": 3}, "retried"), tool_call("look", {"x": 3}, "twin"),
            tool_call("nothing", {}, "unknown"),
        ]  # fmt: skip
        model = ScriptedModel(ai("", *batch), ai("", tool_call("look", {"x": 3}, "again")), "never")
        tools = [desk.tool("pay", effect="write"), desk.tool("look", flaky, effect="read")]
        agent = agent_of(
            model,
            tools,
            Gates(ToolCallBudget(5), on_trip="stop"),
            *standard(approve=["pay"])[1:],
            granularity=granularity,
        )
        run(agent, "hi", CFG, entry=call)
        edit: Any = {"type": "edit", "by": "ann", "edited_action": {"args": {"x": 9}}}
        decisions: Any = {"edited": edit, "rejected": {"type": "reject", "by": "bob"}}
        ended = run(agent, decide(agent.get_state(CFG), decisions), CFG, entry=call)
        assert exit_of(ended.raw).reason == "step_budget"  # type: ignore[union-attr]
        assert sorted(args["x"] for name, args in desk.ran if name == "pay") == [9]
        assert desk.names == ["look", "look", "pay"]  # one attempt that failed, one for both twins
        assert_paired(model, ended.messages)
        results = {m.tool_call_id: (m.status, m.text) for m in ended.messages if isinstance(m, ToolMessage)}
        assert [results[id][0] for id in ("edited", "rejected", "retried", "twin", "unknown", "again")] == [
            "success", "error", "success", "success", "error", "error",
        ]  # fmt: skip
        assert results["twin"][1] == results["retried"][1] == "fine"
        assert results["again"][1].startswith("Not executed")
        assert [(r["tool_call_id"], r["decision"]) for r in ended.raw["approvals"]] == [
            ("edited", "edit"),
            ("rejected", "reject"),
        ]

    def test_what_a_gate_stopped_was_not_withdrawn(self, desk: Any, entry: EntryPoint) -> None:
        model = ScriptedModel(ai("", tool_call("pay", id="a"), tool_call("pay", id="b")), "hello")
        agent = agent_of(model, [desk.tool("pay")], Gates(ToolCallBudget(1), on_trip="stop"), Approval("pay"))
        run(agent, "hi", CFG, entry=entry)
        run(agent, "and now?", CFG, entry=entry)
        assert agent.get_state(CFG).values.get("approvals", []) == []

    @pytest.mark.parametrize("args", [{"x": "many"}, {"note": ["no text"]}])
    def test_nobody_is_asked_about_arguments_that_cannot_run(
        self, desk: Any, entry: EntryPoint, args: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        texts = []
        for approval in ([], [Approval(ApprovalRule(tool="pay", when=lambda args, state: args["x"] > 5))]):
            model = ScriptedModel(ai("", tool_call("pay", args)), "sorry")
            ended = run(agent_of(model, [desk.tool("pay")], *approval), "hi", CFG, entry=entry)
            assert (ended.text, ended.interrupts, desk.ran) == ("sorry", (), [])
            texts.append(ended.messages[2].text)
        assert texts[0] == texts[1]
        assert "condition" not in caplog.text

    @pytest.mark.parametrize(
        ("decision", "filled"),
        [
            ({"type": "approve"}, {"order_id": "order 1"}),
            ({"type": "edit", "edited_action": {"args": {"x": 2}}}, {"order_id": "order 2"}),
            ({"type": "edit", "edited_action": {"name": "user", "args": {"x": 3}}}, {"user_id": "user 3"}),
            ({"type": "respond", "message": "there is none"}, {}),
        ],
    )
    def test_state_fields_are_filled_by_the_tool_that_ran(
        self, desk: Any, granularity: Any, decision: Any, filled: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Shop(AgentState):
            order_id: NotRequired[str]
            user_id: NotRequired[str]

        def found(name: str) -> Any:
            return desk.tool(name, lambda x: {"id": f"{name} {x}"}, effect="read", writes={f"{name}_id": "id"})

        model = ScriptedModel(ai("", tool_call("order", {"x": 1})), "done")
        tools = [found("order"), found("user")]
        agent = agent_of(model, tools, Approval("order"), state_schema=Shop, granularity=granularity)
        run(agent, "hi", CFG)
        ended = run(agent, decide(agent.get_state(CFG), {"c1": decision}), CFG)
        assert {key: value for key, value in ended.values.items() if key.endswith("_id")} == filled
        assert "is not written" not in caplog.text

    def test_a_call_that_an_approver_let_through_may_have_run_when_it_is_withdrawn(self, desk: Any) -> None:
        def dies(x: int) -> str:
            raise MemoryError("in the middle of it")

        model = ScriptedModel(ai("", tool_call("pay")), "hello")
        agent = agent_of(model, [desk.tool("pay", dies)], Approval("pay"))
        run(agent, "hi", CFG)
        run(agent, decide(agent.get_state(CFG), {"c1": {"type": "approve"}}), CFG, catch=True)
        assert pending_approvals(agent.get_state(CFG))  # as if nobody had answered
        ended = run(agent, "never mind", CFG)
        assert "whether it took effect is unknown" in ended.messages[2].text


class TestOnTrip:
    def test_a_function_that_returns_something_else_is_named(self, desk: Any) -> None:
        def answers(state: Any, why: Any) -> Any:
            return AIMessage("x")

        agent = agent_of(until_told_to_stop(), [desk.tool("look")], Gates(StepBudget(1), on_trip=answers))
        with pytest.raises(HookError, match=r"Gates\.on_trip returned AIMessage"):
            agent.invoke({"messages": "hi"}, CFG)

    def test_an_async_function_is_refused_when_it_is_made(self) -> None:
        async def later(state: Any, why: Any) -> str:
            return "x"

        with pytest.raises(ConfigurationError, match="plain functions"):
            Gates(on_trip=later)  # type: ignore[arg-type]

    def test_a_closing_call_that_fails_logs_no_content(self, desk: Any, caplog: pytest.LogCaptureFixture) -> None:
        model = ScriptedModel(ai("", tool_call("look")), RuntimeError("the user's secret"))
        run(agent_of(model, [desk.tool("look")], Gates(StepBudget(1))), "hi", CFG)
        assert "RuntimeError" in caplog.text
        assert "secret" not in caplog.text


class TestWhenADecisionWasTaken:
    @pytest.mark.parametrize("stamped", [True, False])
    def test_consent_in_time_stays_so_when_the_next_comes_too_late(self, desk: Any, stamped: bool) -> None:
        now = [datetime(2030, 1, 1, tzinfo=UTC)]
        rule = ApprovalRule(tool="pay", approvers=2, expires=3600)
        model = ScriptedModel(ai("", tool_call("pay", id="a"), tool_call("pay", id="b")), "done")
        agent = agent_of(model, [desk.tool("pay")], Approval(rule, clock=lambda: now[0]))
        run(agent, "hi", CFG)

        def approves(by: str, call: str) -> Any:
            [question] = [one for one in pending_approvals(agent.get_state(CFG)) if one.tool_call_id == call]
            at = {"at": now[0].isoformat()} if stamped else {}
            return run(agent, Command(resume={question.id: {"type": "approve", "by": by, **at}}), CFG)

        approves("ann", "a")
        now[0] += timedelta(hours=2)
        approves("ann", "b")  # too late, and `a` is looked at again
        ended = approves("bob", "a")
        decided = [(r["tool_call_id"], r["by"], r["decision"]) for r in ended.raw["approvals"]]
        assert sorted(decided) == [("a", "ann", "approve"), ("a", "bob", "expired"), ("b", "ann", "expired")]
        assert desk.ran == []


class TestReusedCallIds:
    def test_a_second_click_does_not_decide_on_the_next_call_of_that_id(self, desk: Any, call: EntryPoint) -> None:
        model = ScriptedModel(ai("", tool_call("pay", {"x": 1}, "0")), ai("", tool_call("pay", {"x": 9}, "0")), "done")
        agent = agent_of(model, [desk.tool("pay")], Approval("pay"))
        run(agent, "hi", CFG, entry=call)
        run(agent, decide(agent.get_state(CFG), {"0": {"type": "approve"}}), CFG, entry=call)
        with pytest.raises(WrongCall, match="own id"):
            decide(agent.get_state(CFG), {"0": {"type": "approve"}})
        bare: Command[Any] = Command(resume={"type": "approve", "tool_call_id": "0"})
        assert isinstance(run(agent, bare, CFG, entry=call, catch=True).error, IncompleteDecision)
        assert desk.values == [1]
        [question] = pending_approvals(agent.get_state(CFG))
        ended = run(agent, decide(agent.get_state(CFG), {question.id: {"type": "reject"}}), CFG, entry=call)
        assert (ended.text, desk.values) == ("done", [1])
