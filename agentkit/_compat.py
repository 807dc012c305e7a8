"""What agentkit takes from LangChain and LangGraph that is not public, each with its reason, in this module only.

`tests/core/test_core_compat.py` fails when one of them changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from traceback import walk_tb
from typing import Any, Final, cast
from uuid import uuid4

# Surfaces nested named agents in `stream_events(version="v3")`; LangChain's own factory registers it, users rely on it.
from langchain.agents._subagent_transformer import SubagentTransformer

# The process-wide trace policy can be set after an agent is built, so it has to be read where LangChain keeps it.
from langchain.agents.middleware._trace_policy import _node_trace_policy, _resolved_transform
from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_config_list

# Marks the handlers for whose sake a model streams; nothing public tells whether it will.
from langchain_core.tracers._streaming import _StreamingCallbackHandler as StreamingHandler
from langgraph.checkpoint.base import Checkpoint, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT, TASKS

# The whole value of a delta channel in a checkpoint: serializers meet it, and pruning writes it.
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.types import TracePolicy

__all__ = [
    "INTERRUPT",
    "DeltaSnapshot",
    "StreamingHandler",
    "SubagentTransformer",
    "arun_tool_call",
    "drop_stale_answer",
    "has_saver",
    "inference_data",
    "is_addressed",
    "is_empty_stream",
    "is_hidden_channel",
    "is_jump_edge",
    "is_new",
    "is_placeholder",
    "is_resumed",
    "is_task",
    "log_records",
    "loggers",
    "node_trace_policy",
    "paused_tasks",
    "read_state",
    "run_tool_call",
    "steps_of",
    "task_config",
    "task_of",
    "tool_outputs",
    "trace_processor",
    "unread_resume",
    "waiting_nodes",
    "without_reader",
]

# A task that `Send` starts is given only its packet; how it reads the state has no public name.
_READ: Final = "__pregel_read"
# Tells that a graph runs as a node of another.
_TASK_ID: Final = "__pregel_task_id"
# Holds the answers with which a paused task was resumed.
_SCRATCHPAD: Final = "__pregel_scratchpad"
# Gives a task that `Send` starts the state as well.
_READ_STATE: Final = "__pregel_read_state"
# Holds the task's runtime.
_RUNTIME: Final = "__pregel_runtime"
# The kind of task that `Send` starts, in its path and among its triggers.
_PUSH: Final = "__pregel_push"
# Holds the answers with which the run was resumed by the questions' ids, if it was.
_RESUME_MAP: Final = "__pregel_resume_map"
# Holds the saver of the run; without one the engine pauses all the same, and nothing can ever resume it.
_SAVER: Final = "__pregel_checkpointer"

# The channels in which a state graph keeps what is to run next: the input, what edges and commands trigger, `Send`s.
_START: Final = "__start__"
_EDGE: Final = "branch:to:"
_INNER: Final = (_EDGE, "join:", "__")


def read_state(config: RunnableConfig, keys: Sequence[str], *, written: bool = False) -> dict[str, Any]:
    """The state as the running task sees it: the fields that have a value.

    Args:
        config: The task's config.
        keys: The fields.
        written: Whether with what the task has written, as the edges that lead on from it see it.
    """
    values: dict[str, Any] = config["configurable"][_READ](list(keys), written)
    return values


def steps_of(config: RunnableConfig) -> tuple[int, int]:
    """The number of the running task's step, and that of the last one the recursion limit allows."""
    scratchpad = config["configurable"][_SCRATCHPAD]
    return scratchpad.step, scratchpad.stop


