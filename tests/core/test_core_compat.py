"""The few names that are not public in LangChain or LangGraph, each tested by what it does for us.

Where one of these fails, the upgraded dependency changed something that `agentkit/_compat.py` takes from it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import AgentMiddleware, configure_trace_policy, hook_config
from langchain.tools import ToolRuntime, tool
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import get_runtime
from langgraph.types import Command, Send, TracePolicy, interrupt
from typing_extensions import TypedDict

from agentkit import _compat, create_agent, thread
from agentkit.testing import ScriptedModel, ai, tool_call


def graph(*nodes: Any, saver: bool = False) -> Any:
    """A graph of the nodes in a row."""
    builder = StateGraph(MessagesState)
    names = [f"n{i}" for i in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        builder.add_node(name, node)
    for source, target in zip([START, *names], names, strict=False):
        builder.add_edge(source, target)
    return builder.compile(checkpointer=InMemorySaver() if saver else None)


def test_read_state_shows_a_dispatched_task_the_whole_state() -> None:
    seen: list[Any] = []

    def task(given: Any, config: RunnableConfig) -> None:
        seen.append((given, _compat.read_state(config, ["messages"])))

    builder: Any = StateGraph(MessagesState)
    builder.add_node("task", task)
    builder.add_conditional_edges(START, lambda state: [Send("task", "packet")], ["task"])
    builder.compile().invoke({"messages": [("user", "hi")]})
    ((given, state),) = seen
    assert given == "packet"
    assert [m.text for m in state["messages"]] == ["hi"]


def test_is_task_knows_a_graph_within_a_graph() -> None:
    seen: list[bool] = []

    class Inner:
        """A graph as a node is called with the config of the task."""

        def __call__(self, state: Any, config: RunnableConfig) -> None:
            seen.append(_compat.is_task(config))

    graph(Inner()).invoke({"messages": []})
    assert seen == [True]
    assert not _compat.is_task(None)
    assert not _compat.is_task(thread("t"))


@pytest.mark.parametrize("reads", [True, False])
def test_unread_resume_tells_an_answer_that_nobody_asked_for(reads: bool) -> None:
    unread: list[bool] = []
    resumed: list[bool] = []
    asked: list[int] = []

    def node(state: Any, config: RunnableConfig) -> None:
        resumed.append(_compat.is_resumed(config))
        if reads or not asked:
            asked.append(1)
            interrupt("?")
        unread.append(_compat.unread_resume(config))

    made = graph(node, saver=True)
    made.invoke({"messages": []}, thread("t"))
    made.invoke(Command(resume="yes"), thread("t"))
    assert resumed == [False, True]
    assert unread == [not reads]


def test_a_paused_task_has_its_id_when_it_runs_again() -> None:
    ran: list[str | None] = []

    def node(state: Any, config: RunnableConfig) -> None:
        ran.append(_compat.task_of(config))
        interrupt("?")

    made = graph(node, saver=True)
    made.invoke({"messages": []}, thread("t"))
    saved = made.checkpointer.get_tuple(thread("t"))
    assert _compat.paused_tasks(saved) == {ran[0]}
    made.invoke(Command(resume="yes"), thread("t"))
    assert ran[0] == ran[1] is not None
    assert _compat.paused_tasks(made.checkpointer.get_tuple(thread("t"))) == _compat.paused_tasks(None) == frozenset()
    assert _compat.task_of(thread("t")) is None


def test_no_answer_is_unread_where_none_was_given() -> None:
    unread: list[bool] = []

    def node(state: Any, config: RunnableConfig) -> None:
        unread.append(_compat.unread_resume(config))

    graph(node).invoke({"messages": []})
    assert unread == [False]


def test_an_answer_is_new_once_and_addressed_where_it_names_its_question() -> None:
    handed: list[tuple[bool, bool]] = []

    def node(state: Any, config: RunnableConfig) -> None:
        _compat.drop_stale_answer(config)
        for answer in config["configurable"]["__pregel_scratchpad"].resume:
            handed.append((_compat.is_addressed(answer, config), _compat.is_new(answer, config)))
        interrupt("first")
        interrupt("second")

    made = graph(node, saver=True)
    (first,) = made.invoke({"messages": []}, thread("t"))["__interrupt__"]
    (second,) = made.invoke(Command(resume={first.id: "one answer"}), thread("t"))["__interrupt__"]
    assert handed == [(True, True)]
    made.invoke(Command(resume={second.id: "another"}), thread("t"))
    assert handed[1:] == [(True, False), (True, True)]


def test_the_process_wide_trace_policy_is_read_at_trace_time() -> None:
    policy = _compat.node_trace_policy(None)
    processor = _compat.trace_processor(None, "process_inputs")
    configure_trace_policy(TracePolicy(process_inputs=lambda given: {"hidden": True}))
    try:
        assert processor({"secret": 1}) == {"hidden": True}
        assert policy.process_inputs is not None
        assert policy.process_inputs({"secret": 1}) == {"hidden": True}
    finally:
        configure_trace_policy(None)


def test_a_middlewares_own_trace_policy_comes_first() -> None:
    own = TracePolicy(process_inputs=lambda given: {"own": True})
    assert _compat.trace_processor(own, "process_inputs")({"secret": 1}) == {"own": True}


def test_a_streaming_handler_is_why_a_model_streams() -> None:
    """LangGraph's `messages` mode puts one among the callbacks; without it the model is called whole."""
    seen: dict[str, list[bool]] = {}

    def model_of(key: str) -> ScriptedModel:
        from langchain_core.runnables import ensure_config

        def step(request: Any) -> str:
            callbacks: Any = ensure_config().get("callbacks")
            handlers = getattr(callbacks, "handlers", callbacks) or []
            seen[key] = [isinstance(handler, _compat.StreamingHandler) for handler in handlers]
            return "done"

        return ScriptedModel(step)

    list(create_agent(model_of("messages")).stream({"messages": "hi"}, stream_mode="messages"))
    create_agent(model_of("values")).invoke({"messages": "hi"}, {"callbacks": [BaseCallbackHandler()]})
    assert any(seen["messages"])
    assert not any(seen["values"])


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_named_agents_within_tools_show_in_event_streams() -> None:
    inner = create_agent(ScriptedModel("inner done"), name="helper")

    @tool
    async def delegate() -> str:
        """Delegate."""
        return str((await inner.ainvoke({"messages": "do it"}))["messages"][-1].text)

    model = ScriptedModel(ai("", tool_call("delegate")), "done")
    agent = create_agent(model, [delegate], middleware=[AgentMiddleware()], name="outer")
    assert _compat.SubagentTransformer in agent.stream_transformers
    stream: Any = await agent.astream_events({"messages": "hi"}, version="v3")
    names = [sub.name async for sub in stream.subagents]
    assert names == ["helper"]


