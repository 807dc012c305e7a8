"""A run in one step of the graph, beside the same one step by step: what comes out, and what is seen from inside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from threading import Lock
from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.tools import ToolRuntime
from langchain_core.callbacks import BaseCallbackHandler, dispatch_custom_event
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config, get_stream_writer
from langgraph.errors import GraphRecursionError, NodeCancelledError, ParentCommand
from langgraph.func import task
from langgraph.runtime import get_runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Overwrite, Send, interrupt

from agentkit import Exit, create_agent, exit_of, thread
from agentkit.testing import RunResult, ScriptedModel, ai, comparable, run, tool_call
from agentkit.tools import tool as contract_tool

ENTRIES = pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
SEEN: list[Any] = []
USER: ContextVar[str] = ContextVar("user", default="nobody")


def calls(*names: str) -> Any:
    return ai("", *(tool_call(name, {}, f"{name}-{n}") for n, name in enumerate(names)))


def played(make: Callable[[], Any], entry: Any, *, heard: bool, **config: Any) -> tuple[RunResult, list[Any]]:
    """A run, and what was noted in it."""
    SEEN.clear()
    given = {**config, "callbacks": [BaseCallbackHandler()]} if heard else config
    result = run(make(), "hi", given, entry=entry, catch=True)
    return result, [*SEEN]


def alike(make: Callable[[], Any], entry: Any, **config: Any) -> tuple[RunResult, list[Any]]:
    """The whole run, after it was compared with the one that goes step by step."""
    stepwise, seen_there = played(make, entry, heard=True, **config)
    whole, seen = played(make, entry, heard=False, **config)
    assert comparable(whole.values) == comparable(stepwise.values)
    assert type(whole.error) is type(stepwise.error)
    assert comparable(getattr(whole.error, "args", ())) == comparable(getattr(stepwise.error, "args", ()))
    assert [pause.value for pause in whole.interrupts] == [pause.value for pause in stepwise.interrupts]
    assert sorted(map(str, seen)) == sorted(map(str, seen_there))  # parallel calls come in any order
    return whole, seen


def agent(*script: Any, tools: Any = (), middleware: Any = (), **more: Any) -> Callable[[], Any]:
    return lambda: create_agent(
        ScriptedModel(*script), list(tools), middleware=list(middleware), granularity="turn", **more
    )


# ---- what is seen from inside


def place(who: str) -> None:
    """Note where in the run this is called."""
    config: Any = get_config()
    told = ("langgraph_node", "langgraph_step", "langgraph_triggers", "langgraph_path")
    namespace = config["configurable"]["checkpoint_ns"]
    here = get_runtime().execution_info
    SEEN.append((who, [config["metadata"][key] for key in told], [part.split(":")[0] for part in namespace.split("|")]))
    assert here is not None
    assert (
        namespace
        == config["metadata"]["langgraph_checkpoint_ns"]
        == here.checkpoint_ns
        == f"{namespace[:5]}:{here.task_id}"
    )
    get_stream_writer()("unheard")
    dispatch_custom_event("unheard", {})


class Places(AgentMiddleware[Any, Any, Any]):
    def before_agent(self, state: Any, runtime: Any) -> None:
        place("before_agent")

    def before_model(self, state: Any, runtime: Any) -> None:
        place("before_model")

    def after_agent(self, state: Any, runtime: Any) -> None:
        place("after_agent")


@tool
def where() -> str:
    """Tell where it is."""
    place("where")
    return "here"


@ENTRIES
def test_config_and_runtime_tell_the_steps_that_the_graph_would_have_made(entry: Any) -> None:
    make = agent(calls("where"), calls("where"), "done", tools=[where], middleware=[Places()])
    _, seen = alike(make, entry, tags=["x"], metadata={"who": "ann"})
    assert [(who, step) for who, (_, step, *_), _ in seen] == [
        ("before_agent", 1), ("before_model", 1), ("where", 2), ("before_model", 3), ("where", 4), ("before_model", 5),
        ("after_agent", 5),
    ]  # fmt: skip


@tool
def whoami(runtime: ToolRuntime) -> str:
    """Tell what a tool sees."""
    assert runtime.store is not None
    SEEN.append(
        (runtime.context, runtime.store.get(("a",), "b"), sorted(runtime.state), len(runtime.state["messages"]))
    )
    return f"{USER.get()}"


class SetsUser(AgentMiddleware[Any, Any, Any]):
    def before_model(self, state: Any, runtime: Any) -> None:
        SEEN.append(USER.get())
        USER.set("somebody")


@ENTRIES
def test_tools_see_the_state_the_store_and_the_context(entry: Any) -> None:
    make = agent(calls("whoami"), calls("whoami"), "done", tools=[whoami], store=InMemoryStore())
    _, seen = alike(make, entry)
    assert [messages for *_, messages in seen] == [2, 4]


@ENTRIES
def test_a_context_variable_lives_as_long_as_its_step(entry: Any) -> None:
    make = agent(calls("whoami"), "done", tools=[whoami], middleware=[SetsUser()], store=InMemoryStore())
    result, seen = alike(make, entry)
    assert [one for one in seen if isinstance(one, str)] == ["nobody", "nobody"]
    assert result.messages[2].text == "nobody"
    assert USER.get() == "nobody"


# ---- how many steps


@ENTRIES
@pytest.mark.parametrize("limit", range(1, 8))
def test_the_recursion_limit_counts_the_same_steps(entry: Any, limit: int) -> None:
    make = agent(calls("where"), calls("where", "where"), "done", tools=[where])
    result, _ = alike(make, entry, recursion_limit=limit)
    assert isinstance(result.error, GraphRecursionError) is (limit < 6)  # the engine asks for one more than it makes


@tool
def look() -> str:
    """Look around."""
    SEEN.append("looked")
    return "seen"


def asks(sub: Any, *config: Any) -> BaseTool:
    @tool
    def ask() -> str:
        """Ask another agent."""
        result = sub.invoke({"messages": "you"}, *config)
        SEEN.append(exit_of(result))
        return str(result["messages"][-1].text)

    return ask


@ENTRIES
def test_an_agent_in_a_tool_gets_the_steps_that_are_left(entry: Any) -> None:
    def make() -> Any:
        sub = create_agent(ScriptedModel(calls("look"), repeat=True), [look], granularity="turn")
        return agent(calls("ask"), calls("ask"), "done", tools=[asks(sub)])()

    _, seen = alike(make, entry, recursion_limit=9)
    first, second = (place for place, one in enumerate(seen) if isinstance(one, Exit))
    assert seen[first].reason == seen[second].reason == "step_budget"
    assert (first, second - first - 1) == (7, 5)  # of 9 steps, after the 2nd and the 4th


def test_an_agent_in_a_tool_keeps_its_threads_where_they_are_kept_step_by_step() -> None:
    namespaces = []
    for heard in (True, False):
        saver = InMemorySaver()
        sub = create_agent(ScriptedModel("fine", repeat=True), checkpointer=saver)
        make = agent(calls("ask"), calls("ask"), "done", tools=[asks(sub, thread("own"))])
        played(make, "invoke", heard=heard)
        namespaces.append(sorted(saver.storage["own"]))
        assert len(sub.get_state(thread("own")).values["messages"]) == 4
    assert namespaces[0] == namespaces[1]


def test_tasks_of_the_functional_api_run_in_a_tool_once_for_each_call() -> None:
    @task
    def noted(number: int) -> int:
        SEEN.append(number)
        return number

    def count(number: int) -> str:
        """Count with tasks."""
        return f"{noted(number).result()} {noted(number + 1).result()}"

    script = [ai("", tool_call("count", {"number": number}, f"c{number}")) for number in (1, 5)]
    counted = StructuredTool.from_function(count)
    result, seen = alike(agent(*script, "done", tools=[counted]), "invoke")
    assert sorted(seen) == [1, 2, 5, 6]
    assert [message.text for message in result.messages if message.type == "tool"] == ["1 2", "5 6"]


# ---- ways out


@tool
def pause() -> str:
    """Ask somebody."""
    SEEN.append("asked")
    return str(interrupt("sure?"))


@tool
def fail() -> str:
    """Fail."""
    raise TimeoutError("slow")


@tool
def leave(runtime: ToolRuntime) -> Any:
    """Leave for the parent graph."""
    answer = ToolMessage("left", tool_call_id=str(runtime.tool_call_id), name="leave")
    return Command(graph=Command.PARENT, goto="elsewhere", update={"messages": [answer]})


@tool
def again(runtime: ToolRuntime) -> Any:
    """Have another tool called."""
    answer = ToolMessage("went", tool_call_id=str(runtime.tool_call_id), name="again")
    return Command(goto=Send("tools", [tool_call("pause", {}, "sent")]), update={"messages": [answer]})


@tool(return_direct=True)
def direct() -> str:
    """Give the answer."""
    return "the answer"


@contract_tool(sequential=True)
def first(runtime: ToolRuntime) -> str:
    """Run after the one before it."""
    SEEN.append(("first", len(runtime.state["messages"]), runtime.tool_call_id))
    return "first"


def told(reply: Any) -> str:
    """A model's reply in a word."""
    return "+".join(call["name"] for call in getattr(reply, "tool_calls", ())) or str(reply)