def task_config(
    config: RunnableConfig,
    node: str,
    step: int,
    read: Callable[..., Any],
    fields: Sequence[str] = (),
    sent: int | None = None,
) -> RunnableConfig:
    """The config of a task as the engine would give it, for one that is run inside of another.

    Args:
        config: The config of the task it runs in.
        node: The task's node.
        step: The number of its step.
        read: Reads the state, as `LocalState.read`.
        fields: Those that a task started by `Send` may ask for.
        sent: The task's place among the `Send`s of the step; None if an edge led to it.
    """
    given = config["configurable"]
    task = str(uuid4())
    namespace = "|".join([*given["checkpoint_ns"].split("|")[:-1], f"{node}:{task}"])
    own = given[_SCRATCHPAD]
    counters = {name: type(getattr(own, name))() for name in ("call_counter", "interrupt_counter", "subgraph_counter")}
    metadata = {
        **config["metadata"],
        "langgraph_step": step,
        "langgraph_node": node,
        "langgraph_checkpoint_ns": namespace,
    }
    if sent is not None:
        metadata |= {"langgraph_triggers": (_PUSH,), "langgraph_path": (_PUSH, sent, False)}
    configurable = {
        **given,
        "checkpoint_ns": namespace,
        _TASK_ID: task,
        _READ: read,
        _READ_STATE: None if sent is None else partial(read, fields),
        _SCRATCHPAD: replace(own, step=step, resume=[], **counters),
        _RUNTIME: given[_RUNTIME].patch_execution_info(checkpoint_ns=namespace, task_id=task),
    }
    inner: Any = {**config, "run_name": node, "metadata": metadata, "configurable": configurable}
    return cast(RunnableConfig, inner)


def run_tool_call(
    node: ToolNode, call: ToolCall, state: dict[str, Any], runtime: Runtime[Any], config: RunnableConfig
) -> Any:
    """What `ToolNode` does with one call, in this thread: by itself it starts a pool of threads for it."""
    return node._run_one(call, "tool_calls", _tool_runtime(node, call, state, runtime, config))


async def arun_tool_call(
    node: ToolNode, call: ToolCall, state: dict[str, Any], runtime: Runtime[Any], config: RunnableConfig
) -> Any:
    """What `ToolNode` does with one call, in this task: by itself it starts another."""
    return await node._arun_one(call, "tool_calls", _tool_runtime(node, call, state, runtime, config))


def tool_outputs(node: ToolNode, outputs: list[Any]) -> Any:
    """What `ToolNode` makes of what its calls gave."""
    return node._combine_tool_outputs(outputs, "tool_calls")


def _tool_runtime(
    node: ToolNode, call: ToolCall, state: dict[str, Any], runtime: Runtime[Any], config: RunnableConfig
) -> ToolRuntime[Any, Any]:
    (own,) = get_config_list(config, 1)
    return ToolRuntime(
        state=state,
        tool_call_id=call["id"],
        config=own,
        context=runtime.context,
        store=runtime.store,
        stream_writer=runtime.stream_writer,
        tools=list(node.tools_by_name.values()),
        execution_info=runtime.execution_info,
        server_info=runtime.server_info,
    )


def without_reader(compiled: CompiledStateGraph[Any, Any, Any, Any], node: str, label: str) -> None:
    """Give a node's one conditional edge what the node returned; `compile` has it read the state each time."""
    compiled.nodes[node].writers.pop()
    compiled.attach_branch(node, label, compiled.builder.branches[node][label], with_reader=False)


def is_jump_edge(function: Callable[..., Any]) -> bool:
    """Whether it is the edge with which LangChain's factory obeys a hook's jumps; nothing else tells it apart."""
    return function.__qualname__ == "_add_middleware_edge.<locals>.jump_edge"


def has_saver(config: RunnableConfig) -> bool:
    """Whether the running task's run, or one around it, is stored, so that it can pause."""
    return config["configurable"].get(_SAVER) is not None


def is_addressed(answer: Any, config: RunnableConfig) -> bool:
    """Whether an answer that `interrupt()` is about to hand out was given to this task by its question's id."""
    return any(answer is one for one in config["configurable"][_SCRATCHPAD].resume)


def is_new(answer: Any, config: RunnableConfig) -> bool:
    """Whether an answer that `interrupt()` is about to hand out was given with this resume, and not read before."""
    given: Mapping[str, Any] = config["configurable"].get(_RESUME_MAP) or {}
    return not is_addressed(answer, config) or any(answer is one for one in given.values())


def drop_stale_answer(config: RunnableConfig) -> None:
    """Forget an answer without an id where the run is resumed by ids: it is an old one, which was refused.

    The engine keeps it with the checkpoint, and would hand it out to the next question that has no other answer.
    """
    if config["configurable"].get(_RESUME_MAP):
        config["configurable"][_SCRATCHPAD].get_null_resume(True)


def is_task(config: RunnableConfig | None) -> bool:
    """Whether a graph that is called with this config runs as a task of another graph."""
    return config is not None and _TASK_ID in config.get("configurable", {})


