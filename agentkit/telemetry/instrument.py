"""The run span for graphs that agentkit did not build."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from agentkit.errors import ConfigurationError
from agentkit.middleware_base import Middleware
from agentkit.watch import AroundRun, Watch, watching

__all__ = ["instrument"]

Graph = CompiledStateGraph[Any, Any, Any, Any]


class _Watched(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose runs are watched."""

    def __init__(self, *, around: Sequence[AroundRun], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.around = around

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        around = watching(self.around)
        if not around:
            return super().stream(input, config, **kwargs)
        watch = Watch(around, input, config, self)
        return watch.over(super().stream(input, watch.config, **kwargs))

    def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        around = watching(self.around)
        if not around:
            return super().astream(input, config, **kwargs)
        watch = Watch(around, input, config, self)
        chunks = cast(AsyncGenerator[Any, None], super().astream(input, watch.config, **kwargs))
        return watch.aover(chunks)


def instrument(graph: Graph, *middleware: Middleware) -> Graph:
    """A copy of a compiled graph whose runs middlewares watch, as they watch those of agentkit's own agents.

    ```python
    tracing = Tracing()
    agent = instrument(langchain.agents.create_agent(model, tools, middleware=[tracing]), tracing)
    ```

    Model requests are recorded wherever they happen in the graph; tool calls only where the middleware stands in the
    agent's own list.

    Args:
        graph: The graph. It is left as it is.
        *middleware: Middlewares with an `around_run`: `Tracing`, `RunLog`.

    Raises:
        ConfigurationError: If the graph is an agent of agentkit's, where they belong into `middleware`.
    """
    if hasattr(graph, "agent"):
        raise ConfigurationError("instrument: this agent is agentkit's; put Tracing() into its `middleware` instead.")
    around = [hook for each in middleware if (hook := getattr(each, "around_run", None)) is not None]
    return _Watched(around=around, **vars(graph))
