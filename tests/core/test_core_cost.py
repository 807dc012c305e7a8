"""What a run costs in things that can be counted: checkpoints, bytes, steps, bound models. Never in time."""

from __future__ import annotations

import gc
import sys
import weakref
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NotRequired

import langsmith
import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from langsmith import tracing_context

from agentkit import create_agent, thread
from agentkit.testing import ScriptedModel, ai, tool_call

granularities = pytest.mark.parametrize("granularity", ["hook", "turn"])


class Hooks(AgentMiddleware[Any, Any, Any]):
    """Two hooks that do nothing."""

    def before_model(self, state: Any, runtime: Any) -> None: ...

    def after_model(self, state: Any, runtime: Any) -> None: ...


def hooks(number: int) -> list[Any]:
    return [type(f"Hooks{index}", (Hooks,), {})() for index in range(number)]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def answer(request: Any) -> Any:
    return "Three." if request.messages[-1].type == "tool" else ai("", tool_call("add", {"a": 1, "b": 2}))


@cache
def stored_after(turns: int, factory: Any = create_agent, **more: Any) -> int:
    """Bytes that a thread takes after that many user turns, each with a tool call."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        model = ScriptedModel(answer, repeat=True)
        agent = factory(model, [add], middleware=hooks(1), checkpointer=saver, **more)
        for _ in range(turns):
            agent.invoke({"messages": "What is 1 + 2?"}, thread("t"))
        (checkpoints,) = saver.conn.execute("select sum(length(checkpoint)) from checkpoints").fetchone()
        (writes,) = saver.conn.execute("select sum(length(value)) from writes").fetchone()
        return int(checkpoints + writes)


@granularities
def test_a_threads_size_grows_with_its_length(granularity: Any) -> None:
    assert stored_after(40, granularity=granularity) < 2.3 * stored_after(20, granularity=granularity)


def test_stored_whole_it_grows_with_the_square_as_under_langchain() -> None:
    ours = stored_after(40, message_storage="full")
    assert ours > 2.8 * stored_after(20, message_storage="full")
    assert ours < 1.2 * stored_after(40, langchain_create_agent)


APPLIED: list[int] = []


def counted(old: int, new: int) -> int:
    APPLIED.append(new)
    return old + new


class Counted(AgentState[Any]):
    total: NotRequired[Annotated[int, counted]]


def test_a_hook_in_line_does_not_read_the_state_again() -> None:
    """LangGraph applies a node's writes to a copy of the state for each edge that has to choose."""
    APPLIED.clear()

    class Adds(AgentMiddleware[Any, Any, Any]):
        state_schema = Counted

        @hook_config(can_jump_to=["end"])
        def before_model(self, state: Any, runtime: Any) -> Any:
            return {"total": 1}

        def after_model(self, state: Any, runtime: Any) -> Any:
            return {"total": 10}

    class Last(AgentMiddleware[Any, Any, Any]):  # runs before the others; the last hook of the line chooses
        def after_model(self, state: Any, runtime: Any) -> None: ...

    agent = create_agent(ScriptedModel("x"), [add], middleware=[Last(), Adds()])
    assert agent.invoke({"messages": "hi"})["total"] == 11
    assert APPLIED == [1, 10]


def test_the_edges_that_choose_do_not_apply_again_what_was_written() -> None:
    """After the last hook, and after the tools, the run goes where the messages say; other fields are left alone."""
    APPLIED.clear()

    class Adds(AgentMiddleware[Any, Any, Any]):
        state_schema = Counted

        def after_model(self, state: Any, runtime: Any) -> Any:
            return {"total": 1}

    def spend(amount: int) -> Command[Any]:
        """Spend."""
        results = [ToolMessage("spent", tool_call_id="c", name="spend")]
        return Command(update={"total": amount, "messages": results})

    model = ScriptedModel(ai("", tool_call("spend", {"amount": 10}, "c")), "Done.")
    agent = create_agent(model, [spend], middleware=[Adds()])
    assert agent.invoke({"messages": "hi"})["total"] == 12
    assert APPLIED == [1, 10, 1]


LANGSMITH = str(Path(langsmith.__file__).parent)


class Wraps(Hooks):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request)


