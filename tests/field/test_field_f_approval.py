"""Field reports, family F (approval and interrupts), and those of other families that approval decides."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware, hook_config
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt

from agentkit import as_tool, create_agent, thread
from agentkit.errors import NestedPause
from agentkit.middleware import Approval, ApprovalRule, decide, pending_approvals
from agentkit.testing import EntryPoint, ScriptedModel, ai, arun, assert_paired, comparable, run, tool_call

Maker = Callable[..., Any]
CFG = thread("t")


def calls(*named: tuple[str, int]) -> Any:
    """An answer that calls tools by name, with ids c0, c1, ..."""
    return ai("", *[tool_call(name, {"x": x}, f"c{i}") for i, (name, x) in enumerate(named)])


def resume(agent: Any, decisions: Any, entry: EntryPoint = "invoke") -> Any:
    return run(agent, decide(agent.get_state(CFG), decisions), CFG, entry=entry)


def built(model: Any, tools: list[BaseTool], *middleware: Any, **kwargs: Any) -> Any:
    return create_agent(model, tools, middleware=middleware, checkpointer=InMemorySaver(), **kwargs)


class JumpsToTools(AgentMiddleware[Any, Any, Any]):
    @hook_config(can_jump_to=["tools"])
    def after_model(self, state: Any, runtime: Any) -> Any:
        return {"jump_to": "tools"} if state["messages"][-1].tool_calls else None


@pytest.mark.parametrize("approval_first", [True, False])
def test_lc_40491_a_rejected_call_never_runs_whatever_jumps_to_the_tools(
    act: Maker, entry: EntryPoint, approval_first: bool
) -> None:
    danger = act("danger")
    stack = [Approval("danger"), JumpsToTools()]
    agent = built(
        ScriptedModel(calls(("danger", 1)), "done"), [danger.tool], *(stack if approval_first else reversed(stack))
    )
    run(agent, "go", CFG, entry=entry)
    assert resume(agent, {"c0": {"type": "reject"}}, entry).text == "done"
    assert danger.ran == []


def test_lc_33787_the_model_sees_the_edit_and_the_original_is_asked_about_again(act: Maker, entry: EntryPoint) -> None:
    pay = act("pay")
    model = ScriptedModel(calls(("pay", 1)), calls(("pay", 1)), "done")
    agent = built(model, [pay.tool], Approval("pay"))
    run(agent, "go", CFG, entry=entry)
    resume(agent, {"c0": {"type": "edit", "edited_action": {"args": {"x": 9}}}}, entry)
    assert pay.ran == [9]
    assert "`pay(x=9)`" in model.requests[1].messages[-1].text
    assert [one.args for one in pending_approvals(agent.get_state(CFG))] == [{"x": 1}]
    assert_paired(model)


def test_lcjs_11125_one_rejection_leaves_the_rest_of_the_batch_alone(act: Maker, entry: EntryPoint) -> None:
    risky, free = act("risky"), act("free")
    model = ScriptedModel(calls(("risky", 1), ("free", 2), ("risky", 3)), "done")
    agent = built(model, [risky.tool, free.tool], Approval("risky"))
    run(agent, "go", CFG, entry=entry)
    resume(agent, {"c0": {"type": "reject"}, "c2": {"type": "approve"}}, entry)
    assert (risky.ran, free.ran) == ([3], [2])
    assert [m.tool_call_id for m in model.requests[1].messages if isinstance(m, ToolMessage)] == ["c0", "c1", "c2"]
    assert_paired(model)


class CatchesAll(AgentMiddleware[Any, Any, Any]):
    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception:
            return ToolMessage("failed", tool_call_id=request.tool_call["id"])

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except Exception:
            return ToolMessage("failed", tool_call_id=request.tool_call["id"])


def test_lg_8217_a_wrapper_that_catches_everything_does_not_swallow_the_question(act: Maker, entry: EntryPoint) -> None:
    pay = act("pay")
    agent = built(ScriptedModel(calls(("pay", 1)), "done"), [pay.tool], CatchesAll(), Approval("pay"))
    assert run(agent, "go", CFG, entry=entry).interrupts
    resume(agent, {"c0": {"type": "approve"}}, entry)
    assert pay.ran == [1]


@pytest.mark.parametrize("approval_first", [True, False])
def test_lc_38837_a_retry_around_it_neither_repeats_the_question_nor_the_approval(
    act: Maker, entry: EntryPoint, approval_first: bool
) -> None:
    failures = iter([OSError("busy"), None])

    def flaky(x: int) -> str:
        if error := next(failures):
            raise error
        return "paid"

    pay = act("pay", flaky)
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    stack = [Approval("pay"), retry] if approval_first else [retry, Approval("pay")]
    agent = built(ScriptedModel(calls(("pay", 1)), "done"), [pay.tool], *stack)
    assert len(run(agent, "go", CFG, entry=entry).interrupts) == 1
    assert pay.ran == []
    ended = resume(agent, {"c0": {"type": "approve"}}, entry)
    assert (ended.text, pay.ran, len(ended.values["approvals"])) == ("done", [1, 1], 1)


def test_lg_6533_two_questions_of_one_batch_have_ids_of_their_own(act: Maker, entry: EntryPoint) -> None:
    pay = act("pay")
    agent = built(ScriptedModel(calls(("pay", 1), ("pay", 2)), "done"), [pay.tool], Approval("pay"))
    run(agent, "go", CFG, entry=entry)
    first, second = pending_approvals(agent.get_state(CFG))
    assert first.id != second.id
    answers = {second.id: {"type": "respond", "message": "B"}, first.id: {"type": "respond", "message": "A"}}
    ended = run(agent, Command(resume=answers), CFG, entry=entry)
    assert {m.tool_call_id: m.text for m in ended.messages if isinstance(m, ToolMessage)} == {"c0": "A", "c1": "B"}


def test_da_420_finished_siblings_are_not_run_again(act: Maker, entry: EntryPoint) -> None:
    pay, ask = act("pay"), act("ask")
    agent = built(ScriptedModel(calls(("pay", 1), ("ask", 2)), "done"), [pay.tool, ask.tool], Approval("ask"))
    run(agent, "go", CFG, entry=entry)
    assert pay.ran == [1]
    resume(agent, {"c1": {"type": "approve"}}, entry)
    assert (pay.ran, ask.ran) == ([1], [2])


def test_lg_7780_a_tool_that_asks_in_a_loop_works_behind_an_approval(entry: EntryPoint) -> None:
    @tool
    def number() -> str:
        """Ask for a number."""
        while not isinstance(answer := interrupt("a number?"), int):
            pass
        return f"got {answer}"

    agent = built(ScriptedModel(ai("", tool_call("number", {}, "c0")), "done"), [number], Approval("number"))
    run(agent, "go", CFG, entry=entry)
    resume(agent, {"c0": {"type": "approve"}}, entry)
    for answer in ("x", "y"):
        assert run(agent, Command(resume=answer), CFG, entry=entry).interrupts
    ended = run(agent, Command(resume=7), CFG, entry=entry)
    assert "got 7" in [m.text for m in ended.messages]


def clerk(pay: Any, *script: Any, name: str = "clerk", **kwargs: Any) -> tuple[ScriptedModel, BaseTool]:
    model = ScriptedModel(*script)
    return model, as_tool(
        create_agent(model, [pay.tool], middleware=[Approval("pay")], name=name, **kwargs), description="Pays."
    )


def to_clerk(*names: str) -> Any:
    return ai("", *[tool_call(name, {"request": "pay"}, f"o{i}") for i, name in enumerate(names)])


def test_da_554_every_decision_works_in_a_sub_agent(act: Maker, entry: EntryPoint) -> None:
    pay = act("pay")
    inner, sub = clerk(pay, calls(("pay", 1)), "not paid")
    outer = ScriptedModel(to_clerk("clerk"), "done")
    agent = built(outer, [sub])
    run(agent, "go", CFG, entry=entry)
    ended = resume(agent, {"c0": {"type": "reject", "message": "no money"}}, entry)
    assert (pay.ran, inner.calls, ended.text) == ([], 2, "done")
    assert "no money" in inner.requests[1].messages[-1].text
    assert outer.requests[1].messages[-1].text == "not paid"


def test_da_554_two_sub_agents_ask_at_once_and_are_answered_by_id(act: Maker, entry: EntryPoint) -> None:
    pay = act("pay")
    _, left = clerk(pay, calls(("pay", 1)), "left done", name="left")
    _, right = clerk(pay, calls(("pay", 2)), "right done", name="right")
    agent = built(ScriptedModel(to_clerk("left", "right"), "done"), [left, right])
    run(agent, "go", CFG, entry=entry)
    questions = {one.args["x"]: one.id for one in pending_approvals(agent.get_state(CFG))}
    ended = resume(agent, {questions[2]: {"type": "approve"}, questions[1]: {"type": "reject"}}, entry)
    assert (pay.ran, ended.text) == ([2], "done")


@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["kept in the outer run", "with a thread of its own"])
def test_adk_7245_a_sub_agents_pause_is_never_an_empty_result(act: Maker, call: EntryPoint, saver: Any) -> None:
    pay = act("pay")
    inner = create_agent(
        ScriptedModel(calls(("pay", 1)), "inner done"), [pay.tool], middleware=[Approval("pay")], checkpointer=saver
    )
    config = thread(f"own {call}") if saver else None
    told: list[str] = []

    @tool
    def sub(request: str) -> str:
        """Ask another agent."""
        told.append(inner.invoke({"messages": request}, config)["messages"][-1].text)
        return told[-1]

    agent = built(ScriptedModel(ai("", tool_call("sub", {"request": "pay"}, "o0")), "done"), [sub])
    if saver:
        with pytest.raises(NestedPause):
            run(agent, "go", CFG, entry=call)
        assert (pay.ran, told) == ([], [])
        return
    assert run(agent, "go", CFG, entry=call).interrupts
    assert (pay.ran, told) == ([], [])
    ended = resume(agent, {"c0": {"type": "approve"}}, call)
    assert (pay.ran, told, ended.text) == ([1], ["inner done"], "done")


def test_str_3615_a_cancel_after_the_approved_call_does_not_run_it_again(act: Maker) -> None:
    pay = act("pay")

    async def scenario() -> None:
        started = asyncio.Event()

        async def hangs(request: Any) -> str:
            started.set()
            await asyncio.sleep(60)
            return "never"

        agent = built(ScriptedModel(calls(("pay", 1)), hangs, "done"), [pay.tool], Approval("pay"))
        await arun(agent, "go", CFG)
        decision = decide(agent.get_state(CFG), {"c0": {"type": "approve"}})
        task = asyncio.create_task(agent.ainvoke(decision, CFG))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert pay.ran == [1]
        ended = await arun(agent, None, CFG)
        assert (pay.ran, ended.text) == ([1], "done")
        assert [one["decision"] for one in ended.values["approvals"]] == ["approve"]

    asyncio.run(scenario())


def test_oaijs_1418_the_condition_is_asked_once_and_the_decision_stands(act: Maker, entry: EntryPoint) -> None:
    pay, asked = act("pay"), []

    def flips(args: Any, state: Any) -> bool:
        asked.append(args)
        return len(asked) == 1

    agent = built(ScriptedModel(calls(("pay", 1)), "done"), [pay.tool], Approval(ApprovalRule(when=flips)))
    run(agent, "go", CFG, entry=entry)
    resume(agent, {"c0": {"type": "reject"}}, entry)
    assert (pay.ran, asked) == ([], [{"x": 1}])


def test_str_3076_a_sub_agents_question_is_answered_after_a_restart(act: Maker, tmp_path: Path) -> None:
    pay = act("pay")

    def rebuilt(outer: tuple[Any, ...], inner: tuple[Any, ...]) -> Any:
        saver = SqliteSaver(sqlite3.connect(tmp_path / "t.db", check_same_thread=False))
        return create_agent(ScriptedModel(*outer), [clerk(pay, *inner)[1]], checkpointer=saver)

    rebuilt((to_clerk("clerk"),), (calls(("pay", 1)),)).invoke({"messages": "go"}, CFG)
    agent = rebuilt(("done",), ("paid",))
    assert resume(agent, {"c0": {"type": "edit", "edited_action": {"args": {"x": 2}}}}).text == "done"
    assert pay.ran == [2]


# ---- other families


def test_lc_33489_a_new_message_closes_the_call_that_waited(act: Maker, entry: EntryPoint) -> None:
    pay = act("pay")
    model = ScriptedModel(calls(("pay", 1)), "as you wish")
    agent = built(model, [pay.tool], Approval("pay"))
    run(agent, "go", CFG, entry=entry)
    ended = run(agent, "leave it", CFG, entry=entry)
    assert (pay.ran, ended.text) == ([], "as you wish")
    assert [one["decision"] for one in ended.values["approvals"]] == ["withdrawn"]
    assert_paired(model, ended.messages)


def test_pyd_3350_an_open_call_in_a_given_history_is_not_taken_as_approved(act: Maker, entry: EntryPoint) -> None:
    pay = act("pay")
    model = ScriptedModel(calls(("pay", 2)), "done")
    agent = built(model, [pay.tool], Approval("pay"))
    given = [HumanMessage("go"), AIMessage("", tool_calls=[tool_call("pay", {"x": 1}, "old")])]
    paused = run(agent, given, CFG, entry=entry)
    assert pay.ran == []
    assert_paired(model)
    assert [one.args for one in pending_approvals(agent.get_state(CFG))] == [{"x": 2}]  # called anew, asked about
    assert paused.interrupts


def test_oai_4827_what_is_stored_after_an_approval_is_what_a_run_without_one_stores(
    act: Maker, entry: EntryPoint
) -> None:
    stored = []
    for middleware in ((), (Approval("pay"),)):
        pay = act("pay")
        model = ScriptedModel(ai("I pay.", tool_call("pay", {"x": 1}, "c0")), "done")
        agent = built(model, [pay.tool], *middleware)
        ended = run(agent, "go", CFG, entry=entry)
        if middleware:
            ended = resume(agent, {"c0": {"type": "approve"}}, entry)
        stored.append(comparable(ended.messages))
        assert_paired(model, ended.messages)
    assert stored[0] == stored[1]
