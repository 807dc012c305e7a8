"""What differs at granularity `"turn"`, what must not, and when it gives way to `"hook"`."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.channels import BinaryOperatorAggregate, EphemeralValue, LastValue, Topic
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages
from langgraph.types import Command, Overwrite, interrupt

from agentkit import create_agent, thread
from agentkit.local_state import LocalState, can_fold
from agentkit.state import updates_of
from agentkit.testing import ENTRY_POINTS, EntryPoint, ScriptedModel, ai, run, tool_call

entries = pytest.mark.parametrize("entry", ENTRY_POINTS)
granularities = pytest.mark.parametrize("granularity", ["hook", "turn"])


def nodes(agent: Any) -> set[str]:
    return set(agent.nodes) - {"__start__"}


class Notes(AgentMiddleware[Any, Any, Any]):
    def before_model(self, state: Any, runtime: Any) -> None: ...


class Heap(AgentState[Any]):
    heap: NotRequired[Annotated[list[int], Topic(int)]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {"model"}),
        ({"interrupt_before": ["model"]}, {"model", "Notes.before_model"}),
        ({"interrupt_after": ["Notes.before_model"]}, {"model", "Notes.before_model"}),
        ({"state_schema": Heap}, {"model", "Notes.before_model"}),
    ],
    ids=["turn", "interrupt_before", "interrupt_after", "a field of an unusual channel"],
)
def test_when_turns_are_nodes(arguments: dict[str, Any], expected: set[str]) -> None:
    agent = create_agent(ScriptedModel("x"), middleware=[Notes()], granularity="turn", **arguments)
    assert nodes(agent) == expected


def test_turns_need_fewer_checkpoints() -> None:
    def checkpoints(granularity: Any) -> int:
        agent = create_agent(
            ScriptedModel("x"), middleware=[Notes()], checkpointer=InMemorySaver(), granularity=granularity
        )
        agent.invoke({"messages": "hi"}, thread("t"))
        return len(list(agent.get_state_history(thread("t"))))

    assert checkpoints("turn") < checkpoints("hook")


# ---- failures and pauses in the middle of a turn


class Once:
    """Fails or pauses a hook, counting how often each part of the turn ran."""

    def __init__(self, act: str) -> None:
        self.act = act
        self.ran: list[str] = []
        self.failed = False

    def middleware(self) -> list[Any]:
        trial = self

        class Breaks(AgentMiddleware[Any, Any, Any]):
            def before_model(self, state: Any, runtime: Any) -> Any:
                trial.ran.append("before")
                return {"messages": [HumanMessage("added")]}

            def after_model(self, state: Any, runtime: Any) -> Any:
                trial.ran.append("after")
                if trial.act == "pause":
                    return {"messages": [HumanMessage(str(interrupt("?")))]}
                if not trial.failed:
                    trial.failed = True
                    raise TimeoutError("slow")
                return {"messages": [HumanMessage("recovered")]}

        return [Breaks()]


@entries
@granularities
@pytest.mark.parametrize("act", ["fail", "pause"])
def test_what_was_done_in_a_turn_is_not_done_again(act: str, entry: EntryPoint, granularity: Any) -> None:
    """The model's answer is kept, and paid for once, when a hook after it fails or pauses."""
    trial, model = Once(act), ScriptedModel("answer")
    agent = create_agent(model, middleware=trial.middleware(), checkpointer=InMemorySaver(), granularity=granularity)
    first = run(agent, "hi", thread("t"), entry=entry, catch=True)
    stored = [m.text for m in agent.get_state(thread("t")).values["messages"]]
    assert stored == ["hi", "added", "answer"]
    if act == "pause":
        assert [pause.value for pause in first.interrupts] == ["?"]
        result = run(agent, Command(resume="yes"), thread("t"), entry=entry)
        assert result.text == "yes"
    else:
        assert isinstance(first.error, TimeoutError)
        assert agent.get_state(thread("t")).tasks[0].error is not None
        result = run(agent, None, thread("t"), entry=entry)
        assert result.text == "recovered"
    assert model.calls == 1
    assert trial.ran.count("before") == 1


@granularities
def test_a_failure_is_not_remembered_by_the_next_turn(granularity: Any) -> None:
    trial = Once("fail")
    agent = create_agent(
        ScriptedModel("one", "two"),
        middleware=trial.middleware(),
        checkpointer=InMemorySaver(),
        granularity=granularity,
    )
    with pytest.raises(TimeoutError):
        agent.invoke({"messages": "hi"}, thread("t"))
    assert agent.invoke({"messages": "again"}, thread("t"))["messages"][-2].text == "two"


