"""Each named error, raised by a mistake that a user really makes, with a message that says where and how to mend it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config, wrap_tool_call
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from agentkit import Middleware, Placement, barrier, checkpoint, create_agent, errors, thread
from agentkit.check import check
from agentkit.errors import AgentkitError, ConfigurationWarning, InvalidHook, MissingHookForm
from agentkit.ledger import Call, Ledger, Settlement
from agentkit.middleware import (
    Approval,
    ApprovalRule,
    ConsecutiveFailures,
    EffectLedger,
    Facts,
    Gates,
    ModelRetry,
    RunLog,
    StepBudget,
    ToolCallBudget,
    standard,
)
from agentkit.telemetry.records import read
from agentkit.testing import ScriptedModel, ai, tool_call
from agentkit.tools import tool as contracted
from agentkit.turns import decide, run_turn


class Answer(BaseModel):
    value: int


class Price(BaseModel):
    euros: int


def named(name: str, **body: Any) -> Any:
    """A middleware class of that name."""
    return type(name, (Middleware,), body)


def _hook(result: Any) -> Any:
    def hook(self: Any, state: Any, runtime: Any) -> Any:
        return result

    return hook


def _wrap(self: Any, request: Any) -> Any:
    return (yield request)


@tool
def look(x: int) -> str:
    """Look."""
    return "found"


@tool("look")
def look_again(x: int) -> str:
    """Look elsewhere."""
    return "found"


def duplicate_tool() -> None:
    create_agent(ScriptedModel("x"), [look, look_again])


def duplicate_middleware() -> None:
    one = named("Guard", before_model=_hook(None))()
    create_agent(ScriptedModel("x"), middleware=[one, one])


def no_middleware() -> None:
    create_agent(ScriptedModel("x"), middleware=[named("Guard", before_model=_hook(None))])


def invalid_hook() -> None:
    async def before_model(self: Any, state: Any, runtime: Any) -> None: ...

    create_agent(ScriptedModel("x"), middleware=[named("Guard", before_model=before_model)()])


def placement_conflict() -> None:
    place = Placement(at="outermost")
    pair = [named(n, wrap_model_call=_wrap, model_placement=place)() for n in ("Guard", "Watch")]
    create_agent(ScriptedModel("x"), middleware=pair)


def reserved_field() -> None:
    class Mine(AgentState[Any]):
        exit: str

    create_agent(ScriptedModel("x"), state_schema=Mine)


def undeclared_jump() -> None:
    guard = named("Guard", before_model=_hook({"jump_to": "end"}))()
    create_agent(ScriptedModel("x"), middleware=[guard]).invoke({"messages": "hi"})


def jump_to_missing_tools() -> None:
    jump = hook_config(can_jump_to=["tools"])(_hook({"jump_to": "tools"}))
    create_agent(ScriptedModel("x"), middleware=[named("Guard", before_model=jump)()]).invoke({"messages": "hi"})


def missing_hook_form() -> None:
    async def abefore_model(self: Any, state: Any, runtime: Any) -> None: ...

    guard = named("Guard", abefore_model=abefore_model)()
    create_agent(ScriptedModel("x"), middleware=[guard]).invoke({"messages": "hi"})


def _pausing(granularity: Any) -> None:
    """A hook that asks only on its first run, whatever the state."""
    asked: list[int] = []

    def after_model(self: Any, state: Any, runtime: Any) -> None:
        asked.append(1)
        if len(asked) == 1:
            interrupt("go on?")

    agent = create_agent(
        ScriptedModel("x"),
        middleware=[named("Guard", after_model=after_model)()],
        checkpointer=InMemorySaver(),
        granularity=granularity,
    )
    agent.invoke({"messages": "hi"}, thread("t"))
    agent.invoke(Command(resume="yes"), thread("t"))


def unused_decision() -> None:
    _pausing("hook")


def forgotten_pause() -> None:
    _pausing("turn")


def broken_protocol() -> None:
    def wrap_model_call(self: Any, request: Any, handler: Any) -> None:
        handler(request)

    create_agent(ScriptedModel("x"), middleware=[named("Guard", wrap_model_call=wrap_model_call)()]).invoke(
        {"messages": "hi"}
    )


def missing_structured_output() -> None:
    create_agent(ScriptedModel("text", repeat=True), response_format=ToolStrategy(Answer)).invoke({"messages": "hi"})


def truncated_reply() -> None:
    create_agent(ScriptedModel(ai("half a sent", model_provider="openai"), repeat=True)).invoke({"messages": "hi"})


def unreadable_reply() -> None:
    def reply(request: Any) -> Any:
        return ai("", {"name": "look", "args": "not an object", "id": "c1", "type": "tool_call"})  # type: ignore[typeddict-item]

    create_agent(ScriptedModel(reply, repeat=True), [look]).invoke({"messages": "hi"})


def tripped_gate() -> None:
    model = ScriptedModel(ai("", tool_call("look", {})))
    create_agent(model, [look], middleware=[Gates(StepBudget(1), on_trip="raise")]).invoke({"messages": "hi"})


def nested_pause() -> None:
    @tool
    def ask() -> str:
        """Ask a person."""
        return str(interrupt("?"))

    inner = create_agent(ScriptedModel(ai("", tool_call("ask"))), [ask], checkpointer=InMemorySaver(), name="helper")

    @tool
    def delegate() -> str:
        """Delegate."""
        return str(inner.invoke({"messages": "do it"}, {"configurable": {"thread_id": "own"}})["messages"])

    outer = create_agent(ScriptedModel(ai("", tool_call("delegate"))), [delegate], checkpointer=InMemorySaver())
    outer.invoke({"messages": "hi"}, thread("t"))


def unknown_tool() -> None:
    def wrap_model_call(self: Any, request: Any) -> Any:
        return (yield request.override(tools=[look]))

    create_agent(ScriptedModel("x"), middleware=[named("Guard", wrap_model_call=wrap_model_call)()]).invoke(
        {"messages": "hi"}
    )


def invalid_contract() -> None:
    contracted("look", description="Look.", timeout=0)


def unknown_state_field() -> None:
    find = contracted("find", description="Find.", writes={"order_id": "id"})(lambda x: {})
    create_agent(ScriptedModel("x"), [find])


def unknown_shown_field() -> None:
    create_agent(ScriptedModel("x"), middleware=[Facts(["ordr_id"])])


def unknown_tool_name() -> None:
    create_agent(ScriptedModel("x"), [look], middleware=[Approval("lok")])


def unknown_counted_tool() -> None:
    create_agent(ScriptedModel("x"), [look], middleware=[Gates(ToolCallBudget(3, tool="lok") | StepBudget(9))])


def unknown_provider() -> None:
    create_agent("opnai:gpt-5.5")


def one_tool_for_a_list() -> None:
    create_agent(ScriptedModel("x"), look)  # type: ignore[arg-type]  # the mistake


def one_middleware_for_a_list() -> None:
    create_agent(ScriptedModel("x"), middleware=Gates())


def tool_without_a_docstring() -> None:
    def find(x: int) -> str:
        return str(x)

    create_agent(ScriptedModel("x"), [find])


def approval_of_a_function() -> None:
    Approval(look)  # type: ignore[arg-type]  # the mistake


def approval_of_letters() -> None:
    standard(approve="look")


def fallbacks_of_letters() -> None:
    ModelRetry(fallbacks="openai:gpt-5.5")


def budget_of_a_text() -> None:
    StepBudget("10")  # type: ignore[arg-type]  # the mistake


def failures_of_nothing() -> None:
    ConsecutiveFailures(3, of="each")  # type: ignore[arg-type]  # the mistake


def decided(decision: Any, *rules: ApprovalRule, saver: Any = True) -> None:
    """An agent that asks before it looks, and is answered like this."""
    model = ScriptedModel(ai("", tool_call("look", {"x": 1}, "c1")), "done")
    saver = InMemorySaver() if saver else None
    agent = create_agent(model, [look], middleware=[Approval(*(rules or ("look",)))], checkpointer=saver)
    agent.invoke({"messages": "hi"}, thread("t"))
    agent.invoke(Command(resume=decision), thread("t"))


def missing_tool_form() -> None:
    async def look() -> str:
        """Look."""
        return "seen"

    create_agent(ScriptedModel(ai("", tool_call("look"))), [look]).invoke({"messages": "hi"})


def missing_thread() -> None:
    create_agent(ScriptedModel(ai("hi")), checkpointer=InMemorySaver(), name="shop").invoke({"messages": "hi"})


def missing_checkpointer() -> None:
    decided(None, saver=False)


def unknown_decision() -> None:
    decided({"type": "maybe", "tool_call_id": "c1"})


def incomplete_decision() -> None:
    decided({"type": "respond", "tool_call_id": "c1"})


def wrong_call() -> None:
    decided({"type": "approve", "tool_call_id": "c2"})


def invalid_edit() -> None:
    decided({"type": "edit", "tool_call_id": "c1", "edited_action": {"args": {"x": "much"}}})


def not_entitled() -> None:
    decided({"type": "approve", "tool_call_id": "c1", "by": "dan"}, ApprovalRule(among=["ann"]))


def missing_dependency() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "structlog", None)
        RunLog()


def unreadable_trace() -> None:
    read(Path("pyproject.toml"))


def cannot_join() -> None:
    barrier(StateGraph(AgentState), ["a"], "b")


def no_graph() -> None:
    check(create_agent)


def unknown_rule() -> None:
    check(create_agent(ScriptedModel("x")), ignore=["AK000"])


def recorded(body: Any, *, url: str = "memory:", **options: Any) -> Any:
    """An agent that records its writing calls, and the ledger that its tool may use."""
    with Ledger(url) as ledger:
        pay = contracted("pay", description="Pay.")(lambda: body(ledger))
        model = ScriptedModel(ai("", tool_call("pay")), ai("", tool_call("pay")), "done")
        guard = EffectLedger(ledger, **options)
        create_agent(model, [pay], middleware=[guard]).invoke({"messages": "hi"})


def ledger_unavailable() -> None:
    recorded(lambda ledger: "paid", url="sqlite:////no/such/folder/ledger.db")


def effect_superseded() -> None:
    def frozen(ledger: Ledger) -> str:
        (found,) = ledger.in_doubt(started_before=timedelta(0))
        ledger.settle(found.key, Settlement("not_done"))  # while it is going on
        ledger.claim(Call(key=found.key, call_key="another", thread_id=None, call_id="c", tool="pay", args={}))
        return "paid"

    recorded(frozen)


def not_journaled() -> None:
    with Ledger("memory:") as ledger, ledger.transaction():
        pass


def unrecordable_result() -> None:
    recorded(lambda ledger: ToolMessage("paid", tool_call_id="c1", artifact=object()))


def unknown_effect() -> None:
    with Ledger("memory:") as ledger:
        ledger.settle("o-17", Settlement("done"))


def invalid_settlement() -> None:
    Settlement("perhaps")  # type: ignore[arg-type]  # the mistake


# The mistake, its class, the nearest standard class, and words that the message must hold: where, and how to mend it.


def invalid_store_url() -> None:
    checkpoint.open("mysql://me:hunter2@host/db")


def missing_dependency_of_a_store() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "langgraph.checkpoint.sqlite", None)
        checkpoint.open("sqlite:///agent.db")


def store_unreachable() -> None:
    checkpoint.open("sqlite:////no/such/folder/agent.db")


def _stored(pragma: str, value: Any = "x") -> None:
    """Store something in a thread of a file on which something is wrong."""
    with checkpoint.open("memory:") as saver:
        saver.conn.execute(pragma)  # type: ignore[attr-defined]
        create_agent(ScriptedModel(value), checkpointer=saver).invoke({"messages": "hi"}, thread("t"))


def store_read_only() -> None:
    _stored("PRAGMA query_only = ON")


def store_full() -> None:
    _stored("PRAGMA max_page_count = 20", "long " * 10_000)


def unstorable_value() -> None:
    class State(AgentState[Any], total=False):
        price: Any

    with checkpoint.open("memory:") as saver:
        agent = create_agent(ScriptedModel("x"), state_schema=State, checkpointer=saver)
        agent.invoke({"messages": "hi", "price": {"of": [1j]}}, thread("t"))


def unreadable_value() -> None:
    class State(AgentState[Any], total=False):
        answers: Any

    with checkpoint.open("memory:", types=[Price]) as saver:
        agent = create_agent(ScriptedModel("x"), state_schema=State, checkpointer=saver)
        agent.invoke({"messages": "hi", "answers": [Price(euros=1)]}, thread("t"))
        saver.serde = type(saver.serde)()
        agent.get_state(thread("t"))


def invalid_turn() -> None:
    run_turn(create_agent(ScriptedModel("x")), "t", "m1", "hi")


def unknown_interrupt() -> None:
    decide(create_agent(ScriptedModel("x"), checkpointer=InMemorySaver()), "t", "q1", True)


def thread_busy() -> None:
    with checkpoint.open("memory:") as saver:
        saver.leases.take("t", "worker 1")
        saver.leases.take("t", "worker 2")


def lease_lost() -> None:
    with checkpoint.open("memory:") as saver:
        lost = saver.leases.take("t", "worker 1", ttl=0)
        saver.leases.take("t", "worker 2")
        saver.leases.renew(lost)


def _forked(checkpoint_id: str, new: str) -> None:
    with checkpoint.open("memory:") as saver:
        agent = create_agent(ScriptedModel("x"), checkpointer=saver)
        agent.invoke({"messages": "hi"}, thread("t"))
        checkpoint.fork(agent, "t", checkpoint_id, new)


def thread_exists() -> None:
    _forked("any", "t")


def unknown_checkpoint() -> None:
    _forked("1ef", "new")


MISTAKES: list[tuple[Callable[[], None], str, type, list[str]]] = [
    (cannot_join, "CannotJoin", ValueError, ["'a'", "'b'", "not a node that leads there", "AK101"]),
    (no_graph, "NoGraph", TypeError, ["function", "StateGraph", "not the function that makes it"]),
    (unknown_rule, "UnknownRule", ValueError, ["'AK000'", "AK101"]),
    (invalid_contract, "InvalidContract", ValueError, ["timeout=0", "a number of seconds above 0"]),
    (unknown_state_field, "UnknownStateField", ValueError, ["'find'", "'order_id'", "state_schema", "`writes`"]),
    (unknown_shown_field, "UnknownStateField", ValueError, ["Facts", "'ordr_id'", "state_schema"]),
    (unknown_tool_name, "UnknownToolName", ValueError, ["Approval", "'lok'", "There are: look", "Correct the name"]),
    (unknown_counted_tool, "UnknownToolName", ValueError, ["Gates", "'lok'", "There are: look"]),
    (unknown_provider, "ConfigurationError", ValueError, ["model='opnai:gpt-5.5'", "provider", "'openai:gpt-5.5'"]),
    (one_tool_for_a_list, "ConfigurationError", ValueError, ["`tools` is a list", "look", "brackets"]),
    (one_middleware_for_a_list, "ConfigurationError", ValueError, ["`middleware` is a list", "Gates", "brackets"]),
    (tool_without_a_docstring, "ConfigurationError", ValueError, ["'find'", "`tools`", "docstring"]),
    (approval_of_a_function, "ConfigurationError", ValueError, ["Approval", "'refund'", "name='look'"]),
    (approval_of_letters, "ConfigurationError", ValueError, ["standard", "approve=['look']"]),
    (fallbacks_of_letters, "ConfigurationError", ValueError, ["ModelRetry", "fallbacks=['openai:gpt-5.5']"]),
    (budget_of_a_text, "ConfigurationError", ValueError, ["StepBudget", "a number", "'10'"]),
    (failures_of_nothing, "ConfigurationError", ValueError, ["ConsecutiveFailures", "'each'"]),
    (duplicate_tool, "DuplicateTool", ValueError, ["'look'", "`tools`", "rename"]),
    (duplicate_middleware, "DuplicateMiddleware", ValueError, ["Guard", "second instance"]),
    (no_middleware, "ConfigurationError", ValueError, ["middleware[0]", "Guard", "instance"]),
    (invalid_hook, "InvalidHook", ValueError, ["Guard.before_model", "`abefore_model`"]),
    (placement_conflict, "PlacementConflict", ValueError, ["Guard", "Watch", "outermost", "`Placement`"]),
    (reserved_field, "ReservedField", ValueError, ["'exit'", "Mine", "state_schema", "rename"]),
    (unknown_tool, "ConfigurationError", ValueError, ["look", "Registered tools", "wrap_tool_call"]),
    (
        undeclared_jump,
        "UndeclaredJump",
        RuntimeError,
        ["Guard.before_model", "'end'", "@hook_config(can_jump_to=['end'])"],
    ),
    (jump_to_missing_tools, "UndeclaredJump", RuntimeError, ["Guard.before_model", "'tools'", "no tools"]),
    (missing_hook_form, "MissingHookForm", NotImplementedError, ["Guard.before_model", "invoke/stream", "ainvoke"]),
    (unused_decision, "UnusedDecision", RuntimeError, ["Guard.after_model", "did not ask again", "same answer"]),
    (forgotten_pause, "ForgottenPause", RuntimeError, ["Guard.after_model", "did not pause", "same answer"]),
    (broken_protocol, "HookError", RuntimeError, ["Guard.wrap_model_call", "NoneType", "ModelResponse"]),
    (missing_structured_output, "MissingStructuredOutput", Exception, ["3 tries", "`Limits.structured_retries`"]),
    (truncated_reply, "TruncatedReply", ConnectionError, ["3 times", "broke off", "retry"]),
    (nested_pause, "NestedPause", RuntimeError, ["'helper'", "thread of its own", "without a thread id"]),
    (missing_tool_form, "MissingToolForm", NotImplementedError, ["`look`", "no sync form", "`ainvoke`"]),
    (missing_thread, "MissingThread", ValueError, ["'shop'", 'thread("some-id")']),
    (missing_checkpointer, "MissingCheckpointer", RuntimeError, ["Approval has to pause", "Pass `checkpointer=`"]),
    (unknown_decision, "UnknownDecision", ValueError, ["'c1'", "'maybe'", "approve, edit, reject, respond"]),
    (incomplete_decision, "IncompleteDecision", ValueError, ["'c1'", "`respond` needs a `message`"]),
    (wrong_call, "WrongCall", ValueError, ["'c1'", "for call 'c2'", "Decide on the call"]),
    (invalid_edit, "InvalidEdit", ValueError, ["'c1'", "`look`", "x:", "integer"]),
    (not_entitled, "NotEntitled", ValueError, ["'c1'", "'dan' may not decide", "ann may"]),
    (unreadable_reply, "UnreadableReply", ValueError, ["3 times", "could not be read", "schemas"]),
    (missing_dependency, "MissingDependency", ImportError, ["RunLog", "structlog", "pip install 'agentkit[otel]'"]),
    (unreadable_trace, "UnreadableTrace", ValueError, ["pyproject.toml", "line 1 is no span", "FileExporter"]),
    (
        ledger_unavailable,
        "LedgerUnavailable",
        RuntimeError,
        ["/no/such/folder/ledger.db", "record the call", "OperationalError", "not executed", "resume"],
    ),
    (effect_superseded, "EffectSuperseded", RuntimeError, ["`pay`", "double effect", "Settle"]),
    (not_journaled, "NotJournaled", RuntimeError, ["no call is being recorded", "inside of a tool", "`EffectLedger`"]),
    (unrecordable_result, "UnrecordableResult", TypeError, ["`pay`", "it.artifact", "object", "plain data"]),
    (unknown_effect, "UnknownEffect", LookupError, ["'o-17'", "Ledger.in_doubt"]),
    (invalid_settlement, "InvalidSettlement", ValueError, ["'perhaps'", "'done', 'not_done' or 'unknown'"]),
    (tripped_gate, "GateTripped", RuntimeError, ["Gates.after_model", "step_budget", "`on_trip`"]),
    (invalid_store_url, "InvalidStoreUrl", ValueError, ["mysql:***@host/db", "sqlite:///agent.db"]),
    (
        missing_dependency_of_a_store,
        "MissingDependency",
        ImportError,
        ["langgraph-checkpoint-sqlite", "pip install 'agentkit[sqlite]'"],
    ),
    (store_unreachable, "StoreUnreachable", ConnectionError, ["/no/such/folder/agent.db", "its folder must exist"]),
    (store_read_only, "StoreReadOnly", PermissionError, ["memory:", "readonly", "open another store"]),
    (store_full, "StoreFull", OSError, ["memory:", "is full", "Make room", "invoke(None"]),
    (unstorable_value, "UnstorableValue", TypeError, ["price['of'][0]", "complex", "plain data"]),
    (unreadable_value, "UnreadableValue", ValueError, ["answers[0]", "test_core_errors.Price", "`types`", "aliases="]),
    (invalid_turn, "InvalidTurn", ValueError, ["no checkpointer", "`checkpointer=`"]),
    (unknown_interrupt, "UnknownInterrupt", LookupError, ["'q1'", "withdrawn", "Nothing was executed"]),
    (thread_busy, "ThreadBusy", RuntimeError, ["'t' is held by 'worker 1'", "wait"]),
    (lease_lost, "LeaseLost", RuntimeError, ["'t' was taken over", "nothing was written", "Stop working"]),
    (thread_exists, "ThreadExists", ValueError, ["'t'", "choose another id"]),
    (unknown_checkpoint, "UnknownCheckpoint", LookupError, ["'t'", "'1ef'", "agentkit.checkpoint.history"]),
]


@pytest.mark.parametrize(
    ("mistake", "name", "standard", "words"), MISTAKES, ids=[mistake[0].__name__ for mistake in MISTAKES]
)
def test_a_mistake_is_told_by_name(mistake: Any, name: str, standard: type[Exception], words: list[str]) -> None:
    with pytest.raises(AgentkitError) as caught:
        mistake()
    assert type(caught.value).__name__ == name
    assert isinstance(caught.value, standard)
    text = str(caught.value)
    assert [word for word in words if word not in text] == [], text


def test_every_error_has_its_mistake() -> None:
    classes = {name for name in errors.__all__ if issubclass(getattr(errors, name), AgentkitError)}
    told = {"InvalidArguments", "ToolTimeout"}  # the model hears of them, the caller does not
    assert classes - {"AgentkitError", "InvalidDecision", "LedgerError"} - told == {name for _, name, _, _ in MISTAKES}


def test_every_error_is_explained_and_its_parts_are_attributes() -> None:
    for name in errors.__all__:
        found = getattr(errors, name)
        assert inspect.getdoc(found)
        documented = [
            line.split(":")[0].strip()
            for line in (inspect.getdoc(found) or "").partition("Attributes:")[2].splitlines()
            if line.startswith("    ") and ":" in line
        ]
        if "__init__" in vars(found) and documented:
            parameters: dict[str, Any] = {p: "x" for p in list(inspect.signature(found).parameters)}
            parameters |= {"seconds": 1.0} if "seconds" in parameters else {}
            made = found(
                **{p: ("x", "y") if p in ("names", "allowed", "declared") else v for p, v in parameters.items()}
            )
            assert [attribute for attribute in documented if not hasattr(made, attribute)] == []


@pytest.mark.parametrize(
    ("phase", "body", "told"),
    [
        ("before_model", "async def hook(self, state, runtime): ...", "async function; name it `abefore_model`"),
        (
            "wrap_model_call",
            "async def hook(self, request, handler): ...",
            "async function; name it `awrap_model_call`",
        ),
        ("abefore_model", "def hook(self, state, runtime): ...", "not an async function"),
        ("after_agent", "def hook(self, state, runtime): yield", "is a generator"),
    ],
)
def test_a_hook_that_cannot_work_is_refused_when_the_agent_is_built(phase: str, body: str, told: str) -> None:
    space: dict[str, Any] = {}
    exec(body, space)
    guard = type("Guard", (AgentMiddleware,), {phase: space["hook"]})()
    with pytest.raises(InvalidHook, match=rf"Guard\.{phase} .*{told}") as caught:
        create_agent(ScriptedModel("x"), middleware=[guard])
    assert (caught.value.middleware, caught.value.hook) == ("Guard", phase)


def test_a_jump_that_does_not_exist_is_refused_when_the_agent_is_built() -> None:
    hook: Any = hook_config(can_jump_to=["finish"])(_hook(None))  # type: ignore[list-item]
    with pytest.raises(InvalidHook, match=r"Guard\.before_model declares a jump to 'finish'.*'end'"):
        create_agent(ScriptedModel("x"), middleware=[named("Guard", before_model=hook)()])


async def test_a_wrap_without_the_form_that_is_needed_is_never_skipped() -> None:
    ran: list[int] = []

    @tool
    def act(x: int) -> str:
        """Act."""
        ran.append(x)
        return "done"

    @wrap_tool_call
    def guard(request: Any, handler: Any) -> Any:
        return handler(request)

    agent = create_agent(ScriptedModel(ai("", tool_call("act", {"x": 1}))), [act], middleware=[guard])
    with pytest.raises(MissingHookForm, match=r"guard\.awrap_tool_call is not written, and ainvoke"):
        await agent.ainvoke({"messages": "hi"})
    assert ran == []


def test_a_warning_is_no_error() -> None:
    assert issubclass(ConfigurationWarning, UserWarning)
    assert not issubclass(ConfigurationWarning, AgentkitError)
