"""One thread of one agent, as a command uses it: opened from options, run with its parts shown, left resumable."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agentkit.cli.screen import Mistake

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel
    from langgraph.types import StateSnapshot

__all__ = [
    "ByOption",
    "ContextOption",
    "Conversation",
    "StoreOption",
    "SyncOption",
    "ThreadOption",
    "human",
    "opened",
    "parsed",
    "somebody",
    "store_words",
]

StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="AGENTKIT_STORE",
        help="Where threads are kept: sqlite:///agent.db, postgresql://user:password@host/name. Default: where the "
        "agent itself keeps them, if it does.",
    ),
]
ThreadOption = Annotated[
    str | None, typer.Option(metavar="ID", help="The thread (conversation) to begin or to go on with.")
]
ContextOption = Annotated[
    str | None, typer.Option(metavar="JSON", help="The run's context, for agents that have a context schema.")
]
SyncOption = Annotated[
    bool, typer.Option("--sync", help="Run the agent's synchronous form, for tools and middleware without another.")
]
ByOption = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who decides on approvals. Default: the login name.")
]

_TTL: Final = 30.0  # seconds after which a thread is free again whose process died
_PARTS: Final = ["messages", "updates"]
Show = Callable[[str, Any], None]


@dataclass
class Conversation:
    """A thread of an agent."""

    agent: Pregel[Any, Any, Any, Any]
    thread: str | None
    """None where nothing is kept."""
    runner: asyncio.Runner
    context: Any = None
    sync: bool = False

    @property
    def config(self) -> RunnableConfig:
        """The thread, as LangGraph wants to have it named."""
        return {"configurable": {"thread_id": self.thread} if self.thread is not None else {}}

    @property
    def is_kept(self) -> bool:
        """Whether the thread outlives the process."""
        from langgraph.checkpoint.memory import InMemorySaver

        return self.thread is not None and not isinstance(self.agent.checkpointer, InMemorySaver)

    def state(self) -> StateSnapshot:
        """The thread as it stands."""
        if self.sync:
            return self.agent.get_state(self.config)
        return self.runner.run(self.agent.aget_state(self.config))

    def run(self, given: Any, show: Show) -> Any:
        """Run to the end or the next pause, and show each part of the stream with its mode.

        Ctrl-C cancels the run at once and leaves the thread at its last finished step.

        Returns:
            The last state that was streamed.

        Raises:
            ThreadBusy: If another process works on the thread.
        """
        with self._held() as config:
            last = _Last(show)
            options: dict[str, Any] = {"stream_mode": [*_PARTS, "values"], "context": self.context}
            if self.sync:
                for mode, part in self.agent.stream(given, config, **options):
                    last.take(mode, part)
            else:
                self.runner.run(self._stream(given, config, options, last))
            return last.values

    async def _stream(self, given: Any, config: RunnableConfig, options: dict[str, Any], last: _Last) -> None:
        async for mode, part in self.agent.astream(given, config, **options):
            last.take(mode, part)

    @contextmanager
    def _held(self) -> Iterator[RunnableConfig]:
        """Hold the thread against other processes, where its store can tell them."""
        from agentkit.checkpoint import EPOCH, Saver
        from agentkit.turns.holding import Terms, held

        saver = self.agent.checkpointer
        if self.thread is None or not isinstance(saver, Saver):
            yield self.config
            return
        with held(saver, Terms.of(self.thread, f"{somebody(None)} (agentkit command)", _TTL, 0)) as epoch:
            yield {"configurable": {**self.config["configurable"], **({} if epoch is None else {EPOCH: epoch})}}


@dataclass
class _Last:
    """Keeps the last state, and passes the other parts on."""

    show: Show
    values: Any = None

    def take(self, mode: str, part: Any) -> None:
        if mode == "values":
            self.values = part
        else:
            self.show(mode, part)


@contextmanager
def opened(
    target: str,
    *,
    store: str | None = None,
    thread: str | None = None,
    context: str | None = None,
    sync: bool = False,
    remember: bool = False,
) -> Iterator[Conversation]:
    """Find an agent and open a thread of it.

    Args:
        target: As `agentkit.cli.target.graph` takes it.
        store: The URL of the store; None leaves the agent with what it has.
        thread: The thread's id. Default: a new one.
        context: The run's context as JSON.
        sync: Whether the synchronous form runs.
        remember: Whether an agent without a saver gets one in memory.

    Raises:
        Mistake: If something of it cannot be.
    """
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.memory import InMemorySaver

    from agentkit.checkpoint import open
    from agentkit.cli.target import graph

    given = parsed(context, "--context")
    saver: Any = open(store) if store else None
    with asyncio.Runner() as runner, saver or nullcontext():
        agent = graph(target, runner, checkpointer=saver)
        if saver is None and remember and not agent.checkpointer:
            saver = InMemorySaver()
        if saver is not None and agent.checkpointer is not saver:
            agent = agent.copy({"checkpointer": saver})
            if store:
                saver.allow(*_schemas(agent))
        keeps = isinstance(agent.checkpointer, BaseCheckpointSaver)
        if thread is not None and not keeps:
            raise Mistake(f"{target} keeps no threads, so there is none to name; add --store sqlite:///agent.db")
        name = (thread or uuid.uuid4().hex[:8]) if keeps else None
        if sync and _is_async_only(agent.checkpointer):
            raise Mistake(f"{target} keeps its threads in a saver without a synchronous form; leave --sync out")
        yield Conversation(agent, name, runner, given, sync or _is_sync_only(agent.checkpointer))


def _schemas(agent: Any) -> list[Any]:
    builder = getattr(agent, "builder", None)
    return [builder.state_schema] if builder is not None else []


def _is_sync_only(saver: Any) -> bool:
    """Whether a saver has no async methods, as LangGraph's SqliteSaver and PostgresSaver."""
    from langgraph.checkpoint.base import BaseCheckpointSaver

    if not isinstance(saver, BaseCheckpointSaver):
        return False
    return type(saver).__name__ in ("SqliteSaver", "PostgresSaver") or type(saver).aput is BaseCheckpointSaver.aput


def _is_async_only(saver: Any) -> bool:
    """Whether a saver's sync methods wait for an event loop that does not run meanwhile."""
    return type(saver).__name__ in ("AsyncSqliteSaver", "AsyncPostgresSaver")


def parsed(text: str | None, option: str) -> Any:
    """What an option says in JSON.

    Raises:
        Mistake: If it is none.
    """
    if text is None:
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Mistake(f"{option} is not JSON: {error}") from None


def store_words(store: str | None) -> list[str]:
    """The option that names a store in a proposed command: without its password, and only where it is needed."""
    from agentkit.checkpoint.url import parse

    return ["--store", parse(store).shown] if store and store != os.environ.get("AGENTKIT_STORE") else []


def somebody(by: str | None) -> str:
    """The name of whoever sits here."""
    if by:
        return by
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # no login name, as in some containers
        return "terminal"


def human(text: str) -> Mapping[str, Any]:
    """A user's message as input."""
    return {"messages": [{"role": "user", "content": text}]}