@granularities
def test_an_update_from_outside_goes_on_where_its_node_would(granularity: Any) -> None:
    def look() -> str:
        """Look around."""
        return "seen"

    agent = create_agent(ScriptedModel("x", "y"), [look], checkpointer=InMemorySaver(), granularity=granularity)
    agent.invoke({"messages": "hi"}, thread("t"))
    agent.update_state(thread("t"), {"messages": [ai("", tool_call("look", {}, "c"))]}, as_node="model")
    assert agent.get_state(thread("t")).next == ("tools",)
    agent.update_state(thread("t"), {"messages": [ToolMessage("told", tool_call_id="c")]}, as_node="tools")
    assert agent.get_state(thread("t")).next == ("model",)
    assert [m.text for m in agent.invoke(None, thread("t"))["messages"]] == ["hi", "x", "", "told", "y"]


# ---- the state inside a node


def _sum(old: int, new: int) -> int:
    return old + new


CHANNELS: Any = {
    "messages": BinaryOperatorAggregate(list, add_messages),
    "total": BinaryOperatorAggregate(int, _sum),
    "latest": LastValue(str),
    "jump_to": EphemeralValue(str),
}


def local(**values: Any) -> LocalState:
    return LocalState(CHANNELS, {"messages": [HumanMessage("hi", id="h")], "total": 1, **values})


def test_reducers_mean_the_same_as_between_steps() -> None:
    state = local()
    state.apply({"total": 2, "latest": "a"})
    state.apply({"total": 3, "latest": "b", "unknown": 1})
    assert (state.values["total"], state.values["latest"]) == (6, "b")
    assert state.writes() == [("total", 2), ("total", 3), ("latest", "b")]


def test_an_overwrite_is_written_with_all_that_came_after_it() -> None:
    state = local()
    state.apply({"total": Overwrite(10)})
    state.apply({"total": 5})
    assert state.values["total"] == 15
    assert state.writes() == [("total", Overwrite(15))]


def test_an_ephemeral_field_lives_for_one_stop() -> None:
    state = local()
    state.apply({"jump_to": "model"})
    assert state.values["jump_to"] == "model"
    state.apply({"total": 1})
    assert "jump_to" not in state.values
    assert "jump_to" not in dict(state.writes())


def test_one_the_node_started_with_is_gone_after_its_first_stop() -> None:
    state = local(jump_to="model")
    state.apply(None)
    assert "jump_to" not in state.values


def test_messages_keep_their_ids_when_they_are_reduced_again() -> None:
    """The engine reduces a node's writes once more; a message without an id must not become two."""
    state = local()
    state.apply({"messages": ("user", "one")})
    state.apply({"messages": [AIMessage("two")]})
    ((key, written),) = state.writes()
    given: Any = [HumanMessage("hi", id="h")]
    again: Any = add_messages(given, written)
    assert key == "messages"
    assert [(m.id, m.text) for m in again] == [(m.id, m.text) for m in state.values["messages"]]


def test_a_message_removed_and_added_again_moves_to_the_end() -> None:
    state = local()
    state.apply({"messages": [AIMessage("two", id="a")]})
    state.apply({"messages": [RemoveMessage(id="h")]})
    state.apply({"messages": [HumanMessage("hi", id="h")]})
    again: Any = [HumanMessage("hi", id="h")]
    for _, written in state.writes():
        again = add_messages(again, written)
    assert [m.id for m in state.values["messages"]] == ["a", "h"]
    assert [m.id for m in again] == ["a", "h"]


def test_the_given_values_are_not_changed() -> None:
    given = {"messages": [HumanMessage("hi", id="h")], "total": 1}
    state = LocalState(CHANNELS, given)
    state.apply({"total": 1, "messages": [AIMessage("two")]})
    assert given["total"] == 1
    assert len(given["messages"]) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, []),
        ({"a": 1}, [("a", 1)]),
        (Command(update={"a": 1}), [("a", 1)]),
        (Command(update=[("a", 1), ("a", 2)]), [("a", 1), ("a", 2)]),
        ([{"a": 1}, Command(update={"b": 2}), Command()], [("a", 1), ("b", 2)]),
    ],
)
def test_every_form_of_an_update(result: Any, expected: list[tuple[str, Any]]) -> None:
    assert list(updates_of(result)) == expected


def test_which_channels_can_be_carried() -> None:
    assert can_fold(CHANNELS)
    assert not can_fold({**CHANNELS, "heap": Topic(int)})


@entries
@granularities
def test_an_overwrite_by_a_hook_replaces_the_history(entry: EntryPoint, granularity: Any) -> None:
    class Replaces(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["end"])
        def before_model(self, state: Any, runtime: Any) -> Any:
            return {"messages": Overwrite([HumanMessage("only")])}

    agent = create_agent(ScriptedModel("done"), middleware=[Replaces()], granularity=granularity)
    assert [m.text for m in run(agent, "hi", entry=entry).messages] == ["only", "done"]