def test_the_apis_own_meter_provider_is_known_from_one_that_records() -> None:
    """In a process of its own: setting the global provider cannot be undone."""
    script = """
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from agentkit._compat import is_placeholder
assert is_placeholder(metrics.get_meter_provider()) and is_placeholder(metrics.NoOpMeterProvider())
metrics.set_meter_provider(MeterProvider())
assert not is_placeholder(metrics.get_meter_provider())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_logger_provider_is_there_once_the_application_has_set_one() -> None:
    script = """
import sys
from agentkit._compat import log_records, loggers
assert "opentelemetry._logs" not in sys.modules and loggers() is None
from opentelemetry._logs import LogRecord, SeverityNumber, set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
assert loggers() is None and log_records() == (LogRecord, SeverityNumber)
provider = LoggerProvider()
set_logger_provider(provider)
assert loggers() is provider
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_the_official_instrumentations_package_nothing_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    _compat._inference_data.cache_clear()
    monkeypatch.setitem(sys.modules, "opentelemetry.util.genai._inference_invocation", None)
    assert _compat.inference_data() is None
    _compat._inference_data.cache_clear()


def test_with_it_it_gets_its_own_data_class_under_its_own_key() -> None:
    official = pytest.importorskip(
        "opentelemetry.util.genai._inference_invocation", reason="opentelemetry-util-genai is not installed"
    )
    found = _compat.inference_data()
    assert found is not None
    assert (found[0], type(found[1])) == (official.CLIENT_INFERENCE_CONTEXT_KEY, official.InferenceData)


