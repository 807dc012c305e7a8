"""`create_agent`: from arguments to a compiled agent."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ResponseFormat
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.cache.base import BaseCache
from langgraph.prebuilt import ToolCallTransformer, ToolNode
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer
from pydantic import ValidationError

from agentkit import structured
from agentkit._compat import SubagentTransformer, node_trace_policy
from agentkit.binding import Binder
from agentkit.chain import Layer
from agentkit.checkpoint.allowed import declare
from agentkit.configured import only_model
from agentkit.contract import contract_of
from agentkit.errors import ConfigurationError, DuplicateTool, UnknownStateField, UnknownToolName
from agentkit.graph import Drawing, without_reads
from agentkit.hook_node import HookStep
from agentkit.hooks import NODE_PHASES, Hook, Table, table, watched
from agentkit.interpreter import Step
from agentkit.limits import Limits
from agentkit.messages import MessageStorage, reducer_for
from agentkit.model_node import ModelStep, model_layer
from agentkit.ordering import arrange
from agentkit.routing import Router
from agentkit.run import Agent, AgentGraph
from agentkit.state import INNER, Schemas, merge
from agentkit.tool_node import ToolsStep, tool_layer, tool_node
from agentkit.topology import MODEL, TOOLS, Plan, plan
from agentkit.tracing import Traced

__all__ = ["create_agent"]

Tool = BaseTool | Callable[..., Any] | dict[str, Any]
Granularity = Literal["hook", "turn"]
RECURSION_LIMIT = 9_999  # LangChain's; the brakes are `Limits`


def create_agent(
    model: str | BaseChatModel,
    tools: Sequence[Tool] | None = None,
    *,
    system_prompt: str | SystemMessage | None = None,
    middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    response_format: ResponseFormat[Any] | type[Any] | dict[str, Any] | None = None,
    state_schema: type[Any] | None = None,
    context_schema: type[Any] | None = None,
    checkpointer: Checkpointer | None = None,
    store: BaseStore | None = None,
    interrupt_before: list[str] | None = None,
    interrupt_after: list[str] | None = None,
    debug: bool = False,
    name: str | None = None,
    cache: BaseCache[Any] | None = None,
    transformers: Sequence[Any] | None = None,
    limits: Limits | None = None,
    granularity: Granularity = "hook",
    message_storage: MessageStorage = "auto",
) -> AgentGraph:
    """Compile an agent: a model, its tools and a stack of middleware, as a LangGraph graph.

    A drop-in for `langchain.agents.create_agent`: the parameters up to `transformers` are its own and mean the same.

    Args:
        model: A chat model, or its name (`"openai:gpt-5.5"`).
        tools: What the model may call: LangChain tools, functions, or provider tools as dicts.
        system_prompt: Put before the messages at each call; never stored.
        middleware: LangChain or agentkit middleware. before_* hooks run in this order, after_* hooks reversed, and the
            first wrap is the outermost.
        response_format: A schema, or a strategy, for a structured answer.
        state_schema: A TypedDict that extends `AgentState`; it wins over the middlewares' schemas.
        context_schema: The type of the run's context.
        checkpointer: Where threads are kept.
        store: LangGraph's store.
        interrupt_before: Nodes to pause before.
        interrupt_after: Nodes to pause after.
        debug: Print each step.
        name: The agent's name: set on its messages, and its node's name in other graphs.
        cache: LangGraph's node cache.
        transformers: Stream transformers for `stream_events(version="v3")`.
        limits: Brakes that no healthy run meets; `Limits.none()` switches them off. Default: `Limits()`.
        granularity: What one step of the graph is. `"hook"`: each hook, model call and tool call, streamed, traced and
            checkpointed by itself. `"turn"`: the model with all hooks around it, and the tools; the same results with
            fewer steps and checkpoints. With `interrupt_before`, `interrupt_after` or state fields of other channels
            than LangGraph's usual ones, it is always `"hook"`.
        message_storage: What a checkpoint holds of the messages. `"incremental"`: those its step wrote, and from time
            to time all of them, so that a thread's size and time grow with its length. `"full"`: always all of them, so
            their cost grows with its square, but any checkpoint may be deleted. `"auto"`: incremental with a
            `checkpointer` that stores every step in a database; full without one, with `checkpointer=True`, with
            LangGraph's memory saver, and with those that keep only the last step. Threads stored either way can be read
            and continued either way.

    Returns:
        The compiled agent. `print(agent.plan)` shows its stops.

    Raises:
        ConfigurationError: If the arguments contradict each other; the message says how and where.
    """
    limits = limits or Limits()
    _refuse_single(tools, middleware)
    hooks = watched(table(middleware))
    response = structured.normalise(response_format)
    layers = {kind: _layers(hooks, kind) for kind in ("model", "tool")}
    declared = structured.tools_of(response)
    provider_tools = [tool for tool in tools or () if isinstance(tool, dict)]
    executor = _executor(hooks, tools or (), declared, layers["tool"])
    executable = executor.tools_by_name if executor else {}
    turns = granularity == "turn" and not (interrupt_before or interrupt_after)
    sequential = frozenset(name for name, tool in executable.items() if contract_of(tool).sequential)
    schemas = merge(
        [(n, m.state_schema) for n, m in _named(hooks)],
        state_schema,
        turns=turns,
        sequential=bool(sequential),
        messages=reducer_for(checkpointer, message_storage),
    )
    return_direct = frozenset(tool.name for tool in executable.values() if tool.return_direct)
    _refuse_unknown_fields(executable, hooks, schemas)
    _refuse_unknown_tools(hooks, {*executable, *declared, *map(_provided, provider_tools)})
    stops = plan(
        *(hooks.of(phase) for phase in NODE_PHASES),
        tools=executor is not None,
        structured=bool(declared),
        return_direct=bool(return_direct),
        wraps_model=bool(layers["model"][0]),
    )
    binder = Binder(response, frozenset(executable), dynamic=bool(layers["tool"][0]))
    step = ModelStep(
        model=_made(model) if isinstance(model, str) else model,
        binder=binder,
        tools=[*executable.values(), *provider_tools],
        system_message=SystemMessage(system_prompt) if isinstance(system_prompt, str) else system_prompt,
        name=name,
        limits=limits,
        plain=schemas.plain,
        sync_layers=layers["model"][0],
        async_layers=layers["model"][1],
    )
    tools_step = ToolsStep(executor, tuple(schemas.visible.__annotations__), sequential) if executor else None
    steps = _steps(stops, hooks, step, tools_step, bool(interrupt_before or interrupt_after))
    drawing = Drawing(
        plan=stops,
        steps=steps,
        router=Router(stops, frozenset(declared), return_direct, frozenset(executable), sequential),
        schemas=schemas,
        policies={hook.node: node_trace_policy(hook.middleware.trace_policy) for hook in hooks.hooks},
        context_schema=context_schema,
    )
    allow: Callable[..., None] = getattr(checkpointer, "allow", declare)  # our saver keeps its own account of them
    allow(schemas.state, *structured.schemas_of(response))
    turns = turns and drawing.can_fold()
    compiled = (drawing.by_turn() if turns else drawing.by_hook()).compile(
        checkpointer=checkpointer,
        store=store,
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
        debug=debug,
        name=name,
        cache=cache,
        transformers=_transformers(hooks, transformers or ()),
    )
    compiled = without_reads(compiled)
    compiled.stream_channels = [channel for channel in compiled.stream_channels_asis if channel not in INNER]
    around = [around for m in hooks.middleware if (around := getattr(m, "around_run", None)) is not None]
    pauses = any(getattr(m, "pauses_tools", False) for m in hooks.middleware)
    named = only_model(step.model, hooks) if around else None
    logical = (lambda: drawing.by_hook().compile(name=name)) if turns else None
    through = turns and drawing.can_go_through()
    agent = AgentGraph(agent=Agent(stops, limits, around, logical, through, pauses, hooks, named), **vars(compiled))
    return agent.with_config(_config(name))


def _layers(hooks: Table, kind: str) -> tuple[list[Layer], list[Layer]]:
    """The wraps of one kind as layers, sync and async, outermost first."""
    phase: Any = f"wrap_{kind}_call"
    rows = arrange(hooks.of(phase), kind)
    return [_layer(row, row.sync, "") for row in rows], [_layer(row, row.asynchronous, "a") for row in rows]


def _layer(hook: Hook, form: Callable[..., Any] | None, prefix: str) -> Layer:
    assert form is not None
    traced: Callable[..., Any] = form
    if not getattr(hook.middleware, "only_listens", False):
        traced = Traced(form, f"{hook.name}.{prefix}{hook.phase}", hook.middleware.trace_policy)
    return model_layer(traced, hook.name) if hook.phase == "wrap_model_call" else tool_layer(traced)


def _executor(
    hooks: Table, tools: Sequence[Tool], declared: Mapping[str, Any], layers: tuple[list[Layer], list[Layer]]
) -> ToolNode | None:
    """What runs the tools; also there without tools where a wrap may supply some."""
    sources: list[tuple[str, Any]] = [
        *((f"middleware {name}", tool) for name, m in _named(hooks) for tool in getattr(m, "tools", ())),
        *(("`tools`", tool) for tool in tools if not isinstance(tool, dict)),
    ]
    unique = list({id(tool): (source, tool) for source, tool in sources}.values())
    if not unique and not layers[0]:
        return None
    known = {name: "`response_format`" for name in declared}
    for source, tool in unique:
        tool_name = str(getattr(tool, "name", None) or getattr(tool, "__name__", repr(tool)))
        if tool_name in known:
            raise DuplicateTool(tool_name, known[tool_name], source)
        if inspect.isfunction(tool) and not inspect.getdoc(tool):
            raise ConfigurationError(
                f"the tool {tool_name!r} from {source} has no docstring; write what the model is to know of it."
            )
        known[tool_name] = source
    return tool_node([tool for _, tool in unique], *layers)


def _refuse_single(tools: Any, middleware: Any) -> None:
    for name, given in (("tools", tools), ("middleware", middleware)):
        if isinstance(given, BaseTool | AgentMiddleware) or callable(given):
            one = getattr(given, "name", None) or getattr(given, "__name__", type(given).__name__)
            raise ConfigurationError(f"`{name}` is a list, not {one} alone; put it into brackets.")


def _made(model: str) -> BaseChatModel:
    try:
        return init_chat_model(model)
    except ValidationError:  # what the provider's own class thinks of its settings
        raise
    except ValueError as error:
        why = str(error).partition("\n")[0]
        raise ConfigurationError(
            f"model={model!r} names no model: {why} Write one like 'openai:gpt-5.5', or pass a chat model."
        ) from error


def _named(hooks: Table) -> Iterable[tuple[str, AgentMiddleware[Any, Any, Any]]]:
    return zip(hooks.names, hooks.middleware, strict=True)


def _refuse_unknown_fields(tools: Mapping[str, BaseTool], hooks: Table, schemas: Schemas) -> None:
    for name, tool in tools.items():
        for field in contract_of(tool).writes:
            if field not in schemas.visible.__annotations__:
                raise UnknownStateField(field, f"tool {name!r} writes", "`writes`")
    for name, middleware in _named(hooks):
        for field in getattr(middleware, "named_fields", ()):
            if field not in schemas.state.__annotations__:
                raise UnknownStateField(field, f"middleware {name} names", "its name there")


def _refuse_unknown_tools(hooks: Table, known: Collection[str]) -> None:
    if any(not type(hook.middleware).__module__.startswith("agentkit.") for hook in hooks.of("wrap_tool_call")):
        return  # a wrap of somebody else's may supply tools while the agent runs
    for name, middleware in _named(hooks):
        for tool in getattr(middleware, "named_tools", ()):
            if tool not in known:
                raise UnknownToolName(tool, f"middleware {name}", known)


def _provided(tool: Mapping[str, Any]) -> str:
    """The name of a tool that is given as a dict: the provider's own, or a function's schema."""
    function = tool.get("function")
    return str(tool.get("name") or (function or {}).get("name") or tool.get("type"))


def _steps(stops: Plan, hooks: Table, model: ModelStep, tools: ToolsStep | None, breakpoints: bool) -> dict[str, Step]:
    """What is done at each stop, in the order in which LangChain adds its nodes."""
    steps: dict[str, Step] = {MODEL: model}
    if tools is not None:
        steps[TOOLS] = tools
    nodes = [hook for hook in hooks.hooks if hook.phase in NODE_PHASES]
    return steps | {hook.node: HookStep(hook, stops[hook.node], breakpoints) for hook in nodes}


def _transformers(hooks: Table, own: Sequence[Any]) -> list[Any]:
    """Stream transformers, each object once: the agent's, the middlewares', the caller's."""
    theirs = [transformer for m in hooks.middleware for transformer in getattr(m, "transformers", ())]
    every = [ToolCallTransformer, SubagentTransformer, *theirs, *own]
    return list({id(transformer): transformer for transformer in every}.values())


def _config(name: str | None) -> RunnableConfig:
    metadata = {"ls_integration": "langchain_create_agent", **({"lc_agent_name": name} if name else {})}
    return RunnableConfig(recursion_limit=RECURSION_LIMIT, metadata=metadata)