TOOLS = [where, pause, fail, leave, again, direct, first]


@ENTRIES
@pytest.mark.parametrize(
    "script",
    [
        ["done"],
        [calls("where"), calls("where", "where"), "done"],
        [calls("where"), calls("pause"), "done"],
        [calls("where"), calls("pause", "where", "pause"), "done"],
        [calls("where"), calls("fail"), "done"],
        [calls("where"), calls("where", "fail"), "done"],
        [calls("leave"), "done"],
        [calls("where", "leave", "leave"), "done"],
        [calls("again"), calls("direct"), "done"],
        [calls("direct"), "done"],
        [calls("direct", "where"), "done"],
        [calls("first", "where", "first", "first"), "done"],
        [calls("nowhere"), "done"],
        [calls("where"), TimeoutError("no model"), "done"],
    ],
    ids=lambda script: ", ".join(
        "+".join(c["name"] for c in getattr(one, "tool_calls", ())) or str(one) for one in script
    ),
)
def test_every_way_on_and_out(entry: Any, script: list[Any]) -> None:
    alike(agent(*script, tools=TOOLS), entry)


def test_a_command_to_a_parent_leaves_as_it_does_step_by_step() -> None:
    result, _ = alike(agent(calls("where"), calls("leave"), "done", tools=TOOLS), "invoke")
    assert isinstance(result.error, ParentCommand)


