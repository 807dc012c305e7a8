"""What `Tracing` and `RunLog` have in common: where they sit, and how they listen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, ClassVar

from langgraph.types import Command

from agentkit.middleware_base import Middleware
from agentkit.telemetry.listening import Channel, ModelScope, Record, RunScope, ToolScope, new_facts
from agentkit.telemetry.reporter import Reporter
from agentkit.watch import SAVED, Outcome, Run

__all__ = ["Observer"]


class Observer(Middleware):
    """Listens to a run and its calls, and changes nothing.

    Its wraps are no generators: those never see the signals with which a call pauses, and a listener has to.
    """

    channel: ClassVar[Channel]
    only_listens = True

    def __init__(self) -> None:
        """Let LangChain know who listens."""
        super().__init__()
        self.channel.listen()

    def reporter(self) -> Reporter | None:
        """Who is told of one run; None if nobody would take note, and nothing is to be gathered."""
        raise NotImplementedError

    def is_silent(self) -> bool:
        """Whether nobody takes note of a call."""
        return not self.is_watching

    # ---- the run

    @property
    def is_watching(self) -> bool:
        """Whether anybody takes note of the next run."""
        return self.reporter() is not None

    def around_run(self, run: Run) -> Generator[Any, Any, None]:
        """Hear the whole run."""
        reporter = self.reporter()
        if reporter is None:
            yield
            return
        saved = (yield SAVED) if _goes_on(run.input) else None
        record = Record(self.channel, reporter, new_facts(run, saved, self.channel.record()))
        with run.active():  # inside of what is there already: a log's records belong to the run's span
            record.start()
        scope = RunScope(record)
        run.scopes.append(lambda: scope)
        outcome: Outcome = yield
        with run.active():
            record.end(outcome)

    # ---- its calls

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Hear a model step."""
        if (record := self._record()) is None:
            return handler(request)
        with ModelScope(record, request.model):
            return handler(request)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """As `wrap_model_call`."""
        if (record := self._record()) is None:
            return await handler(request)
        with ModelScope(record, request.model):
            return await handler(request)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Hear a tool call."""
        if (record := self._record()) is None:
            return handler(request)
        with ToolScope(record, request) as scope:
            return scope.done(handler(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """As `wrap_tool_call`."""
        if (record := self._record()) is None:
            return await handler(request)
        with ToolScope(record, request) as scope:
            return scope.done(await handler(request))

    def _record(self) -> Record | None:
        """The run at hand; under LangChain's own factory, where none is heard, one that holds this call alone."""
        if (record := self.channel.record()) is not None:
            return record
        if self.is_silent() or (reporter := self.reporter()) is None:
            return None
        return Record(self.channel, reporter, new_facts(Run(None, {}), None, None), whole=False)


def _goes_on(given: Any) -> bool:
    return given is None or isinstance(given, Command)
