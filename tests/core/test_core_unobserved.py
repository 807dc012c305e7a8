"""When a run at granularity `"turn"` is one step of the graph: where nobody can see that it is, and only there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Annotated, Any

import pytest
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager, get_usage_metadata_callback
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers.context import collect_runs
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.managed.is_last_step import RemainingStepsManager
from langgraph.store.memory import InMemoryStore
from langsmith import Client, tracing_context

from agentkit import Middleware, create_agent, thread
from agentkit.testing import ScriptedModel, ai, tool_call

GO: Any = {"messages": "hi"}
TURNS = 3


class Steps(AgentMiddleware[Any, Any, Any]):
    """Notes the checkpoint that each turn starts from: each step of the graph has its own."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def before_model(self, state: Any, runtime: Any) -> None:
        self.seen.append(runtime.execution_info.checkpoint_id)

    @property
    def are_one(self) -> bool:
        """Whether all turns were one step."""
        assert len(self.seen) == TURNS
        return len(set(self.seen)) == 1


def look() -> str:
    """Look around."""
    return "seen"


def agent_of(steps: Steps, *middleware: Any, **more: Any) -> Any:
    script = [ai("", tool_call("look", {}, f"c{n}")) for n in range(TURNS - 1)]
    return create_agent(
        ScriptedModel(*script, "done"), [look], middleware=[steps, *middleware], granularity="turn", **more
    )


UNSEEN: dict[str, Callable[[Any], object]] = {
    "invoke": lambda agent: agent.invoke(GO),
    "ainvoke": lambda agent: asyncio.run(agent.ainvoke(GO)),
    "with an id and tags": lambda agent: agent.invoke(GO, thread("t", tags=["x"], metadata={"who": "ann"})),
    "with a context": lambda agent: agent.invoke(GO, context={"user": "ann"}),
    "one field of the result": lambda agent: agent.invoke(GO, output_keys="messages"),
    "version 2": lambda agent: agent.invoke(GO, version="v2"),
    "a batch": lambda agent: agent.batch([GO]),
    "no callbacks": lambda agent: agent.invoke(GO, {"callbacks": []}),
    "in a chain": lambda agent: RunnableLambda(lambda given: agent.invoke(given)).invoke(GO),
}


@pytest.mark.parametrize("call", UNSEEN.values(), ids=UNSEEN.keys())
def test_a_run_that_nobody_observes_is_one_step(call: Callable[[Any], object]) -> None:
    steps = Steps()
    call(agent_of(steps))
    assert steps.are_one


def heard() -> Any:
    return {"callbacks": [BaseCallbackHandler()]}


async def _through(stream: Any) -> None:
    async for _ in stream:
        pass


def collected(agent: Any) -> None:
    with collect_runs() as runs:
        agent.invoke(GO)
    assert runs.traced_runs


def metered(agent: Any) -> None:
    with get_usage_metadata_callback():
        agent.invoke(GO)


