"""Random stacks of middleware, scripts of a model and tools, as data, and the real objects made from them.

What a part does depends only on the state it is shown (its own visits are counted there), so a step that is run again
after a pause or a crash does the same again. The log notes what each part was shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, TypeAlias
from weakref import WeakValueDictionary

from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelResponse, hook_config
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from agentkit import Middleware
from agentkit.testing import ScriptedModel, ai, comparable, invalid_call, tool_call
from agentkit.transcript import last_turn, pending_calls

__all__ = [
    "TOOLS",
    "Answer",
    "FuzzState",
    "Log",
    "ModelPart",
    "NodePart",
    "Planned",
    "Reply",
    "Stack",
    "ToolPart",
    "WildReply",
    "log_of_thread",
    "make_middleware",
    "make_model",
]

HIDDEN = frozenset({"exit"})
"""Not compared: LangChain's state does not have it."""


class Planned(Exception):
    """A failure that the test asked for; it happens once."""


def _counted(old: dict[str, int] | None, new: dict[str, int]) -> dict[str, int]:
    return dict(Counter(old or {}) + Counter(new))


def _joined(old: list[str] | None, new: list[str]) -> list[str]:
    return [*(old or []), *new]


class FuzzState(AgentState[Any]):
    """State with two reducers of our own and a plain field."""

    visits: NotRequired[Annotated[dict[str, int], _counted]]
    notes: NotRequired[Annotated[list[str], _joined]]
    latest: NotRequired[str]


class Answer(BaseModel):
    """A structured answer."""

    value: int


@dataclass(eq=False)
class Log:
    """What was seen and done in one run of a scenario."""

    seen: list[tuple[str, Any]] = field(default_factory=list)
    """Each hook and model wrap in order, with the state it was shown."""
    wrapped: list[tuple[str, str]] = field(default_factory=list)
    """Each tool wrap, with the call; parallel calls in any order."""
    finished: list[tuple[str | None, str, str, Any]] = field(default_factory=list)
    """Each execution of a tool that gave a result: id of the AI message, id of the call, tool, argument."""
    faults: list[str] = field(default_factory=list)
    """What must not happen and was seen from inside a tool."""
    _fired: set[str] = field(default_factory=set)

    def shows(self, who: str, state: Mapping[str, Any]) -> None:
        """Note what a hook was shown."""
        self.seen.append((who, comparable({key: value for key, value in state.items() if key not in HIDDEN})))

    def fires(self, who: str) -> bool:
        """Whether a planned failure is still to happen."""
        if who in self._fired:
            return False
        self._fired.add(who)
        return True


# ---- node hooks ----------------------------------------------------------------------------------------------------

Phase = Literal["before_agent", "before_model", "after_model", "after_agent"]
Jump = Literal["model", "tools", "end"]
NodeAct = Literal["quiet", "note", "write", "say", "remove", "clear", "jump", "crash", "ask"]


@dataclass(frozen=True)
class NodePart:
    """One node hook: what it does on its `at`-th visit, counted from 0."""

    phase: Phase
    act: NodeAct = "note"
    at: int = 0
    jump: Jump | None = None
    declared: tuple[Jump, ...] = ()
    forms: Literal["sync", "both"] = "both"


def _node_step(part: NodePart, log: Log, node: str, state: Mapping[str, Any]) -> dict[str, Any] | None:
    log.shows(node, state)
    if part.act == "quiet":
        return None
    update: dict[str, Any] = {"visits": {node: 1}}
    if state.get("visits", {}).get(node, 0) == part.at:
        update |= _NODE_ACTS[part.act](part, log, node, state)
    return update


def _jump(part: NodePart, log: Log, node: str, state: Mapping[str, Any]) -> dict[str, Any]:
    if part.jump == "tools" and not pending_calls(state["messages"], {"Answer"}):
        return {}  # where nothing is open LangChain runs answered calls again
    return {"jump_to": part.jump}