def unread_resume(config: RunnableConfig) -> bool:
    """Whether the running task was resumed with an answer that `interrupt()` has not handed out.

    Ask it last: looking moves the counter of interrupts on. In a nested graph only answers addressed to the task count,
    since any other may be meant for a task of its own.
    """
    scratchpad = config["configurable"].get(_SCRATCHPAD)
    if scratchpad is None or not has_saver(config):
        return False
    nested = "|" in config["configurable"].get("checkpoint_ns", "")
    answer = None if nested else scratchpad.get_null_resume(False)
    if answer is not None and not any(read is answer for read in scratchpad.resume):
        return True
    return bool(len(scratchpad.resume) > scratchpad.interrupt_counter())


def is_resumed(config: RunnableConfig) -> bool:
    """Whether the running task was resumed with an answer."""
    scratchpad = config["configurable"].get(_SCRATCHPAD)
    return scratchpad is not None and bool(scratchpad.resume or scratchpad.get_null_resume(False) is not None)


def paused_tasks(saved: CheckpointTuple | None) -> frozenset[str]:
    """The ids of the tasks that paused at a stored checkpoint; they run again when it is resumed, answered or not."""
    writes = saved.pending_writes if saved is not None else None
    return frozenset(task for task, channel, _ in writes or () if channel == INTERRUPT)


def task_of(config: RunnableConfig) -> str | None:
    """The id of the running task."""
    task: str | None = config.get("configurable", {}).get(_TASK_ID)
    return task


def is_empty_stream(error: Exception) -> bool:
    """Whether an error means that a stream ended before it began; LangChain has a text for it, openai not even that."""
    if isinstance(error, AssertionError) and not error.args:
        frames = list(walk_tb(error.__traceback__))
        return bool(frames) and frames[-1][0].f_globals.get("__name__", "").startswith("openai.")
    return "No generations found in stream" in str(error)


def node_trace_policy(policy: TracePolicy | None) -> TracePolicy:
    """A middleware's trace policy for its nodes, falling back to the process-wide one at trace time."""
    return _node_trace_policy(policy)


def trace_processor(policy: TracePolicy | None, field: str) -> Any:
    """A middleware's trace processor, falling back to the process-wide one at trace time."""
    return _resolved_transform(policy, field)  # type: ignore[arg-type]  # one of two literals


def is_placeholder(provider: object) -> bool:
    """Whether a meter provider is the API's own, from before the application has set one; its class has no public name.

    Without one nothing need be measured. The tracer's counterpart is public.
    """
    return type(provider).__module__.startswith("opentelemetry.metrics")


def loggers() -> Any:
    """The application's global logger provider of OpenTelemetry; None if it has set up none.

    Its module has no public name yet. Where nobody has imported it nobody has set one up.
    """
    module = sys.modules.get("opentelemetry._logs")
    provider = module.get_logger_provider() if module is not None else None
    return None if type(provider).__module__.startswith(("builtins", "opentelemetry._logs")) else provider


def log_records() -> tuple[Any, Any]:
    """The classes of log records and of their severities, whose module has no public name yet."""
    module = import_module("opentelemetry._logs")
    return module.LogRecord, module.SeverityNumber


def inference_data() -> tuple[str, Any] | None:
    """The context key under which the official instrumentations look for a model span around theirs, and what to put.

    They hand over to it what they would have recorded. None where their common package is not installed.
    """
    found = _inference_data()
    return None if found is None else (found[0], found[1]())


@cache
def _inference_data() -> tuple[str, Callable[[], Any]] | None:
    try:
        module = import_module("opentelemetry.util.genai._inference_invocation")
        return module.CLIENT_INFERENCE_CONTEXT_KEY, module.InferenceData
    except (ImportError, AttributeError):
        return None


def waiting_nodes(checkpoint: Checkpoint) -> list[str]:
    """The nodes of a state graph that a checkpoint would go on with, as far as it tells without its graph."""
    values = checkpoint["channel_values"]
    sends = [send.node for send in values.get(TASKS) or ()]
    edges = [channel.removeprefix(_EDGE) for channel in values if channel.startswith(_EDGE)]
    return [*([_START] if _START in values else []), *edges, *sends]


def is_hidden_channel(channel: str) -> bool:
    """Whether a channel is the engine's own, and no state field."""
    return channel.startswith(_INNER)