def asked_of_langsmith(granularity: Any, middleware: list[Any]) -> set[str]:
    """The functions of LangSmith that a run calls while tracing is off."""
    called: set[str] = set()

    def look(frame: Any, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(LANGSMITH):
            called.add(frame.f_code.co_name)

    agent = create_agent(turns(3), [add], middleware=middleware, granularity=granularity)
    with tracing_context(enabled=False):
        sys.setprofile(look)
        try:
            agent.invoke({"messages": "hi"})
        finally:
            sys.setprofile(None)
    return called


@granularities
def test_without_tracing_nothing_of_it_is_paid(granularity: Any) -> None:
    """Beyond the question whether it is on, no hook, wrap or tool has anything done by LangSmith."""
    own = asked_of_langsmith(granularity, [Wraps()]) - asked_of_langsmith(granularity, [])
    assert own <= {"tracing_is_enabled", "get_tracing_context", "get_current_run_tree"}


@pytest.mark.parametrize(("jump", "following"), [("end", ()), ("model", ("Jumps.before_model",)), (None, ("model",))])
def test_an_update_from_outside_jumps_as_a_hook_does(jump: Any, following: tuple[str, ...]) -> None:
    class Jumps(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["end", "model"])
        def before_model(self, state: Any, runtime: Any) -> None: ...

    agent = create_agent(ScriptedModel("x"), [add], middleware=[Jumps()], checkpointer=InMemorySaver())
    agent.invoke({"messages": "hi"}, thread("t"))
    agent.update_state(thread("t"), {"jump_to": jump}, as_node="Jumps.before_model")
    assert agent.get_state(thread("t")).next == following


class Binds(ScriptedModel):
    """Counts how often tools are bound to it."""

    def __init__(self, *script: Any, **more: Any) -> None:
        super().__init__(*script, **more)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        BOUND.append([tool if isinstance(tool, dict) else (tool.name, tool.description) for tool in tools])
        return super().bind_tools(tools, **kwargs)


BOUND: list[Any] = []


class Changes(AgentMiddleware[Any, Any, Any]):
    """Changes each request in one way, from the third model call on."""

    def __init__(self, how: Any) -> None:
        super().__init__()
        self.how = how

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self.how(request) if len(request.messages) > 3 else request)


def described(request: Any) -> Any:
    request.tools[0].description = "Adds."
    return request


@pytest.mark.parametrize(
    ("how", "binds"),
    [
        (lambda request: request, 1),
        (lambda request: request.override(system_prompt="Be brief."), 1),
        (described, 2),
        (lambda request: request.override(tool_choice="any"), 2),
        (lambda request: request.override(tools=[*request.tools, {"type": "web_search"}]), 2),
        (lambda request: request.override(model=Binds("other", repeat=True)), 2),
        (lambda request: request.override(model_settings={"stop": ["x"]}), 5),
    ],
    ids=["nothing", "the prompt", "a description", "the choice", "a tool", "the model", "settings, each time anew"],
)
def test_a_tools_schema_is_made_once(how: Any, binds: int) -> None:
    BOUND.clear()
    script = [ai("", tool_call("add", {"a": 1, "b": 2}, f"c{n}")) for n in range(5)]
    agent = create_agent(Binds(*script, "done"), [add], middleware=[Changes(how)])
    agent.invoke({"messages": "hi"})
    assert len(BOUND) == binds


def test_models_that_are_bound_are_not_kept_for_ever() -> None:
    """Tools made anew for each request, as some middleware does."""
    made: list[Any] = []

    def anew(request: Any) -> Any:
        copy = request.tools[0].model_copy()
        made.append(weakref.ref(copy))
        return request.override(tools=[copy])

    script = [ai("", tool_call("add", {"a": 1, "b": 2}, f"c{n}")) for n in range(90)]
    agent = create_agent(Binds(*script, "done"), [add], middleware=[Changes(anew)])
    agent.invoke({"messages": "hi"})
    gc.collect()
    assert len(made) > 80
    assert sum(ref() is not None for ref in made) < 70


# ---- beside LangChain's factory: steps, checkpoints, schemas


class Counts(InMemorySaver):
    """Counts what it is asked to store."""

    def __init__(self) -> None:
        super().__init__()
        self.puts = 0
        self.puts_of_writes = 0

    def put(self, *given: Any, **more: Any) -> Any:
        self.puts += 1
        return super().put(*given, **more)

    def put_writes(self, *given: Any, **more: Any) -> None:
        self.puts_of_writes += 1
        super().put_writes(*given, **more)