def _crash(part: NodePart, log: Log, node: str, state: Mapping[str, Any]) -> dict[str, Any]:
    if log.fires(node):
        raise Planned(node)
    return {}


_NODE_ACTS: dict[NodeAct, Callable[[NodePart, Log, str, Mapping[str, Any]], dict[str, Any]]] = {
    "note": lambda part, log, node, state: {"notes": [node]},
    "write": lambda part, log, node, state: {"latest": node},
    "say": lambda part, log, node, state: {"messages": [HumanMessage(f"{node} says")]},
    "remove": lambda part, log, node, state: {"messages": [RemoveMessage(id=m.id) for m in state["messages"][-1:]]},
    "clear": lambda part, log, node, state: {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("anew")]},
    "jump": _jump,
    "crash": _crash,
    "ask": lambda part, log, node, state: {"notes": [str(interrupt(node))]},
}


def _node_hooks(part: NodePart, log: Log, name: str) -> dict[str, Any]:
    node = f"{name}.{part.phase}"

    def hook(self: Any, state: Any, runtime: Any) -> Any:
        return _node_step(part, log, node, state)

    async def ahook(self: Any, state: Any, runtime: Any) -> Any:
        return _node_step(part, log, node, state)

    declare = hook_config(can_jump_to=list(part.declared))
    forms: dict[str, Any] = {part.phase: declare(hook) if part.declared else hook}
    if part.forms == "both":
        forms[f"a{part.phase}"] = declare(ahook) if part.declared else ahook
    return forms


# ---- wraps ---------------------------------------------------------------------------------------------------------

Policy: TypeAlias = Generator[Any, Any, Any]
ModelAct = Literal[
    "pass", "retry", "short", "twice", "edit", "inplace", "command", "reword", "toolless", "answer", "catch"
]
ToolAct = Literal["pass", "retry", "short", "args", "command", "catch"]


@dataclass(frozen=True)
class ModelPart:
    """One model wrap: what it does where the history holds `at` AI messages."""

    act: ModelAct = "pass"
    at: int = 0
    style: Literal["plain", "generator"] = "plain"


@dataclass(frozen=True)
class ToolPart:
    """One tool wrap: what it does with calls of the given parity."""

    act: ToolAct = "pass"
    at: int = 0
    style: Literal["plain", "generator"] = "plain"


def _model_policy(part: ModelPart, log: Log, node: str, request: Any) -> Policy:
    log.shows(node, request.state)
    if sum(isinstance(m, AIMessage) for m in request.state["messages"]) != part.at:
        return (yield request)
    return (yield from _MODEL_ACTS[part.act](node, request))


def _retry(node: str, request: Any) -> Policy:
    try:
        return (yield request)
    except Planned:
        return (yield request)


def _short(node: str, request: Any) -> Policy:
    yield from ()
    return AIMessage(f"{node} answers")


def _twice(node: str, request: Any) -> Policy:
    yield request
    return (yield request)


def _edit(node: str, request: Any) -> Policy:
    edited = request.override(
        system_message=SystemMessage(node),
        messages=[*request.messages, HumanMessage(f"{node} adds")],
        model_settings={"stop": [node]},
        tool_choice="any" if request.tools else None,
    )
    return (yield edited)


def _inplace(node: str, request: Any) -> Policy:
    request.messages.append(HumanMessage(f"{node} keeps"))
    return (yield request)


def _with_command(node: str, request: Any) -> Policy:
    response = yield request
    return ExtendedModelResponse(model_response=response, command=Command(update={"notes": [node]}))


def _reword(node: str, request: Any) -> Policy:
    response = yield request
    first, *others = response.result
    return ModelResponse(
        result=[first.model_copy(update={"content": f"{first.text} {node}"}), *others],
        structured_response=response.structured_response,
    )


def _toolless(node: str, request: Any) -> Policy:
    return (yield request.override(tools=[]))


