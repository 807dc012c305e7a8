"""`RunLog`: a run as structured log events."""

from __future__ import annotations

import logging
from typing import ClassVar, Final

from agentkit.errors import MissingDependency
from agentkit.middleware_base import Placement
from agentkit.telemetry.listening import Channel
from agentkit.telemetry.observer import Observer
from agentkit.telemetry.reporter import Reporter
from agentkit.telemetry.settings import Redact, Telemetry

__all__ = ["RunLog"]

_LOGS: Final = Channel("logs", logs=True)


class RunLog(Observer):
    """Writes what goes on in a run to the logger `agentkit`, as structlog events.

    ```python
    create_agent(model, tools, middleware=[Tracing(), RunLog(), *standard()])
    ```

    Every record carries `run_id`, `agent`, `thread_id` and the ids of the span that it belongs to. It configures
    nothing: what is written where is the application's affair (`agentkit.logging.configure` is for those who have no
    set-up yet).

    Args:
        content: Whether arguments, results and replies are written too, at the level DEBUG.
        redact: Called with content before it is written; see `agentkit.telemetry.Redact`.
        max_content_chars: Characters kept of one text.

    Raises:
        MissingDependency: If structlog is not installed.
    """

    channel: ClassVar[Channel] = _LOGS
    tool_placement = Placement(inside=("Tracing",))  # its records belong to the call's span

    def __init__(self, *, content: bool = False, redact: Redact | None = None, max_content_chars: int = 2_000) -> None:
        super().__init__()
        try:
            import structlog  # noqa: F401  (it is used further in, where its absence would be nobody's to see)
        except ImportError as missing:
            raise MissingDependency("structlog", "otel", "RunLog") from missing
        self._settings = Telemetry(capture_content=content, redact=redact, max_content_chars=max_content_chars)

    @property
    def is_watching(self) -> bool:
        """Whether anything of the next run would be written."""
        return logging.getLogger("agentkit").isEnabledFor(logging.ERROR)

    def reporter(self) -> Reporter | None:
        """Who writes one run."""
        from agentkit.telemetry.logs import LogReporter

        return LogReporter(self._settings)