def test_run_tool_call_is_what_tool_node_does() -> None:
    """The same result and the same request, without a thread or task of its own."""
    seen: list[tuple[Any, ...]] = []

    @tool
    def look(place: str, runtime: ToolRuntime) -> str:
        """Look somewhere."""
        seen.append((place, runtime.tool_call_id, runtime.state, runtime.store, threading.get_ident()))
        return f"nothing at {place}"

    called = tool_call("look", {"place": "home"}, "c1")
    state: Any = {"messages": [ai("", called)]}
    tools = ToolNode([look])
    results: list[Any] = []

    def node(given: Any, config: RunnableConfig) -> None:
        runtime = get_runtime()
        with_state = {"__type": "tool_call_with_context", "tool_call": called, "state": state}
        results.append(tools.invoke(with_state, config))
        results.append(_compat.tool_outputs(tools, [_compat.run_tool_call(tools, called, state, runtime, config)]))
        results.append(threading.get_ident())

    graph(node).invoke({"messages": []})
    theirs, ours, here = results
    assert [(m.content, m.tool_call_id, m.name) for m in ours["messages"]] == [("nothing at home", "c1", "look")]
    assert ours == theirs
    assert seen[0][:-1] == seen[1][:-1] == ("home", "c1", state, None)
    assert seen[1][-1] == here


async def test_arun_tool_call_is_what_tool_node_does() -> None:
    seen: list[tuple[Any, ...]] = []

    @tool
    async def look(place: str, runtime: ToolRuntime) -> str:
        """Look somewhere."""
        seen.append((place, runtime.tool_call_id, runtime.state, runtime.store))
        return f"nothing at {place}"

    called = tool_call("look", {"place": "home"}, "c1")
    state: Any = {"messages": [ai("", called)]}
    tools = ToolNode([look])
    results: list[Any] = []

    async def node(given: Any, config: RunnableConfig) -> None:
        with_state = {"__type": "tool_call_with_context", "tool_call": called, "state": state}
        results.append(await tools.ainvoke(with_state, config))
        output = await _compat.arun_tool_call(tools, called, state, get_runtime(), config)
        results.append(_compat.tool_outputs(tools, [output]))

    await graph(node).ainvoke({"messages": []})
    theirs, ours = results
    assert [(m.content, m.tool_call_id, m.name) for m in ours["messages"]] == [("nothing at home", "c1", "look")]
    assert ours == theirs
    assert seen[0] == seen[1] == ("home", "c1", state, None)


def joined(notes: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*notes, *(note for write in writes for note in write)]


class Notes(TypedDict):
    notes: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=2)]


def test_a_delta_snapshot_is_the_whole_value_of_a_history_in_a_checkpoint() -> None:
    builder = StateGraph(Notes)
    builder.add_node("node", lambda state: {"notes": ["b"]})
    builder.add_edge(START, "node")
    saver = InMemorySaver()
    builder.compile(checkpointer=saver).invoke({"notes": ["a"]}, thread("t"))
    found = saver.get_tuple(thread("t"))
    assert found is not None
    assert found.checkpoint["channel_values"]["notes"] == _compat.DeltaSnapshot(["a", "b"])