class Accepts(BaseHTTPRequestHandler):
    """A tracing service that takes everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_PATCH = do_GET = do_POST

    def log_message(self, *args: Any) -> None: ...


def traced(agent: Any) -> None:
    with HTTPServer(("127.0.0.1", 0), Accepts) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        client = Client(api_url=f"http://127.0.0.1:{server.server_port}", api_key="none", auto_batch_tracing=False)
        with tracing_context(enabled=True, client=client):
            agent.invoke(GO)
        server.shutdown()


def instrumented(agent: Any) -> None:
    """As instrumentations do it that hear every run of the process."""
    original: Any = BaseCallbackManager.__init__

    def patched(manager: Any, *args: Any, **kwargs: Any) -> None:
        original(manager, *args, **kwargs)
        manager.add_handler(BaseCallbackHandler())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseCallbackManager, "__init__", patched)
        agent.invoke(GO)


def in_a_node(agent: Any) -> None:
    graph: Any = StateGraph(AgentState)
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    graph.compile().invoke(GO)


def in_a_streamed_node(agent: Any) -> None:
    graph: Any = StateGraph(AgentState)
    graph.add_node("agent", lambda state: agent.invoke(state))
    graph.add_edge(START, "agent")
    assert len(list(graph.compile().stream(GO, subgraphs=True))) > TURNS


def in_a_stored_node(agent: Any) -> None:
    graph: Any = StateGraph(AgentState)
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    graph.compile(checkpointer=InMemorySaver()).invoke(GO, thread("t"))


def in_a_tool(agent: Any, *config: Any) -> None:
    @tool
    def ask() -> str:
        """Ask another agent."""
        return str(agent.invoke(GO, *config)["messages"][-1].text)

    create_agent(ScriptedModel(ai("", tool_call("ask", {}, "c")), "done"), [ask], granularity="turn").invoke(GO)


SEEN: dict[str, Callable[[Any], object]] = {
    "stream": lambda agent: list(agent.stream(GO)),
    "astream": lambda agent: asyncio.run(_through(agent.astream(GO))),
    "events": lambda agent: asyncio.run(_through(agent.astream_events(GO, version="v2"))),
    "invoke that returns updates": lambda agent: agent.invoke(GO, stream_mode="updates"),
    "invoke that pauses": lambda agent: agent.invoke(GO, interrupt_after=["nowhere"]),
    "a callback": lambda agent: agent.invoke(GO, heard()),
    "async, a callback": lambda agent: asyncio.run(agent.ainvoke(GO, heard())),
    "the agent's callback": lambda agent: agent.with_config(heard()).invoke(GO),
    "a callback around it": lambda agent: RunnableLambda(lambda given: agent.invoke(given)).invoke(GO, heard()),
    "runs that are collected": collected,
    "a meter": metered,
    "tracing switched on later": traced,
    "an instrumentation": instrumented,
    "in a node": in_a_node,
    "in a streamed node": in_a_streamed_node,
    "in a stored node": in_a_stored_node,
    "in a tool": in_a_tool,
    "in a tool, with a thread of its own": lambda agent: in_a_tool(agent, thread("own")),
}


@pytest.mark.parametrize("call", SEEN.values(), ids=SEEN.keys())
def test_one_that_somebody_observes_is_not(call: Callable[[Any], object]) -> None:
    steps = Steps()
    call(agent_of(steps))
    assert not steps.are_one


class Watches(Middleware):
    """Watches runs, while it is asked to."""

    is_watching = True

    def around_run(self, run: Any) -> Any:
        yield


class Counted(AgentState[Any]):
    left: Annotated[int, PrivateStateAttr, RemainingStepsManager]


@pytest.mark.parametrize(
    "more",
    [{"checkpointer": InMemorySaver()}, {"debug": True}, {"state_schema": Counted}],
    ids=["a saver", "printed steps", "steps that are counted in the state"],
)
def test_what_an_agent_has_that_shows_its_steps(more: dict[str, Any]) -> None:
    steps = Steps()
    agent_of(steps, **more).invoke(GO, thread("t"))
    assert not steps.are_one


def test_a_store_shows_nothing() -> None:
    steps = Steps()
    agent_of(steps, store=InMemoryStore()).invoke(GO)
    assert steps.are_one


def test_a_time_limit_for_steps_is_one_for_each() -> None:
    steps = Steps()
    agent = agent_of(steps)
    agent.step_timeout = 60
    agent.invoke(GO)
    assert not steps.are_one


@pytest.mark.parametrize("watching", [True, False])
def test_a_run_wide_hook_observes_while_it_watches(watching: bool) -> None:
    steps, watches = Steps(), Watches()
    watches.is_watching = watching
    agent_of(steps, watches).invoke(GO)
    assert steps.are_one is not watching


def test_at_granularity_hook_it_never_is() -> None:
    steps = Steps()
    script = [ai("", tool_call("look", {}, f"c{n}")) for n in range(TURNS - 1)]
    create_agent(ScriptedModel(*script, "done"), [look], middleware=[steps]).invoke(GO)
    assert not steps.are_one