def test_a_pause_without_a_saver_ends_the_run_with_its_question() -> None:
    result, seen = alike(agent(calls("where"), calls("pause"), "done", tools=TOOLS), "invoke")
    assert [pause.value for pause in result.interrupts] == ["sure?"]
    assert [message.type for message in result.messages] == ["human", "ai", "tool", "ai"]
    assert seen.count("asked") == 1


class Hook(AgentMiddleware[Any, Any, Any]):
    """Does one thing after the second answer of the model."""

    def __init__(self, act: str) -> None:
        super().__init__()
        self.act = act

    @hook_config(can_jump_to=["model", "tools", "end"])
    def after_model(self, state: Any, runtime: Any) -> Any:
        SEEN.append(comparable(state))
        if sum(message.type == "ai" for message in state["messages"]) != 2:
            return None
        if self.act == "raise":
            raise TimeoutError("slow")
        if self.act == "pause":
            return {"messages": [HumanMessage(str(interrupt("?")))]}
        if self.act == "overwrite":
            return {"messages": Overwrite([HumanMessage("only")])}
        if self.act == "drain":
            runtime.control.request_drain("enough")
            return None
        return {"jump_to": self.act}

    def after_agent(self, state: Any, runtime: Any) -> Any:
        SEEN.append("after_agent")


@ENTRIES
@pytest.mark.parametrize("act", ["raise", "pause", "overwrite", "drain", "model", "tools", "end"])
@pytest.mark.parametrize("second", ["where", "done"])
def test_what_a_hook_may_do(entry: Any, act: str, second: str) -> None:
    script = [calls("where"), calls("where", "where") if second == "where" else "done", "done", "done"]
    alike(agent(*script, tools=[where], middleware=[Hook(act), Places()]), entry)


