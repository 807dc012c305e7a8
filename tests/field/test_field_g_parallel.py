"""Field reports, family G: parallel calls, concurrent writes, state schema."""

from __future__ import annotations

import asyncio
import gc
import operator
import threading
from collections.abc import Callable
from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents.middleware import AgentMiddleware, AgentState, ToolRetryMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command
from typing_extensions import TypedDict

from agentkit import create_agent, thread
from agentkit.errors import ConfigurationWarning, DuplicateMiddleware
from agentkit.testing import EntryPoint, ScriptedModel, ai, arun, assert_paired, run, tool_call

Maker = Callable[..., Any]


class Facts(AgentState[Any]):
    colour: NotRequired[str]
    size: NotRequired[str]
    log: NotRequired[Annotated[list[str], operator.add]]


@tool
def note(field: str, value: str, runtime: ToolRuntime) -> Command[Any]:
    """Store a fact."""
    done = ToolMessage(f"{field} noted", tool_call_id=str(runtime.tool_call_id))
    return Command(update={field: value, "log": [value], "messages": [done]})


def noted(*facts: tuple[str, str]) -> Any:
    return ai("", *[tool_call("note", {"field": f, "value": v}, f"c{i}") for i, (f, v) in enumerate(facts)])


def test_da_527_parallel_facts_under_different_fields_are_all_kept(entry: EntryPoint) -> None:
    model = ScriptedModel(noted(("colour", "red"), ("size", "xl")), "done")
    ended = run(create_agent(model, [note], state_schema=Facts), "hi", entry=entry)
    assert (ended.values["colour"], ended.values["size"]) == ("red", "xl")
    assert sorted(ended.values["log"]) == ["red", "xl"]
    assert_paired(model, ended.messages)


def test_da_527_of_parallel_writes_to_one_plain_field_the_last_call_wins(entry: EntryPoint) -> None:
    for _ in range(5):
        model = ScriptedModel(noted(("colour", "red"), ("colour", "green"), ("colour", "blue")), "done")
        agent = create_agent(model, [note], state_schema=Facts, checkpointer=InMemorySaver())
        ended = run(agent, "hi", thread("t"), entry=entry)
        assert ended.text == "done"
        assert ended.values["colour"] == "blue"
        assert agent.get_state(thread("t")).values["colour"] == "blue"
        assert sorted(ended.values["log"]) == ["blue", "green", "red"]
        assert_paired(model, ended.messages)