def _answered(node: str, request: Any) -> Policy:
    response = yield request
    calls = [call for message in response.result if isinstance(message, AIMessage) for call in message.tool_calls]
    there = {message.tool_call_id for message in response.result if isinstance(message, ToolMessage)}
    answers = [ToolMessage(node, tool_call_id=c["id"], name=c["name"]) for c in calls if c["id"] not in there]
    return ModelResponse(result=[*response.result, *answers], structured_response=response.structured_response)


def _caught(node: str, request: Any) -> Policy:
    try:
        return (yield request)
    except Planned:
        return AIMessage(f"{node} caught it")


_MODEL_ACTS: dict[ModelAct, Callable[[str, Any], Policy]] = {
    "pass": lambda node, request: (yield request),
    "retry": _retry,
    "short": _short,
    "twice": _twice,
    "edit": _edit,
    "inplace": _inplace,
    "command": _with_command,
    "reword": _reword,
    "toolless": _toolless,
    "answer": _answered,
    "catch": _caught,
}


def _tool_policy(part: ToolPart, log: Log, node: str, request: Any) -> Policy:
    call = request.tool_call
    log.wrapped.append((node, f"{call['name']} {call['id']}"))
    if call["args"].get("x") not in range(10) or call["args"]["x"] % 2 != part.at % 2:
        return (yield request)
    return (yield from _TOOL_ACTS[part.act](node, request))


def _tool_short(node: str, request: Any) -> Policy:
    yield from ()
    return ToolMessage(node, tool_call_id=request.tool_call["id"], name=request.tool_call["name"])


def _tool_args(node: str, request: Any) -> Policy:
    call = {**request.tool_call, "args": {**request.tool_call["args"], "x": request.tool_call["args"]["x"] + 10}}
    return (yield request.override(tool_call=call))


def _tool_command(node: str, request: Any) -> Policy:
    result = yield request
    if isinstance(result, Command):
        return result
    return Command(update={"messages": [result], "notes": [node]})


def _tool_catch(node: str, request: Any) -> Policy:
    try:
        return (yield request)
    except Planned:
        call = request.tool_call
        return ToolMessage(f"{node} caught it", tool_call_id=call["id"], name=call["name"], status="error")


_TOOL_ACTS: dict[ToolAct, Callable[[str, Any], Policy]] = {
    "pass": lambda node, request: (yield request),
    "retry": _retry,
    "short": _tool_short,
    "args": _tool_args,
    "command": _tool_command,
    "catch": _tool_catch,
}


def _wraps(hook: str, style: str, policy: Callable[[Any], Policy]) -> dict[str, Any]:
    """A wrap as a user writes it: as a generator, or in its two forms by hand."""
    return {hook: _generator(policy)} if style == "generator" else {hook: _sync(policy), f"a{hook}": _async(policy)}


def _generator(policy: Callable[[Any], Policy]) -> Any:
    def wrap(self: Any, request: Any) -> Policy:
        return (yield from policy(request))

    return wrap


def _sync(policy: Callable[[Any], Policy]) -> Any:
    def wrap(self: Any, request: Any, handler: Callable[[Any], Any]) -> Any:
        steps, result, error = policy(request), None, None
        while True:
            try:
                asked = steps.throw(error) if error else steps.send(result)
            except StopIteration as stop:
                return stop.value
            result, error = None, None
            try:
                result = handler(asked)
            except Planned as failure:
                error = failure

    return wrap


def _async(policy: Callable[[Any], Policy]) -> Any:
    async def wrap(self: Any, request: Any, handler: Callable[[Any], Any]) -> Any:
        steps, result, error = policy(request), None, None
        while True:
            try:
                asked = steps.throw(error) if error else steps.send(result)
            except StopIteration as stop:
                return stop.value
            result, error = None, None
            try:
                result = await handler(asked)
            except Planned as failure:
                error = failure

    return wrap


# ---- whole scenarios -----------------------------------------------------------------------------------------------

ToolName = Literal["ok", "note", "direct", "ask", "crash"]