class Grown(AgentState[Any]):
    """Fields whose reducers would show if they ran twice over the same."""

    grown: NotRequired[Annotated[list[str], lambda old, new: (old.extend(new), old)[1]]]
    total: NotRequired[Annotated[int, lambda old, new: old + new]]
    late: NotRequired[Annotated[dict[str, int] | None, lambda old, new: {**(old or {}), **(new or {})}]]


class Grows(AgentMiddleware[Any, Any, Any]):
    state_schema = Grown

    def before_model(self, state: Any, runtime: Any) -> Any:
        return {"total": 1, "late": {str(len(state["messages"])): 1}}


@ENTRIES
@pytest.mark.parametrize("storage", ["full", "incremental"])
def test_reducers_give_the_same(entry: Any, storage: Any) -> None:
    make = agent(calls("where"), calls("where"), "done", tools=[where], middleware=[Grows()], message_storage=storage)
    result, _ = alike(make, entry)
    assert result.values["total"] == 3
    assert result.values["late"] == {"1": 1, "3": 1, "5": 1}


def test_a_reducer_that_changes_in_place_runs_once() -> None:
    class Adds(AgentMiddleware[Any, Any, Any]):
        state_schema = Grown

        def before_model(self, state: Any, runtime: Any) -> Any:
            return {"grown": ["x"]}

    make = agent(calls("where"), "done", tools=[where], middleware=[Adds()])
    assert make().invoke({"messages": "hi", "grown": ["y"]})["grown"] == ["y", "x", "x"]


# ---- parallel calls


class Together:
    """A tool that notes how many of its calls run at once."""

    def __init__(self) -> None:
        self.running = self.most = 0
        self._lock = Lock()

    def enter(self) -> None:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)

    def tool(self) -> Any:
        def wait() -> str:
            """Wait."""
            self.enter()
            time.sleep(0.05)
            self.running -= 1
            return "waited"

        async def await_() -> str:
            self.enter()
            await asyncio.sleep(0.05)
            self.running -= 1
            return "waited"

        return StructuredTool.from_function(wait, await_)


def staying(ended: list[str]) -> Any:
    """A tool that stays for ever, and notes that it was made to leave."""

    async def stay() -> str:
        """Stay for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("left")
        return ""

    return StructuredTool.from_function(coroutine=stay)


@ENTRIES
@pytest.mark.parametrize(("limit", "most"), [(None, 12), (2, 2), (1, 1)])
def test_calls_run_at_once_as_many_as_may(entry: Any, limit: int | None, most: int) -> None:
    together = Together()
    make = agent(calls(*["wait"] * 12), "done", tools=[together.tool()])
    result, _ = played(make, entry, heard=False, **({} if limit is None else {"max_concurrency": limit}))
    assert together.most == most
    assert [message.type for message in result.messages] == ["human", "ai", *["tool"] * 12, "ai"]


def test_a_cancelled_run_cancels_its_calls() -> None:
    ended: list[str] = []

    async def cancelled() -> None:
        stays = agent(calls("stay", "stay"), "done", tools=[staying(ended)])()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await stays.ainvoke({"messages": "hi"})

    asyncio.run(cancelled())
    assert ended == ["left", "left"]


def test_a_call_that_fails_cancels_the_others() -> None:
    ended: list[str] = []

    result, _ = played(agent(calls("stay", "fail"), "done", tools=[staying(ended), fail]), "ainvoke", heard=False)
    assert isinstance(result.error, TimeoutError)
    assert ended == ["left"]


def test_a_call_that_is_cancelled_from_elsewhere_ends_the_run() -> None:
    async def lost() -> str:
        """Wait for what somebody else gives up."""
        raise asyncio.CancelledError

    result, _ = alike(agent(calls("lost"), "done", tools=[StructuredTool.from_function(coroutine=lost)]), "ainvoke")
    assert isinstance(result.error, NodeCancelledError)
