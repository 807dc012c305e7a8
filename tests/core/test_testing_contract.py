"""The middleware contract: it passes for well-behaved middleware and fails for each planted fault."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from typing import Any, ClassVar, NotRequired, cast

import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.config import get_config

from agentkit.testing import MiddlewareContract, ai, tool_call

pytest_plugins = ["pytester"]

# ---------------------------------------------------------------- well-behaved middleware


class TestToolCallLimit(MiddlewareContract):
    def make(self) -> Any:
        return ToolCallLimitMiddleware(tool_name="lookup", run_limit=1)


class TestModelRetry(MiddlewareContract):
    handles_model_errors = True

    def make(self) -> Any:
        return ModelRetryMiddleware(max_retries=1, initial_delay=0)


class TestToolRetry(MiddlewareContract):
    handles_tool_errors = True

    def make(self) -> Any:
        return ToolRetryMiddleware(max_retries=1, initial_delay=0)


class TestPII(MiddlewareContract):
    prompt = "I am jo@example.com"

    def make(self) -> Any:
        return PIIMiddleware("email", strategy="redact", apply_to_output=True, apply_to_tool_results=True)


class TestContextEditing(MiddlewareContract):
    def make(self) -> Any:
        return ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=1)])


class TestApproval(MiddlewareContract):
    def make(self) -> Any:
        return HumanInTheLoopMiddleware({"settle": True})

    def resolve(self, interrupts: Any) -> Any:
        return {"decisions": [{"type": "approve"} for _ in interrupts[0].value["action_requests"]]}


class TestTodoList(MiddlewareContract):
    exempt: ClassVar = {"test_two_instances_in_one_agent": "its tool has a fixed name, so one agent can have one"}

    def make(self) -> Any:
        return TodoListMiddleware()


# ---------------------------------------------------------------- planted faults


class Wraps(AgentMiddleware[Any, Any, Any]):
    """Both forms of both wraps, doing nothing."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


class OnlySyncIsGuarded(Wraps):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(system_message=SystemMessage("Be careful.")))


class NoAsyncForm(AgentMiddleware[Any, Any, Any]):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request)


class AlwaysRaises(AgentMiddleware[Any, Any, Any]):
    """The same on all paths, but never a result."""

    def before_model(self, state: Any, runtime: Any) -> Any:
        raise LookupError("no such thing")


class KnowsThatItStreams(AgentMiddleware[Any, Any, Any]):
    def before_agent(self, state: Any, runtime: Any) -> Any:
        listeners = cast("BaseCallbackManager", get_config()["callbacks"]).handlers
        return {"messages": [SystemMessage("live")]} if any("Stream" in type(x).__name__ for x in listeners) else None


class SwallowsInModel(Wraps):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception as error:
            return AIMessage(f"sorry: {error}")

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except Exception as error:
            return AIMessage(f"sorry: {error}")


class SwallowsInTool(Wraps):
    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception as error:
            return ToolMessage(f"sorry: {error}", tool_call_id=request.tool_call["id"])

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except Exception as error:
            return ToolMessage(f"sorry: {error}", tool_call_id=request.tool_call["id"])


class RetriesThePauseOfAModel(Wraps):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception:
            return handler(request)


class RetriesThePauseOfATool(Wraps):
    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception:
            return handler(request)


class RenamesErrors(Wraps):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except RuntimeError as error:
            raise ValueError("something went wrong") from error


class ChangesMessagesInPlace(Wraps):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        request.messages.append(HumanMessage("hurry"))
        return handler(request)


class ChangesTheCallInPlace(Wraps):
    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        request.tool_call["args"].update({k: 5 for k in request.tool_call["args"] if k == "amount"})
        return handler(request)


class ChangesTheStateInPlace(AgentMiddleware[Any, Any, Any]):
    def before_model(self, state: Any, runtime: Any) -> None:
        state["messages"][-1].additional_kwargs["seen"] = True


class AsyncChangesTheStateInPlace(AgentMiddleware[Any, Any, Any]):
    async def abefore_model(self, state: Any, runtime: Any) -> None:
        state["messages"][-1].additional_kwargs["seen"] = True


class AddsMoreEachTime(Wraps):
    """Its addition grows with each call of the wrap, so a retry sends another request."""

    def __init__(self) -> None:
        super().__init__()
        self.note = ""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self.note += "!"
        return handler(request.override(system_message=SystemMessage(self.note)))


