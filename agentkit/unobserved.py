"""Whether anybody could see the single steps of a run that is about to start.

Where nobody can, a run at granularity `"turn"` is one step of the graph. Whatever is not known here to hide the steps
counts as seeing them: the answer "no" is always right, and only costs time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from langchain_core.callbacks import BaseCallbackManager, CallbackManager
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

__all__ = ["is_unobserved"]

_BLIND: Final = frozenset({"context", "output_keys", "durability", "version"})
"""The arguments of `invoke` that show no step; any other may."""
_ENGINE: Final = "__pregel_"
"""Begins the config entries of the engine: with one of them the run is part of another."""


def is_unobserved(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    input: Any,
    config: RunnableConfig | None,
    arguments: Mapping[str, Any],
) -> bool:
    """Whether a call of `invoke` or `ainvoke` shows nothing but its result.

    Args:
        graph: The compiled agent. Its run-wide hooks are not asked.
        input: The call's input: a resume goes on with what somebody has seen.
        config: The call's config.
        arguments: The call's keyword arguments.
    """
    return (
        arguments.keys() <= _BLIND
        and input is not None
        and not isinstance(input, Command)
        and (graph.checkpointer is None or graph.checkpointer is False)
        and not (graph.debug or graph.step_timeout or graph.retry_policy)
        and not (graph.interrupt_before_nodes or graph.interrupt_after_nodes)
        and not _is_heard(graph.config, config)
    )


def _is_heard(*configs: RunnableConfig | None) -> bool:
    """Whether a run with these configs is part of another of the engine's, or somebody listens to it.

    Asked as well are the config of the run that this is called in, and what is set for the whole process or context:
    tracing, collectors, debug output.
    """
    given = [config for config in (_ambient(), *configs) if config]
    if any(str(key).startswith(_ENGINE) for config in given for key in config.get("configurable", ())):
        return True
    heard = [config.get("callbacks") for config in given]
    return any(each.handlers if isinstance(each, BaseCallbackManager) else each for each in heard) or bool(
        CallbackManager.configure().handlers
    )


def _ambient() -> RunnableConfig | None:
    try:
        return get_config()
    except RuntimeError:
        return None