@dataclass(frozen=True)
class Reply:
    """One well-formed answer of the model: text, calls (tool and argument), a structured answer, or a failure."""

    calls: tuple[tuple[ToolName, int], ...] = ()
    structured: int | None = None
    fails: bool = False

    def step(self, number: int) -> Any:
        """The script's step."""
        if self.fails:
            return Planned("model")
        calls = [tool_call(name, {"x": x}, f"c{number}-{i}") for i, (name, x) in enumerate(self.calls)]
        if self.structured is not None:
            value: Any = self.structured if self.structured < 5 else "many"
            calls.append(tool_call("Answer", {"value": value}, f"s{number}"))
        return ai(f"answer {number}", *calls)


@dataclass(frozen=True)
class WildReply:
    """An answer that may be malformed in many ways."""

    kind: Literal[
        "text", "empty", "calls", "fails", "invalid", "unknown", "bad_args", "same_ids", "nameless", "no_id",
        "at_length", "mixed", "old_id", "structured", "block_only",
    ]  # fmt: skip
    calls: tuple[tuple[str, int], ...] = ()

    def step(self, number: int) -> Any:
        """The script's step."""
        calls = [tool_call(name, {"x": x}, f"c{number}-{i}") for i, (name, x) in enumerate(self.calls)]
        return _WILD[self.kind](number, calls)


def _renamed(calls: list[ToolCall], id_of: Callable[[int], str]) -> list[ToolCall]:
    return [tool_call(call["name"], call["args"], id_of(i)) for i, call in enumerate(calls)]


_BROKEN = '{"x": nonsense}'
_WILD: dict[str, Callable[[int, list[Any]], Any]] = {
    "text": lambda n, calls: ai(f"answer {n}"),
    "empty": lambda n, calls: ai(""),
    "calls": lambda n, calls: ai("", *calls),
    "fails": lambda n, calls: Planned("model"),
    "invalid": lambda n, calls: ai("", invalid_call("ok", _BROKEN, f"i{n}")),
    "unknown": lambda n, calls: ai("", *calls, tool_call("unheard_of", {"x": 1}, f"u{n}")),
    "bad_args": lambda n, calls: ai("", *calls, tool_call("ok", {"x": "seven"}, f"b{n}"), tool_call("ok", {}, f"e{n}")),
    "same_ids": lambda n, calls: ai("", *_renamed(calls, lambda i: "same")),
    "nameless": lambda n, calls: ai("", *calls, invalid_call(None, _BROKEN, f"i{n}"), invalid_call("", _BROKEN, None)),
    "no_id": lambda n, calls: ai("", *calls, invalid_call("ok", _BROKEN, None)),
    "at_length": lambda n, calls: ai("cut", *calls, tool_call("ok", {"x": 99}, f"l{n}"), finish_reason="length"),
    "mixed": lambda n, calls: ai("", *calls, invalid_call("ok", _BROKEN, f"i{n}")),
    "old_id": lambda n, calls: ai("", *_renamed(calls, lambda i: f"c0-{i}")),
    "structured": lambda n, calls: ai("", *calls, tool_call("Answer", {"value": n}, f"s{n}")),
    "block_only": lambda n, calls: ai(
        [{"type": "text", "text": "hm"}, {"type": "tool_use", "id": f"t{n}", "name": "ok", "input": {"x": 98}}]
    ),
}


@dataclass(frozen=True)
class Stack:
    """A scenario: the middlewares, each a tuple of parts, the model's script, and what else the agent has."""

    middleware: tuple[tuple[NodePart | ModelPart | ToolPart, ...], ...] = ()
    script: tuple[Reply | WildReply, ...] = ()
    tools: bool = True
    structured: bool = False
    name: str | None = None
    turns: int = 1
    streams: bool = False
    """Whether the model can stream; replies that a provider could not stream cannot be."""

    def parts(self) -> list[NodePart | ModelPart | ToolPart]:
        """All parts of all middlewares."""
        return [part for one in self.middleware for part in one]

    def arguments(self, log: Log) -> dict[str, Any]:
        """Arguments for `create_agent`, LangChain's or ours."""
        return {
            "model": make_model(self),
            "tools": TOOLS if self.tools else [],
            "middleware": make_middleware(self, log),
            "state_schema": FuzzState,
            "response_format": ToolStrategy(Answer) if self.structured else None,
            "name": self.name,
            "system_prompt": "Be brief.",
        }