class AnswersTheSecondCallItself(Wraps):
    """Remembers which call it has seen and refuses it the second time."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        id = request.tool_call["id"]
        if id in self.seen:
            return ToolMessage("seen already", tool_call_id=id)
        self.seen.add(id)
        return handler(request)


class CountsOnItself(AgentMiddleware[Any, Any, Any]):
    """Says which run this is, counted on the object."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    def before_agent(self, state: Any, runtime: Any) -> Any:
        self.runs += 1
        return {"messages": [SystemMessage(f"run {self.runs}")]}


class RemembersTheUser(Wraps):
    """Keeps the prompt on itself between two hooks: right when alone, wrong when runs overlap."""

    prompt = ""

    def before_model(self, state: Any, runtime: Any) -> None:
        self.prompt = next(m.text for m in state["messages"] if m.type == "human")

    def after_model(self, state: Any, runtime: Any) -> Any:
        return {"messages": [SystemMessage(f"asked: {self.prompt}")]} if not state["messages"][-1].tool_calls else None


class Colour:
    class Shade(enum.Enum):
        DARK = "dark"


class ShadeState(AgentState[Any]):
    shade: NotRequired[Any]


class StoresWhatComesBackOtherwise(AgentMiddleware[Any, Any, Any]):
    state_schema = ShadeState

    def before_agent(self, state: Any, runtime: Any) -> Any:
        return {"shade": Colour.Shade.DARK}


class StoresWhatCannotBeStored(AgentMiddleware[Any, Any, Any]):
    state_schema = ShadeState

    def before_agent(self, state: Any, runtime: Any) -> Any:
        return {"shade": time.sleep}