def test_a_checkpoint_tells_what_it_would_go_on_with() -> None:
    """Before the input, a node, a `Send`, and a question; and at the end nothing."""

    def asks(state: Any) -> None:
        interrupt("?")

    builder = StateGraph(MessagesState)
    builder.add_node("first", lambda state: {"messages": ["hi"]})
    builder.add_node("sent", lambda state: None)
    builder.add_node("asks", asks)
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", lambda state: [Send("sent", state)], ["sent"])
    builder.add_edge("sent", "asks")
    saver = InMemorySaver()
    made = builder.compile(checkpointer=saver)
    made.invoke({"messages": []}, thread("t"))
    rows = [*saver.list(thread("t"))]
    assert [_compat.waiting_nodes(row.checkpoint) for row in rows] == [["asks"], ["sent"], ["first"], ["__start__"]]
    assert [channel for _, channel, _ in rows[0].pending_writes or ()] == [_compat.INTERRUPT]
    fields = {channel for row in rows for channel in row.checkpoint["channel_versions"]}
    assert {channel for channel in fields if not _compat.is_hidden_channel(channel)} == {"messages"}
    made.invoke(Command(resume="yes"), thread("t"))
    newest = saver.get_tuple(thread("t"))
    assert newest is not None
    assert _compat.waiting_nodes(newest.checkpoint) == []


def test_an_edge_without_a_reader_is_given_what_its_node_returned() -> None:
    given: list[Any] = []

    class Choice(Runnable[Any, Any]):
        name = "Choice"

        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> str:
            given.append(input)
            return END

    builder = StateGraph(MessagesState)
    builder.add_node("one", lambda state: {"messages": []})
    builder.add_edge(START, "one")
    builder.add_conditional_edges("one", Choice(), [END])
    compiled: list[Any] = [builder.compile(), builder.compile()]
    _compat.without_reader(compiled[1], "one", "Choice")
    for graph in compiled:
        graph.invoke({"messages": "hi"})
    read, returned = given
    assert [message.text for message in read["messages"]] == ["hi"]
    assert returned == {"messages": []}


def test_langchains_jump_edge_is_known_from_its_other_edges() -> None:
    class Jumps(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["end"])
        def before_model(self, state: Any, runtime: Any) -> None: ...

    def echo(text: str) -> str:
        """Say it."""
        return text

    drawn: Any = langchain_create_agent(ScriptedModel("x"), [echo], middleware=[Jumps()])
    edges = {name: [b.path.func for b in branches.values()] for name, branches in drawn.builder.branches.items()}
    assert {name: [_compat.is_jump_edge(edge) for edge in found] for name, found in edges.items()} == {
        "Jumps.before_model": [True],
        "model": [False],
        "tools": [False],
    }


def test_task_config_is_what_the_engine_gives_a_task() -> None:
    """One that `Send` starts in the next step, made by the step before it."""
    configs: list[Any] = []

    def first(state: Any, config: RunnableConfig) -> Any:
        step, last = _compat.steps_of(config)
        assert (step, last - step) == (1, 7)
        configs.append(_compat.task_config(config, "sent", step + 1, lambda fields: {}, ["messages"], 0))
        return Command(goto=Send("sent", {}))

    builder = StateGraph(MessagesState)
    builder.add_node("first", first)
    builder.add_node("sent", lambda state, config: configs.append(config))
    builder.add_edge(START, "first")
    builder.compile().invoke({"messages": []}, {"recursion_limit": 8, "metadata": {"who": "ann"}})
    ours, theirs = configs
    varying = {"langgraph_checkpoint_ns", "checkpoint_ns"}
    kept = [{key: value for key, value in each["metadata"].items() if key not in varying} for each in (ours, theirs)]
    assert kept[0] == kept[1]
    assert ours["configurable"].keys() >= theirs["configurable"].keys()
    for config in (ours, theirs):
        inner, here = config["configurable"], config["configurable"]["__pregel_runtime"].execution_info
        assert inner["checkpoint_ns"] == config["metadata"]["langgraph_checkpoint_ns"] == here.checkpoint_ns
        assert inner["checkpoint_ns"] == f"sent:{here.task_id}" == f"sent:{inner['__pregel_task_id']}"
        assert (inner["__pregel_scratchpad"].step, inner["__pregel_scratchpad"].interrupt_counter()) == (2, 0)
        assert inner["__pregel_read_state"] is not None
    assert ours["run_name"] == "sent"