def make_middleware(stack: Stack, log: Log) -> list[AgentMiddleware[Any, Any, Any]]:
    """The middlewares of a stack, named M0, M1, ..."""
    made = []
    for index, parts in enumerate(stack.middleware):
        name = f"M{index}"
        methods: dict[str, Any] = {}
        for part in parts:
            if isinstance(part, NodePart):
                methods |= _node_hooks(part, log, name)
            elif isinstance(part, ModelPart):
                hook = "wrap_model_call"
                methods |= _wraps(hook, part.style, partial(_model_policy, part, log, f"{name}.{hook}"))
            else:
                hook = "wrap_tool_call"
                methods |= _wraps(hook, part.style, partial(_tool_policy, part, log, f"{name}.{hook}"))
        generators = any(not isinstance(part, NodePart) and part.style == "generator" for part in parts)
        base = Middleware if generators else AgentMiddleware
        made.append(type(name, (base,), {**methods, "state_schema": FuzzState})())
    return made


def make_model(stack: Stack) -> ScriptedModel:
    """The model of a stack: its script, and then the same closing answer for ever."""

    def closing(request: Any) -> AIMessage:
        if stack.structured:
            return ai("", tool_call("Answer", {"value": 1}, f"s{len(request.messages)}"))
        return ai("that is all")

    steps = [reply.step(number) for number, reply in enumerate(stack.script)]
    return ScriptedModel(*steps, closing, repeat=True, stream=stack.streams)


_LOGS: WeakValueDictionary[str, Log] = WeakValueDictionary()
"""The log of each thread. The tools are made once (a tool's schema costs more than a whole run) and look there."""


def log_of_thread(thread_id: str) -> Log:
    """A new log, to which the tools called in that thread write."""
    log = _LOGS[thread_id] = Log()
    return log


def _made(name: str) -> BaseTool:
    def function(x: int, runtime: ToolRuntime) -> Any:
        log = _LOGS[runtime.config["configurable"]["thread_id"]]
        head, results = last_turn(runtime.state["messages"])
        call = str(runtime.tool_call_id)
        if call in {result.tool_call_id for result in results}:
            log.faults.append(f"{call} was run although it has a result")
        outcome = _TOOLS[name](log, x, call)
        log.finished.append((head.id if head else None, call, name, x))
        return outcome

    async def coroutine(x: int, runtime: ToolRuntime) -> Any:
        return function(x, runtime)

    return StructuredTool.from_function(
        function,
        coroutine if name in ("ok", "ask") else None,
        name=name,
        description=f"Does {name}.",
        return_direct=name == "direct",
    )


def _crash_tool(log: Log, x: int, call: str) -> str:
    if log.fires(f"crash {call}"):
        raise Planned("tool")
    return f"crash {x}"


def _refuse(log: Log, x: int, call: str) -> str:
    raise ToolException(f"refused {x}")


_TOOLS: dict[str, Callable[[Log, int, str], Any]] = {
    "ok": lambda log, x, call: f"ok {x}",
    "note": lambda log, x, call: Command(
        update={"messages": [ToolMessage(f"noted {x}", tool_call_id=call, name="note")], "notes": [f"note {x}"]}
    ),
    "direct": lambda log, x, call: f"direct {x}",
    "ask": lambda log, x, call: f"asked {interrupt({'call': call})}",
    "crash": _crash_tool,
    "refuse": _refuse,
}

TOOLS = [_made(name) for name in _TOOLS]
