"""One call of a middleware's hook, as a span and as the time that it took itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from types import TracebackType
from typing import Final, Self

from opentelemetry import context as otel
from opentelemetry.trace import Span, get_current_span, set_span_in_context

from agentkit.middleware_base import HookWatch
from agentkit.telemetry.guard import guarded
from agentkit.telemetry.spans import SpanReporter

__all__ = ["TOOL_SPAN", "HookScope"]

TOOL_SPAN: Final = otel.create_key("agentkit-tool-span")
"""In the context of a tool's hook: the span of the call around it."""


class HookScope(HookWatch):
    """Entered around one call of a hook; what happens in it belongs under its span."""

    __slots__ = ("_hook", "_inside", "_middleware", "_reporter", "_span", "_started", "_token")

    def __init__(self, reporter: SpanReporter | None, middleware: str, hook: str) -> None:
        """Prepare to record; None: nobody takes note of this run."""
        self._reporter = reporter
        self._middleware = middleware
        self._hook = hook
        self._inside = 0.0
        self._span: Span | None = None

    @property
    def reporter(self) -> SpanReporter | None:
        """Who records the run."""
        return self._reporter

    def __enter__(self) -> Self:
        """Start."""
        self._span = self._begun()
        self._token = otel.attach(self._context(self._span)) if self._span is not None else None
        self._started = perf_counter()
        return self

    def _context(self, span: Span) -> otel.Context:
        context = set_span_in_context(span)
        if self._hook != "wrap_tool_call":
            return context
        return otel.set_value(TOOL_SPAN, otel.get_value(TOOL_SPAN) or get_current_span(), context)

    def inside(self) -> AbstractContextManager[None]:
        """Entered around what a wrap wraps, whose time is not the hook's own."""
        return self._counted()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        since = perf_counter()
        try:
            yield
        finally:
            self._inside += perf_counter() - since

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""
        own = max(0.0, perf_counter() - self._started - self._inside)
        if self._token is not None:
            otel.detach(self._token)
        self._over(own, error)

    @guarded
    def _begun(self) -> Span | None:
        return self._reporter.hook_started(self._middleware, self._hook) if self._reporter is not None else None

    @guarded
    def _over(self, own: float, error: BaseException | None) -> None:
        if self._reporter is not None:
            self._reporter.hook_ended(self._span, self._middleware, self._hook, own, error)