class ForgetsAtARestart(AgentMiddleware[Any, Any, Any]):
    """Its per-thread memory lives in the object, not in the state."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: dict[str, int] = {}

    def before_agent(self, state: Any, runtime: Any) -> Any:
        thread = str(state["messages"][0].id)
        self.threads[thread] = self.threads.get(thread, 0) + 1
        return {"messages": [SystemMessage(f"turn {self.threads[thread]}")]}


class ForgetsDuringAPause(Wraps):
    """Puts its remark into the result only if it saw the turn begin."""

    began = False

    def before_agent(self, state: Any, runtime: Any) -> None:
        self.began = True

    def after_agent(self, state: Any, runtime: Any) -> Any:
        return {"messages": [SystemMessage("from the start" if self.began else "half-way")]}


class ClassWideLock(Wraps):
    """A flag of the class, not of the object: the second instance finds it set."""

    busy: ClassVar[bool] = False

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        if ClassWideLock.busy:
            raise RuntimeError("already running")
        ClassWideLock.busy = True
        try:
            return handler(request)
        finally:
            ClassWideLock.busy = False


class LeavesACallOpen(AgentMiddleware[Any, Any, Any]):
    """Puts a message between a call and its result."""

    def after_model(self, state: Any, runtime: Any) -> Any:
        return {"messages": [HumanMessage("by the way")]} if state["messages"][-1].tool_calls else None


def contract(middleware: Callable[[], Any]) -> MiddlewareContract:
    class Contract(MiddlewareContract):
        def make(self) -> Any:
            return middleware()

    return Contract()


FAULTS = [
    ("test_sync_equals_async", OnlySyncIsGuarded, "ainvoke against invoke"),
    ("test_sync_equals_async", NoAsyncForm, "ainvoke raises NotImplementedError"),
    ("test_sync_equals_async", AlwaysRaises, "invoke raises LookupError"),
    ("test_stream_equals_invoke", KnowsThatItStreams, "stream against invoke"),
    ("test_a_pause_of_the_model_passes", SwallowsInModel, "did not come through"),
    ("test_a_pause_of_the_model_passes", RetriesThePauseOfAModel, "2 attempts before the pause"),
    ("test_a_pause_of_a_tool_passes", SwallowsInTool, "did not come through"),
    ("test_a_pause_of_a_tool_passes", RetriesThePauseOfATool, "2 attempts before the pause"),
    ("test_model_errors_pass_out", SwallowsInModel, "instead of Boom"),
    ("test_model_errors_pass_out", RenamesErrors, "instead of Boom"),
    ("test_tool_errors_pass_out", SwallowsInTool, "instead of Boom"),
    ("test_inputs_are_not_mutated", ChangesMessagesInPlace, "changed `messages` in place"),
    ("test_inputs_are_not_mutated", ChangesTheCallInPlace, "changed `tool_call` in place"),
    ("test_inputs_are_not_mutated", ChangesTheStateInPlace, "before_model changed `messages` in place"),
    ("test_inputs_are_not_mutated", AsyncChangesTheStateInPlace, "abefore_model changed `messages` in place"),
    ("test_the_handler_may_be_called_twice", AddsMoreEachTime, "the retry sent"),
    ("test_the_handler_may_be_called_twice", AnswersTheSecondCallItself, "the second tool call gave"),
    ("test_nothing_per_run_is_kept", CountsOnItself, "a run after another"),
    ("test_nothing_per_run_is_kept", RemembersTheUser, "beside another"),
    ("test_two_instances_in_one_agent", ClassWideLock, "two instances raise"),
    ("test_requests_are_well_formed", LeavesACallOpen, "has no result"),
]


@pytest.mark.parametrize(("check", "fault", "says"), FAULTS, ids=[f"{c[5:]}-{f.__name__}" for c, f, _ in FAULTS])
def test_each_check_catches_its_fault(check: str, fault: Any, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        getattr(contract(fault), check)(langchain_create_agent)


RESTART_FAULTS = [
    ("test_state_survives_a_restart", StoresWhatComesBackOtherwise, "state field 'shade' was"),
    ("test_state_survives_a_restart", StoresWhatCannotBeStored, "the run raises"),
    ("test_state_survives_a_restart", ForgetsAtARestart, "the turn after a restart"),
    ("test_a_pause_survives_a_restart", ForgetsDuringAPause, "the run resumed after a restart"),
]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize(
    ("check", "fault", "says"), RESTART_FAULTS, ids=[f"{c[5:]}-{f.__name__}" for c, f, _ in RESTART_FAULTS]
)
def test_each_restart_check_catches_its_fault(check: str, fault: Any, says: str, store: str) -> None:
    with pytest.raises(AssertionError, match=says):
        getattr(contract(fault), check)(langchain_create_agent, store)


def test_every_check_has_a_fault_that_it_catches() -> None:
    checks = {name for name in dir(MiddlewareContract) if name.startswith("test_")}
    assert {check for check, _, _ in [*FAULTS, *RESTART_FAULTS]} == checks


def test_a_middleware_said_to_handle_errors_must_do_so() -> None:
    class Contract(MiddlewareContract):
        handles_model_errors = True
        handles_tool_errors = True

        def make(self) -> Any:
            return Wraps()

    for check in (Contract().test_model_errors_pass_out, Contract().test_tool_errors_pass_out):
        with pytest.raises(AssertionError, match="is to be handled, but left the run"):
            check(langchain_create_agent)


def test_an_exception_that_is_meant_to_end_the_run_may_do_so() -> None:
    class Contract(MiddlewareContract):
        raises = LookupError

        def make(self) -> Any:
            return AlwaysRaises()

    Contract().test_sync_equals_async(langchain_create_agent)


def test_make_must_be_written() -> None:
    with pytest.raises(NotImplementedError, match="needs a method `make`"):
        MiddlewareContract().test_sync_equals_async(langchain_create_agent)


def test_an_unexpected_pause_is_named() -> None:
    faulty = contract(lambda: HumanInTheLoopMiddleware({"settle": True}))
    with pytest.raises(AssertionError, match="Answer it in `resolve`"):
        faulty.test_sync_equals_async(langchain_create_agent)


def test_the_script_can_be_changed() -> None:
    class Contract(MiddlewareContract):
        def make(self) -> Any:
            return Wraps()

        def answer(self, request: Any) -> Any:
            return "done" if request.turn else ai("", tool_call("settle", {"amount": 1}))

    Contract().test_the_handler_may_be_called_twice(langchain_create_agent)
    Contract().test_nothing_per_run_is_kept(langchain_create_agent)


def test_users_run_it_by_subclassing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_mine="""
        from langchain.agents.middleware import AgentMiddleware
        from agentkit.testing import MiddlewareContract

        class Broken(AgentMiddleware):
            def wrap_model_call(self, request, handler):
                return handler(request)

        class TestBroken(MiddlewareContract):
            def make(self):
                return Broken()

        class TestMistaken(MiddlewareContract):
            exempt = {"test_nothing": "no such check"}

            def make(self):
                return AgentMiddleware()

        class TestNothing(MiddlewareContract):
            exempt = {"test_nothing_per_run_is_kept": "just so"}

            def make(self):
                return AgentMiddleware()
        """
    )
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-k", "sync_equals or kept")
    for factory in ("agentkit", "langchain"):
        result.stdout.fnmatch_lines([f"*FAILED*TestBroken::test_sync_equals_async?{factory}?*"])
    result.stdout.no_fnmatch_line("*FAILED*TestNothing*")
    result.stdout.fnmatch_lines(["*`exempt` names checks that do not exist: ?'test_nothing'?*"])
    result.assert_outcomes(failed=2, passed=4, skipped=2, errors=4)
