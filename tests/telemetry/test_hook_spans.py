"""`hook_spans=True`: each call of a middleware's hook is a span, and is timed without what it wraps."""

from __future__ import annotations

import time
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from agentkit import Middleware, thread
from agentkit.testing import EntryPoint, ScriptedModel, ai, run, tool_call


class Slow(Middleware):
    """Has hooks of each kind."""

    def before_model(self, state: Any, runtime: Any) -> None:
        """Nothing."""

    def after_model(self, state: Any, runtime: Any) -> None:
        """Nothing."""

    async def aafter_model(self, state: Any, runtime: Any) -> None:
        """Nothing."""

    def wrap_model_call(self, request: Any) -> Any:
        """Once more."""
        try:
            return (yield request)
        except TimeoutError:
            return (yield request)

    def wrap_tool_call(self, request: Any) -> Any:
        """As it is."""
        return (yield request)


class Plain(AgentMiddleware[Any, Any, Any]):
    """LangChain's own kind."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


def look(text: str = "") -> str:
    """Look something up."""
    return "found"


@pytest.fixture
def hooked(recorder: Any) -> Any:
    """Records hooks too."""
    recorder.options["hook_spans"] = True
    return recorder


def test_each_call_of_a_hook_is_a_span_where_it_happens(hooked: Any, entry: EntryPoint) -> None:
    model = ScriptedModel(ai("", tool_call("look")), TimeoutError("x"), "done")
    run(hooked.create(model, [look], middleware=[Slow(), Plain()], name="a"), "hi", entry=entry)
    assert hooked.tree() == [
        "invoke_agent a",
        "  hook Slow.before_model",
        "  hook Slow.wrap_model_call",
        "    hook Plain.wrap_model_call",
        "      chat",
        "  hook Slow.after_model",
        "  execute_tool look",
        "    hook Slow.wrap_tool_call",
        "  hook Slow.before_model",
        "  hook Slow.wrap_model_call",
        "    hook Plain.wrap_model_call TimeoutError",
        "      chat TimeoutError",
        "    hook Plain.wrap_model_call",
        "      chat",
        "  hook Slow.after_model",
    ]
    assert hooked.findings() == []


def test_what_a_wrap_wraps_is_not_its_own_time(hooked: Any, entry: EntryPoint) -> None:
    def slowly(request: Any) -> Any:
        time.sleep(0.03)
        return ai("done")

    run(hooked.create(ScriptedModel(slowly), middleware=[Slow(), Plain()]), "hi", entry=entry)
    points = {
        (point.attributes["agentkit.hook.middleware"], point.attributes["agentkit.hook.name"]): point.sum
        for point in hooked.points("agentkit.hook.duration")
    }
    spans = {
        span.attributes.get("agentkit.hook.middleware"): span for span in hooked.named("hook") if "wrap" in span.name
    }
    assert points.keys() >= {("Slow", "before_model"), ("Slow", "wrap_model_call"), ("Plain", "wrap_model_call")}
    for name in ("Slow", "Plain"):
        whole = (spans[name].end_time - spans[name].start_time) / 1e9
        assert whole >= 0.03
        assert points[(name, "wrap_model_call")] <= whole - 0.03


def test_a_hook_that_fails_or_pauses(hooked: Any, entry: EntryPoint) -> None:
    class Gate(Middleware):
        def before_model(self, state: Any, runtime: Any) -> None:
            if state["messages"][-1].text == "ask":
                interrupt("may I?")
            raise ValueError("secret")

    agent = hooked.create(ScriptedModel("x"), middleware=[Gate()], checkpointer=InMemorySaver(), name="a")
    run(agent, "ask", thread("1"), entry=entry)
    run(agent, "go", thread("2"), entry=entry, catch=True)
    assert hooked.tree() == [
        "invoke_agent a interrupted",
        "  hook Gate.before_model interrupted",
        "invoke_agent a error ValueError",
        "  hook Gate.before_model ValueError",
    ]
    assert "secret" not in "".join(span.to_json() for span in hooked.spans)
    assert hooked.findings() == []


def test_without_the_option_there_are_none(recorder: Any) -> None:
    run(recorder.create(ScriptedModel("done"), middleware=[Slow(), Plain()]), "hi")
    assert recorder.named("hook") == []
    assert recorder.points("agentkit.hook.duration") == []