class Shared(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    tenant: str


class Tenant(AgentState[Any]):
    tenant: NotRequired[str]


def test_lg_6446_two_agents_side_by_side_do_not_write_what_they_did_not_change(entry: EntryPoint) -> None:
    graph = StateGraph(Shared)
    for name in ("first", "second"):
        graph.add_node(name, create_agent(ScriptedModel(f"{name} here"), [], state_schema=Tenant, name=name))
        graph.add_edge(START, name)
        graph.add_edge(name, END)
    ended = run(graph.compile(), {"messages": [("user", "hi")], "tenant": "acme"}, entry=entry)
    assert ended.values["tenant"] == "acme"
    assert sorted(m.text for m in ended.messages) == ["first here", "hi", "second here"]


def test_lg_6446_what_an_agent_did_change_arrives(entry: EntryPoint) -> None:
    @tool
    def move(to: str, runtime: ToolRuntime) -> Command[Any]:
        """Change the tenant."""
        return Command(
            update={"tenant": to, "messages": [ToolMessage("moved", tool_call_id=str(runtime.tool_call_id))]}
        )

    graph = StateGraph(Shared)
    model = ScriptedModel(ai("", tool_call("move", {"to": "globex"})), "moved")
    graph.add_node("agent", create_agent(model, [move], state_schema=Tenant))
    graph.add_edge(START, "agent")
    graph.add_edge("agent", END)
    ended = run(graph.compile(), {"messages": [("user", "hi")], "tenant": "acme"}, entry=entry)
    assert ended.values["tenant"] == "globex"


def joined(old: Any, new: Any) -> Any:
    return f"{old or ''}{new}"


def kept_first(old: Any, new: Any) -> Any:
    return old or new


class UsersSchema(AgentState[Any]):
    path: NotRequired[Annotated[str, joined]]


class OtherSchema(AgentState[Any]):
    path: NotRequired[Annotated[str, kept_first]]


def with_schema(name: str, schema: Any, writes: str) -> Any:
    def before_model(self: Any, state: Any, runtime: Any) -> Any:
        return {"path": writes}

    return type(name, (AgentMiddleware,), {"state_schema": schema, "before_model": before_model})()


@pytest.mark.filterwarnings("ignore::agentkit.errors.ConfigurationWarning")
@pytest.mark.parametrize("order", [("u", "o"), ("o", "u")], ids="".join)
def test_lc_38720_the_callers_schema_wins_whoever_else_uses_it(entry: EntryPoint, order: tuple[str, str]) -> None:
    kinds = {"u": UsersSchema, "o": OtherSchema}
    middleware = [with_schema(f"Writes{k}", kinds[k], k) for k in order]
    agent = create_agent(ScriptedModel("x"), [], middleware=middleware, state_schema=UsersSchema)
    assert run(agent, "hi", entry=entry).values["path"] == "".join(order)


class Number(AgentState[Any]):
    path: NotRequired[int]


class Text(AgentState[Any]):
    path: NotRequired[str]


def test_lc_38720_two_middlewares_that_disagree_about_a_field_are_named() -> None:
    middleware = [with_schema("Numbers", Number, "1"), with_schema("Texts", Text, "a")]
    with pytest.warns(ConfigurationWarning, match="path") as caught:
        create_agent(ScriptedModel("x"), [], middleware=middleware)
    text = str(caught[0].message)
    assert "Numbers" in text and "Texts" in text


def test_lc_39110_two_instances_of_one_class_each_do_their_part(entry: EntryPoint, act: Maker) -> None:
    attempts = {"once": 0, "twice": 0}

    def flaky(name: str) -> Callable[[int], str]:
        def does(x: int) -> str:
            attempts[name] += 1
            raise TimeoutError(name)

        return does

    retries: list[Any] = [
        ToolRetryMiddleware(tools=[name], max_retries=n, initial_delay=0, on_failure=lambda error: "gave up")
        for name, n in (("once", 1), ("twice", 2))
    ]
    tools = [act(name, flaky(name)).tool for name in attempts]
    model = ScriptedModel(ai("", tool_call("once", id="1"), tool_call("twice", id="2")), "done")
    ended = run(create_agent(model, tools, middleware=retries), "hi", entry=entry)
    assert attempts == {"once": 2, "twice": 3}
    assert ended.text == "done"
    assert_paired(model, ended.messages)


class Counts(AgentMiddleware[Any, Any, Any]):
    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def before_model(self, state: Any, runtime: Any) -> None:
        self.n += 1


def test_lc_39110_hooks_of_two_instances_all_run(entry: EntryPoint) -> None:
    first, second = Counts(), Counts()
    run(create_agent(ScriptedModel("x"), [], middleware=[first, second]), "hi", entry=entry)
    assert (first.n, second.n) == (1, 1)


def test_lc_39110_the_same_object_twice_is_refused() -> None:
    twice = Counts()
    with pytest.raises(DuplicateMiddleware, match="Counts"):
        create_agent(ScriptedModel("x"), [], middleware=[twice, twice])


class Peak:
    """How many are inside at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = self.entered = 0

    def __enter__(self) -> None:
        with self.lock:
            self.now += 1
            self.entered += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.now -= 1


@pytest.mark.parametrize("limit", [1, 2])
async def test_lg_8517_the_configs_concurrency_limit_holds_for_async_tools(limit: int) -> None:
    peak = Peak()

    @tool
    async def work(x: int) -> str:
        """Work."""
        with peak:
            for _ in range(5):
                await asyncio.sleep(0)
        return "worked"

    batch = ai("", *[tool_call("work", {"x": i}, f"c{i}") for i in range(5)])
    agent = create_agent(ScriptedModel(batch, "done"), [work])
    ended = await arun(agent, "hi", {"max_concurrency": limit})
    assert ended.text == "done"
    assert peak.entered == 5
    assert peak.most <= limit


async def test_pyd_4423_no_sibling_outlives_a_failed_run() -> None:
    slow_started, slow_ended = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Take long."""
        slow_started.set()
        try:
            await asyncio.sleep(60)
        finally:
            slow_ended.set()
        return "slow"

    @tool
    async def broken() -> str:
        """Fail."""
        await slow_started.wait()
        raise ValueError("broken")

    tools: list[BaseTool] = [slow, broken]
    before = asyncio.all_tasks()
    agent = create_agent(ScriptedModel(ai("", tool_call("slow", id="s"), tool_call("broken", id="b"))), tools)
    with pytest.raises(ValueError, match="broken"):
        await arun(agent, "hi")
    await asyncio.wait_for(slow_ended.wait(), 5)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    gc.collect()  # a forgotten exception would be reported now, and a warning is an error here