def turns(number: int) -> ScriptedModel:
    """So many model calls, each but the last with a tool call."""

    def answered(request: Any) -> Any:
        return "done" if request.turn >= number - 1 else ai("", tool_call("add", {"a": 1, "b": 2}, f"c{request.turn}"))

    return ScriptedModel(answered, repeat=True)


def steps_and_stores(number: int, size: int, factory: Any = create_agent, **more: Any) -> tuple[int, int, int]:
    """Super-steps, checkpoints and writes of a run of so many turns, with so many middlewares of two hooks."""
    saver = Counts()
    agent = factory(turns(number), [add], middleware=hooks(size), checkpointer=saver, **more)
    config: Any = {**thread("t"), "recursion_limit": 1000}
    events = list(agent.stream({"messages": "hi"}, config, stream_mode="debug"))
    return len({event["step"] for event in events if event["type"] == "task"}), saver.puts, saver.puts_of_writes


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_step_per_hook_costs_no_more_steps_and_checkpoints_than_langchain(size: int) -> None:
    ours = steps_and_stores(5, size, granularity="hook")
    theirs = steps_and_stores(5, size, langchain_create_agent)
    assert ours[0] == theirs[0] == 5 * (1 + 2 * size) + 4
    assert ours[1] == theirs[1] and ours[2] <= theirs[2]


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_turn_is_two_steps_whatever_its_hooks(size: int) -> None:
    steps, checkpoints, writes = steps_and_stores(5, size, granularity="turn")
    assert steps == 5 + 4  # the model, then its tools
    assert checkpoints == 2 + steps  # before them, what is given and LangGraph's own start
    assert writes <= steps_and_stores(5, 0, langchain_create_agent)[2]


@pytest.mark.parametrize("number", [1, 5])
@pytest.mark.parametrize("heard", [False, True])
def test_a_run_that_nobody_observes_is_one_step_whatever_its_length(number: int, heard: bool) -> None:
    seen: list[str] = []

    class Notes(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> None:
            seen.append(runtime.execution_info.checkpoint_id)  # each super-step has one of its own

    agent = create_agent(turns(number), [add], middleware=[Notes()], granularity="turn")
    agent.invoke({"messages": "hi"}, {"callbacks": [BaseCallbackHandler()]} if heard else None)
    assert len(seen) == number
    assert len(set(seen)) == (number if heard else 1)


def test_in_a_run_that_nobody_observes_a_reducer_runs_once_for_each_update() -> None:
    APPLIED.clear()

    class Adds(AgentMiddleware[Any, Any, Any]):
        state_schema = Counted

        def before_model(self, state: Any, runtime: Any) -> Any:
            return {"total": 1}

    agent = create_agent(turns(3), [add], middleware=[Adds()], granularity="turn")
    assert agent.invoke({"messages": "hi"})["total"] == 3
    assert APPLIED == [1, 1, 1]


@granularities
def test_a_checkpoint_more_is_stored_for_each_step_only(granularity: Any) -> None:
    short, long = (steps_and_stores(number, 1, granularity=granularity) for number in (5, 10))
    assert long[1] - short[1] == long[0] - short[0]


def test_in_one_step_per_turn_a_long_thread_takes_a_fraction_of_langchains_bytes() -> None:
    assert stored_after(40, granularity="turn") < stored_after(40, langchain_create_agent) / 10


SCHEMAS: list[str] = []


class Described(StructuredTool):
    """Counts how often its schema is asked for."""

    @property
    def tool_call_schema(self) -> Any:
        SCHEMAS.append(self.name)
        return super().tool_call_schema


@granularities
def test_a_tools_schema_is_converted_once_for_all_turns_and_runs(granularity: Any) -> None:
    SCHEMAS.clear()
    agent = create_agent(turns(8), [Described.from_function(add)], granularity=granularity)
    agent.invoke({"messages": "hi"})
    once = len(SCHEMAS)
    for _ in range(3):
        agent.invoke({"messages": "hi"})
    assert len(SCHEMAS) == once
    short = create_agent(turns(2), [Described.from_function(add)], granularity=granularity)
    short.invoke({"messages": "hi"})
    assert len(SCHEMAS) == 2 * once
