"""`Tracing`: a run as OpenTelemetry spans and metrics."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar, Final

from agentkit.middleware_base import Placement
from agentkit.telemetry.hook_spans import HookScope
from agentkit.telemetry.listening import Channel
from agentkit.telemetry.nested import beside_langchain_instrumentation
from agentkit.telemetry.observer import Observer
from agentkit.telemetry.providers import is_silent, reporter
from agentkit.telemetry.reporter import Reporter
from agentkit.telemetry.settings import Telemetry
from agentkit.telemetry.spans import SpanReporter
from agentkit.watch import Run

__all__ = ["Tracing"]

_SPANS: Final = Channel("spans")


class Tracing(Observer):
    """Records each run, each request to a model and each tool call as spans, and counts them as metrics.

    ```python
    create_agent(model, tools, middleware=[Tracing(), *standard()])
    ```

    It records to the providers that the application has set up, and costs next to nothing where there are none. No
    prompt, argument, result or exception text is recorded unless the options ask for it.

    Args:
        telemetry: What is recorded, and where it goes. Default: `Telemetry()`.
    """

    channel: ClassVar[Channel] = _SPANS
    model_placement = Placement(at="innermost")
    tool_placement = Placement(at="outermost")

    def __init__(self, telemetry: Telemetry | None = None) -> None:
        super().__init__()
        self.telemetry = telemetry or Telemetry()
        self._silent: bool | None = None

    @property
    def is_watching(self) -> bool:
        """Whether the application has set up anything to record to."""
        self._silent = is_silent(self.telemetry)
        return not self._silent

    def is_silent(self) -> bool:
        """What was found before the run; where no run is seen, as under LangChain's factory, what is so now."""
        return is_silent(self.telemetry) if self._silent is None else self._silent

    def reporter(self) -> Reporter | None:
        """Who records one run; None while the application has set up nothing to record to."""
        return reporter(self.telemetry)

    @property
    def watches_hooks(self) -> bool:
        """Whether the calls of hooks are recorded."""
        return self.telemetry.enabled and self.telemetry.hook_spans

    def watch_hook(self, middleware: str, hook: str) -> HookScope:
        """Record one call of a hook."""
        record = self.channel.record()
        reporter = record.reporter if record is not None else None
        return HookScope(reporter if isinstance(reporter, SpanReporter) else None, middleware, hook)

    def around_run(self, run: Run) -> Generator[Any, Any, None]:
        """Record the whole run."""
        beside_langchain_instrumentation(run.config.setdefault("metadata", {}))
        return super().around_run(run)
