"""`run_turn` and `decide`: what is to be done is decided by generators, once; the sync and async forms do it.

What has happened is read from the thread itself. A checkpoint names the turn that wrote it in its metadata, and
messages have the ids of their deliveries; both may be out of reach later (a compaction removes messages), so when the
next turn starts, the one before it leaves a mark: an empty checkpoint in a namespace of its own, found by its key.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast
from uuid import NAMESPACE_URL, uuid5

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata, CheckpointTuple, empty_checkpoint
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

from agentkit.errors import InvalidTurn, UnknownInterrupt
from agentkit.turns.given import with_ids
from agentkit.turns.holding import Terms, aheld, held
from agentkit.turns.reading import TURN, broke_off, has_message, is_last_turn, paused_after, result_of, turn_of

__all__ = ["adecide", "arun_turn", "decide", "run_turn"]

Graph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]

_EPOCH: Final = "agentkit_epoch"
_STATE: Final = "agentkit_state"
_MARKS: Final = uuid5(NAMESPACE_URL, "agentkit:turns")
_TTL: Final = 30.0


def run_turn(
    agent: Graph,
    thread: str | RunnableConfig,
    message_id: str,
    input: Any,
    *,
    owner: str | None = None,
    ttl: float = _TTL,
    wait: float | None = None,
    **kwargs: Any,
) -> Any:
    """Take a user's message into a thread and answer it, once, however often it is delivered.

    A message that was never seen starts a turn; one whose turn broke off continues it; one whose turn is over, or waits
    for a decision, gets its result again, and nothing is executed. The thread is held while the turn goes on.

    Args:
        agent: A compiled agent, or any compiled graph, with a checkpointer.
        thread: The thread's id, or a config that names it, as `agentkit.thread` makes it.
        message_id: The delivery's id: the same each time the message is delivered, another one for every other message.
        input: A text, a message, a list of messages, or a state. The last human message gets `message_id` as its id.
        owner: A name for the holder of the lease. Default: one of this call alone.
        ttl: Seconds after which a holder that died is replaced. A living one renews in time.
        wait: Seconds to wait while somebody else holds the thread. Default: as long as a dead holder keeps it.
        **kwargs: Passed to `agent.invoke`, for example `context`. `durability` is `"sync"` unless given.

    Returns:
        What `agent.invoke` returns; `exit_of` reads it.

    Raises:
        InvalidTurn: If the agent has no checkpointer, or the message no id or no input.
        ThreadBusy: If the thread was held by somebody else all the time.
        LeaseLost: If this process was taken for dead and another one has the thread now.
    """
    to = _Turn.of(agent, thread, kwargs)
    start = with_ids(to.checked(message_id), input)
    with held(to.saver, Terms.of(to.thread_id, owner, ttl, wait)) as epoch:
        return _do(_message(to.under(epoch), message_id, start))


async def arun_turn(
    agent: Graph,
    thread: str | RunnableConfig,
    message_id: str,
    input: Any,
    *,
    owner: str | None = None,
    ttl: float = _TTL,
    wait: float | None = None,
    **kwargs: Any,
) -> Any:
    """As `run_turn`."""
    to = _Turn.of(agent, thread, kwargs)
    start = with_ids(to.checked(message_id), input)
    async with aheld(to.saver, Terms.of(to.thread_id, owner, ttl, wait)) as epoch:
        return await _ado(_message(to.under(epoch), message_id, start))


def decide(
    agent: Graph,
    thread: str | RunnableConfig,
    interrupt_id: str,
    answer: Any,
    *,
    owner: str | None = None,
    ttl: float = _TTL,
    wait: float | None = None,
    **kwargs: Any,
) -> Any:
    """Answer a question that a turn waits for, once, however often the answer is delivered.

    The first answer counts. If the run broke off after it, the next delivery continues the run; if it is over, that
    delivery gets its result, and nothing is executed.

    Args:
        agent: As for `run_turn`.
        thread: As for `run_turn`.
        interrupt_id: The question's id: `Interrupt.id`, or `PendingApproval.id`.
        answer: What the run is resumed with.
        owner: As for `run_turn`.
        ttl: As for `run_turn`.
        wait: As for `run_turn`.
        **kwargs: Passed to `agent.invoke`.

    Returns:
        What `agent.invoke` returns.

    Raises:
        UnknownInterrupt: If no such question waits and none was answered here: a new message has withdrawn it, or the
            thread never asked it.
        InvalidTurn: As for `run_turn`.
        ThreadBusy: As for `run_turn`.
        LeaseLost: As for `run_turn`.
    """
    to = _Turn.of(agent, thread, kwargs)
    with held(to.saver, Terms.of(to.thread_id, owner, ttl, wait)) as epoch:
        return _do(_answer(to.under(epoch), interrupt_id, answer))


async def adecide(
    agent: Graph,
    thread: str | RunnableConfig,
    interrupt_id: str,
    answer: Any,
    *,
    owner: str | None = None,
    ttl: float = _TTL,
    wait: float | None = None,
    **kwargs: Any,
) -> Any:
    """As `decide`."""
    to = _Turn.of(agent, thread, kwargs)
    async with aheld(to.saver, Terms.of(to.thread_id, owner, ttl, wait)) as epoch:
        return await _ado(_answer(to.under(epoch), interrupt_id, answer))


# ---- what is to be done

_Call: TypeAlias = tuple[Any, str, tuple[Any, ...], dict[str, Any]]
"""An object, the name of its method in the sync form, and the arguments."""
_Steps: TypeAlias = Generator[_Call, Any, Any]


@dataclass(frozen=True, slots=True)
class _Turn:
    """An agent, and where it is to run."""

    agent: Graph
    saver: BaseCheckpointSaver[Any]
    config: RunnableConfig
    kwargs: dict[str, Any]

    @classmethod
    def of(cls, agent: Graph, thread: str | RunnableConfig, kwargs: dict[str, Any]) -> _Turn:
        if not isinstance(agent.checkpointer, BaseCheckpointSaver):
            raise InvalidTurn("the agent has no checkpointer, so nothing would be kept. Pass `checkpointer=` to it.")
        given = RunnableConfig(configurable={"thread_id": thread}) if isinstance(thread, str) else thread
        if not given.get("configurable", {}).get("thread_id"):
            raise InvalidTurn("no thread is named. Give its id, or a config made with `agentkit.thread`.")
        return cls(agent, agent.checkpointer, given, {"durability": "sync", **kwargs})

    @property
    def thread_id(self) -> str:
        return str(self.config["configurable"]["thread_id"])

    def checked(self, message_id: str) -> str:
        if not isinstance(message_id, str) or not message_id:
            raise InvalidTurn("a message needs an id, a text that is the same each time it is delivered.")
        return message_id

    def under(self, epoch: int | None) -> _Turn:
        """The same, writing only while the lease of this epoch is held."""
        if epoch is None:
            return self
        at = {**self.config["configurable"], _EPOCH: epoch}
        return _Turn(self.agent, self.saver, cast(RunnableConfig, {**self.config, "configurable": at}), self.kwargs)

    def state(self, checkpoint_id: str | None = None) -> _Call:
        """Read the thread as it stands, or as it stood."""
        at = {"thread_id": self.thread_id, **({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}
        return self.agent, "get_state", ({"configurable": at},), {}

    def run(self, input: Any, turn: str | None) -> _Call:
        """Run the agent as part of a turn."""
        named = {**self.config.get("metadata", {}), **({TURN: turn} if turn is not None else {})}
        return self.agent, "invoke", (input, {**self.config, "metadata": named}), self.kwargs

    def settled(self) -> _Call:
        """Keep what the finished tasks of a step that broke off returned, which the engine would drop."""
        return self.agent, "update_state", (self.config, None, END), {}

    def mark(self, kind: str, id: str, **told: str) -> _Call:
        """Note something in the thread under a key."""
        metadata = cast(CheckpointMetadata, {"source": "update", "step": -1, "parents": {}, **told})
        return self.saver, "put", (self._marked(kind, id), empty_checkpoint(), metadata, {}), {}

    def marked(self, kind: str, id: str) -> _Call:
        """Read what was noted."""
        return self.saver, "get_tuple", (self._marked(kind, id),), {}

    def _marked(self, kind: str, id: str) -> RunnableConfig:
        namespace = f"agentkit-{kind}-{uuid5(_MARKS, id).hex}"
        kept = {key: value for key, value in self.config["configurable"].items() if key in ("thread_id", _EPOCH)}
        return RunnableConfig(configurable={**kept, "checkpoint_ns": namespace})


def _message(to: _Turn, message_id: str, start: Any) -> _Steps:
    """Start, continue, or find what came of a message."""
    snapshot: StateSnapshot = yield to.state()
    if is_last_turn(snapshot, message_id):
        return (yield from _finished(to, snapshot, message_id))
    mark: CheckpointTuple | None = yield to.marked("turn", message_id)
    if mark is not None or has_message(snapshot, message_id):
        return (yield from _stored(to, snapshot, mark))
    if (before := turn_of(snapshot)) is not None:
        yield to.mark("turn", before, **{_STATE: snapshot.config["configurable"]["checkpoint_id"]})
    if any(task.result is not None for task in snapshot.tasks):
        yield to.settled()
    return (yield to.run(start, message_id))


def _answer(to: _Turn, interrupt_id: str, answer: Any) -> _Steps:
    """Give an answer, go on after it, or find what came of it."""
    snapshot: StateSnapshot = yield to.state()
    turn = turn_of(snapshot)
    if any(interrupt.id == interrupt_id for interrupt in snapshot.interrupts):
        yield to.mark("answer", interrupt_id, **({TURN: turn} if turn else {}))
        return (yield to.run(Command(resume={interrupt_id: answer}), turn))
    answered: CheckpointTuple | None = yield to.marked("answer", interrupt_id)
    if answered is None:
        raise UnknownInterrupt(interrupt_id, [interrupt.id for interrupt in snapshot.interrupts])
    of = cast(dict[str, Any], answered.metadata).get(TURN)
    if of == turn:
        return (yield from _finished(to, snapshot, turn))
    mark: CheckpointTuple | None = (yield to.marked("turn", of)) if of else None
    return (yield from _stored(to, snapshot, mark))


def _finished(to: _Turn, snapshot: StateSnapshot, turn: str | None) -> _Steps:
    """The result of the thread's last turn, continued if it broke off."""
    unfinished = broke_off(to.agent, snapshot)
    if unfinished and to.agent.interrupt_after_nodes and snapshot.parent_config is not None:
        before: StateSnapshot = yield to.state(snapshot.parent_config["configurable"]["checkpoint_id"])
        unfinished = not paused_after(to.agent, before)
    return (yield to.run(None, turn)) if unfinished else result_of(to.agent, snapshot)


def _stored(to: _Turn, snapshot: StateSnapshot, mark: CheckpointTuple | None) -> _Steps:
    """The result of an earlier turn; if its state is not kept any more, the thread as it stands."""
    if mark is not None:
        then: StateSnapshot = yield to.state(cast(dict[str, Any], mark.metadata)[_STATE])
        if then.created_at is not None:
            return result_of(to.agent, then)
    return result_of(to.agent, snapshot)


# ---- how it is done


def _do(steps: _Steps) -> Any:
    given = None
    try:
        while True:
            target, name, args, kwargs = steps.send(given)
            given = getattr(target, name)(*args, **kwargs)
    except StopIteration as done:
        return done.value


async def _ado(steps: _Steps) -> Any:
    given = None
    try:
        while True:
            target, name, args, kwargs = steps.send(given)
            given = await getattr(target, f"a{name}")(*args, **kwargs)
    except StopIteration as done:
        return done.value
