"""What the model is asked with: which tools in which order, which schema, which settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableBinding
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, PrivateAttr, SecretStr

from agentkit import create_agent
from agentkit.binding import Binder
from agentkit.errors import ConfigurationError, DuplicateTool
from agentkit.testing import ScriptedModel, ai, tool_call


class Answer(BaseModel):
    value: int


class Other(BaseModel):
    text: str


@tool
def alpha(x: int) -> str:
    """Alpha."""
    return "a"


@tool
def beta(x: int) -> str:
    """Beta."""
    return "b"


def gamma(x: int) -> str:
    """Gamma."""
    return "c"


PROVIDER_TOOL = {"type": "web_search"}


class Brings(AgentMiddleware[Any, Any, Any]):
    """Brings tools."""

    def __init__(self, *tools: Any) -> None:
        super().__init__()
        self.tools = tools


class Overrides(AgentMiddleware[Any, Any, Any]):
    """Overrides the request."""

    def __init__(self, change: Callable[[ModelRequest[Any]], dict[str, Any]]) -> None:
        super().__init__()
        self.change = change

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(**self.change(request)))


def asked(model: ScriptedModel, **arguments: Any) -> Any:
    """The first request of an agent."""
    create_agent(model, **arguments).invoke({"messages": "hi"})
    return model.requests[0]


def test_tools_stand_in_order_middlewares_first_then_the_callers_then_the_providers() -> None:
    request = asked(ScriptedModel("done"), tools=[PROVIDER_TOOL, gamma, alpha], middleware=[Brings(beta), Brings()])
    assert request.tools == ["beta", "gamma", "alpha", "web_search"]


def test_a_wrap_sees_tools_as_tools_and_not_the_structured_ones() -> None:
    seen: list[Any] = []

    class Looks(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.extend(request.tools)
            return handler(request)

    model = ScriptedModel(ai("", tool_call("Answer", {"value": 1})))
    asked(model, tools=[gamma, PROVIDER_TOOL], middleware=[Looks()], response_format=ToolStrategy(Answer))
    assert [getattr(one, "name", one) for one in seen] == ["gamma", PROVIDER_TOOL]
    assert model.requests[0].tools == ["gamma", "web_search", "Answer"]


def test_without_tools_the_model_is_bound_and_not_given_any() -> None:
    model = ScriptedModel("done")
    asked(model)
    assert model.binds == []


def test_model_settings_reach_the_model_for_that_call_only() -> None:
    once = iter([{"stop": ["END"], "temperature": 0.5}, {}])
    model = ScriptedModel(ai("", tool_call("alpha", {"x": 1})), "done")
    middleware = [Overrides(lambda request: {"model_settings": next(once)})]
    create_agent(model, [alpha], middleware=middleware).invoke({"messages": "hi"})
    assert model.requests[0].kwargs == {"stop": ["END"], "temperature": 0.5}
    assert model.requests[1].kwargs == {}


@pytest.mark.parametrize("tools", [[], [alpha]], ids=["no tools", "tools"])
def test_model_settings_with_and_without_tools(tools: list[Any]) -> None:
    middleware = [Overrides(lambda request: {"model_settings": {"temperature": 0.5}})]
    assert asked(ScriptedModel("done"), tools=tools, middleware=middleware).kwargs == {"temperature": 0.5}


@pytest.mark.parametrize("strategy", [ToolStrategy(Answer), ProviderStrategy(Answer)], ids=["tool", "provider"])
def test_model_settings_beside_a_structured_answer(strategy: Any) -> None:
    middleware = [Overrides(lambda request: {"model_settings": {"temperature": 0.5}})]
    step = (
        ai('{"value": 1}', tool_call("Answer", {"value": 1})) if isinstance(strategy, ToolStrategy) else '{"value": 1}'
    )
    request = asked(ScriptedModel(step), tools=[alpha], middleware=middleware, response_format=strategy)
    assert request.kwargs["temperature"] == 0.5
    assert ("response_format" in request.kwargs) is isinstance(strategy, ProviderStrategy)


def test_a_wrap_sets_tool_choice() -> None:
    request = asked(ScriptedModel("done"), tools=[alpha], middleware=[Overrides(lambda r: {"tool_choice": "alpha"})])
    assert request.tool_choice == "alpha"


def test_a_wrap_may_drop_tools_and_change_model_and_prompt() -> None:
    other = ScriptedModel("from the other")

    def change(request: ModelRequest[Any]) -> dict[str, Any]:
        return {"model": other, "tools": request.tools[:1], "system_message": SystemMessage("new")}

    agent = create_agent(ScriptedModel(), [alpha, beta], middleware=[Overrides(change)], system_prompt="old")
    assert agent.invoke({"messages": "hi"})["messages"][-1].text == "from the other"
    assert (other.requests[0].tools, other.requests[0].messages[0].text) == (["alpha"], "new")


def test_a_wrap_may_narrow_a_union_and_only_that_is_offered() -> None:
    model = ScriptedModel(ai("", tool_call("Other", {"text": "t"})))
    middleware = [Overrides(lambda request: {"response_format": ToolStrategy(Other)})]
    agent = create_agent(model, middleware=middleware, response_format=ToolStrategy(Answer | Other))
    assert agent.invoke({"messages": "hi"})["structured_response"] == Other(text="t")
    assert model.requests[0].tools == ["Other"]


# ---- OpenAI's `strict`


class Recorded(ChatOpenAI):
    """Notes how its tools are bound; newer versions of langchain-openai make them strict by themselves."""

    _bound: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        self._bound.append(kwargs)
        return super().bind_tools(tools, **kwargs)


@pytest.mark.parametrize(
    ("responses_api", "strict"), [(False, True), (True, None)], ids=["chat completions", "responses"]
)
def test_openai_tools_are_strict_beside_a_native_schema(responses_api: bool, strict: bool | None) -> None:
    model = Recorded(model="gpt-5.5", api_key=SecretStr("k"), use_responses_api=responses_api)
    request: Any = ModelRequest(model=model, messages=[], tools=[alpha], response_format=ProviderStrategy(Answer))
    bound: Any = Binder(request.response_format, {"alpha"}).bind(request).model
    assert [kwargs.get("strict") for kwargs in model._bound] == [strict]
    assert [one.get("function", one).get("strict") for one in bound.options["tools"]] == [strict]


def test_openai_tools_are_as_the_user_made_them_without_a_schema() -> None:
    request: Any = ModelRequest(model=ChatOpenAI(model="gpt-5.5", api_key=SecretStr("k")), messages=[], tools=[alpha])
    bound: Any = Binder(None, {"alpha"}).bind(request).model
    assert "strict" not in bound.options["tools"][0]["function"]


# ---- refused


def test_a_tool_that_nothing_can_run_is_refused_with_both_lists() -> None:
    with pytest.raises(ConfigurationError, match=r"(?s)Unknown tools: \['beta'\].*Registered tools: \['alpha'\]"):
        asked(ScriptedModel("x"), tools=[alpha], middleware=[Overrides(lambda r: {"tools": [*r.tools, beta]})])


def test_with_a_tool_wrap_it_may_be_supplied_there() -> None:
    class Supplies(Overrides):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tool=beta))

    model = ScriptedModel(ai("", tool_call("beta", {"x": 1})), "done")
    agent = create_agent(model, middleware=[Supplies(lambda r: {"tools": [beta]})])
    assert agent.invoke({"messages": "hi"})["messages"][2].text == "b"


def _twin() -> Any:
    @tool("alpha")
    def twin(x: int) -> str:
        """Another alpha."""
        return "twin"

    return twin


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"tools": [alpha, _twin()]}, "'alpha': one from `tools`, one from `tools`"),
        ({"tools": [alpha], "middleware": [Brings(_twin())]}, "'alpha': one from middleware Brings, one from `tools`"),
    ],
)
def test_two_tools_of_one_name_are_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(DuplicateTool, match=told) as caught:
        create_agent(ScriptedModel("x"), **arguments)
    assert caught.value.name == "alpha"


def test_a_tool_named_as_a_structured_answer_is_refused() -> None:
    @tool("Answer")
    def answer(value: int) -> str:
        """Answer."""
        return "a"

    with pytest.raises(DuplicateTool, match="'Answer': one from `response_format`"):
        create_agent(ScriptedModel("x"), [answer], response_format=ToolStrategy(Answer))


def test_a_schema_that_a_wrap_brings_may_not_shadow_a_tool() -> None:
    @tool("Other")
    def other(text: str) -> str:
        """Other."""
        return "o"

    middleware = [Overrides(lambda request: {"response_format": ToolStrategy(Other)})]
    with pytest.raises(ConfigurationError, match="'Other'"):
        asked(ScriptedModel("x"), tools=[other], middleware=middleware)


def test_the_same_tool_twice_is_one_tool() -> None:
    assert asked(ScriptedModel("done"), tools=[alpha, alpha], middleware=[Brings(alpha)]).tools == ["alpha"]


# ---- what a model is called with


class Says(BaseChatModel):
    """Binds as providers do, and says what it was called with."""

    @property
    def _llm_type(self) -> str:
        return "says"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[tool.name for tool in tools], **kwargs)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        called.append((kwargs, stop, "mine" in run_manager.tags, run_manager.metadata.get("by")))
        return ChatResult(generations=[ChatGeneration(message=ai("x"))])


called: list[Any] = []


class Loud(RunnableBinding[Any, Any]):
    """A wrapper that does something of its own."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        called.append("loud")
        return super().invoke(input, config, **kwargs)


@pytest.mark.parametrize(
    ("wrapped", "expected"),
    [
        (lambda bound: bound, [({"tools": ["alpha"], "tool_choice": None}, None, False, None)]),
        (
            lambda bound: bound.bind(tool_choice="any", stop=["x"]),
            [({"tools": ["alpha"], "tool_choice": "any"}, ["x"], False, None)],
        ),
        (
            lambda bound: bound.with_config(tags=["mine"], metadata={"by": "me"}),
            [({"tools": ["alpha"], "tool_choice": None}, None, True, "me")],
        ),
        (lambda bound: Loud(bound=bound), ["loud", ({"tools": ["alpha"], "tool_choice": None}, None, False, None)]),
    ],
    ids=["bound", "bound twice", "with a config", "a wrapper of its own kind"],
)
def test_a_bound_model_is_called_as_its_wrapper_calls_it(wrapped: Any, expected: list[Any]) -> None:
    called.clear()

    class Wrapped(Says):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return wrapped(super().bind_tools(tools, **kwargs))

    create_agent(Wrapped(), [alpha]).invoke({"messages": "hi"})
    assert called == expected
