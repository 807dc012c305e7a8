"""From a model request to a bound model: which tools and schema it is asked with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, Final

from langchain.agents.middleware import ModelRequest
from langchain.agents.structured_output import AutoStrategy, OutputToolBinding, ProviderStrategy, ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.tools import BaseTool

from agentkit import structured
from agentkit.errors import ConfigurationError

__all__ = ["Binder", "Binding", "BoundModel"]

_BOUND_MODELS: Final = 64  # per agent; each request with other tools is one


@dataclass(frozen=True, slots=True)
class BoundModel:
    """A model, and what it is called with beside the messages."""

    model: Runnable[Any, AIMessage]
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, bound: Runnable[Any, AIMessage]) -> BoundModel:
        """What `bind_tools` gave. LangChain's wrapper is taken off, which merges each config with an empty one."""
        options: dict[str, Any] = {}
        while isinstance(bound, RunnableBinding) and _only_binds(bound):
            options = {**bound.kwargs, **options}
            bound = bound.bound
        return cls(bound, options)

    def invoke(self, messages: Sequence[AnyMessage], config: RunnableConfig | None) -> AIMessage:
        """Call it."""
        return self.model.invoke(messages, config, **self.options)

    async def ainvoke(self, messages: Sequence[AnyMessage], config: RunnableConfig | None) -> AIMessage:
        """As `invoke`."""
        return await self.model.ainvoke(messages, config, **self.options)


@dataclass(frozen=True, slots=True)
class Binding:
    """How one request is put to the model, and how its reply is read."""

    model: BoundModel
    strategy: structured.Chosen | None = None
    offered: Mapping[str, OutputToolBinding[Any]] = field(default_factory=dict)
    """The tools that stand for a structured answer, by name."""


@dataclass(frozen=True)
class Binder:
    """Binds requests.

    Attributes:
        response_format: The format the agent was built with.
        executable: Names of the tools that the agent can run.
        dynamic: Whether a wrap may supply tools that the agent does not know.
    """

    response_format: structured.Format | None = None
    executable: Collection[str] = frozenset()
    dynamic: bool = False

    @cached_property
    def declared(self) -> dict[str, OutputToolBinding[Any]]:
        """The tools that stand for the built format's schemas, by name."""
        return structured.tools_of(self.response_format)

    def bind(self, request: ModelRequest[Any]) -> Binding:
        """Bind the model of a request.

        Raises:
            ValueError: If the request offers tools that nothing can run.
        """
        if not self.dynamic:
            self._refuse_unknown(request)
        given = structured.normalise(request.response_format)
        strategy = structured.effective(given, request.model, bool(request.tools))
        settings = request.model_settings
        if isinstance(strategy, ProviderStrategy):
            options = {**strategy.to_model_kwargs(), **settings}
            if _wants_strict(request.model):
                options["strict"] = True
            return Binding(BoundModel.of(request.model.bind_tools(request.tools, **options)), strategy)
        if isinstance(strategy, ToolStrategy):
            offered = self._offered(given, strategy)
            _refuse_shadowed(request, offered)
            tools = [*request.tools, *(binding.tool for binding in offered.values())]
            return Binding(self._with_tools(request, tools, "any"), strategy, offered)
        if request.tools:
            return Binding(self._with_tools(request, request.tools, request.tool_choice))
        return Binding(BoundModel.of(request.model.bind(**settings)))

    def _with_tools(self, request: ModelRequest[Any], tools: Sequence[Any], choice: Any) -> BoundModel:
        """The model with tools. Their schemas are made once: that takes longer than the rest of a turn."""
        if request.model_settings:
            return BoundModel.of(request.model.bind_tools(tools, tool_choice=choice, **request.model_settings))
        look = (id(request.model), repr(choice), *map(_look_of, tools))
        return self._bound(_Offer(look, request.model, tuple(tools), choice))

    @cached_property
    def _bound(self) -> Callable[[_Offer], BoundModel]:
        return lru_cache(maxsize=_BOUND_MODELS)(_bind)

    def _offered(self, given: Any, strategy: ToolStrategy[Any]) -> dict[str, OutputToolBinding[Any]]:
        """The strategy's tools, those that the agent was built with under the name they had there."""
        if isinstance(given, AutoStrategy) and given is self.response_format:
            return self.declared  # an anonymous schema keeps the name it was given
        names = {spec.name for spec in strategy.schema_specs}
        if names <= self.declared.keys():
            return {name: binding for name, binding in self.declared.items() if name in names}
        return structured.tools_of(strategy)

    def _refuse_unknown(self, request: ModelRequest[Any]) -> None:
        tools: Sequence[Any] = request.tools
        unknown = [t.name for t in tools if _is_tool(t.__class__) and t.name not in self.executable]
        if unknown:
            raise ConfigurationError(_UNKNOWN_TOOLS.format(unknown=unknown, known=sorted(self.executable)))


@dataclass(frozen=True, slots=True)
class _Offer:
    """A model and what it is bound with. Holds them, so that no other object gets their identity meanwhile."""

    look: tuple[Any, ...]
    """What makes two offers the same."""
    model: BaseChatModel = field(compare=False)
    tools: Sequence[Any] = field(compare=False)
    choice: Any = field(compare=False)


def _bind(offer: _Offer) -> BoundModel:
    return BoundModel.of(offer.model.bind_tools(list(offer.tools), tool_choice=offer.choice))


def _only_binds(bound: RunnableBinding[Any, Any]) -> bool:
    """Whether a wrapper adds arguments and nothing else."""
    kind = type(bound)
    if kind.invoke is not RunnableBinding.invoke or kind.ainvoke is not RunnableBinding.ainvoke:
        return False
    return not (bound.config or bound.config_factories)


def _look_of(tool: Any) -> Any:
    """What a tool's schema is made of, so that a change in place is seen."""
    if _is_tool(tool.__class__):
        return id(tool), tool.name, tool.description, id(tool.args_schema), id(tool.extras)
    return repr(tool) if isinstance(tool, dict) else id(tool)


@cache
def _is_tool(kind: type) -> bool:
    """Whether objects of a class are tools; pydantic takes long to say so of each."""
    return issubclass(kind, BaseTool)


def _refuse_shadowed(request: ModelRequest[Any], offered: Collection[str]) -> None:
    shadowed = [t.name for t in request.tools if isinstance(t, BaseTool) and t.name in offered]
    if shadowed:
        raise ConfigurationError(
            f"the structured answer and a tool share the name {shadowed[0]!r}; rename one of them."
        )


def _wants_strict(model: Any) -> bool:
    """Whether tools have to be marked strict beside a native schema: OpenAI's chat completions."""
    module = sys.modules.get("langchain_openai.chat_models.base")  # not imported: no such model can be there
    return (
        module is not None
        and isinstance(model, module.BaseChatOpenAI)
        and not getattr(model, "use_responses_api", False)
    )


_UNKNOWN_TOOLS = """Middleware added tools that the agent cannot run.

Unknown tools: {unknown}
Registered tools: {known}

Either pass them to `create_agent(tools=[...])` or set them as `middleware.tools`, or write a `wrap_tool_call` that
supplies the tool for such a call: `handler(request.override(tool=my_tool))`."""
