"""`ask`: pausing for an answer, in any graph."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from agentkit import thread
from agentkit.errors import MissingCheckpointer
from agentkit.pause import Delivery, ask

CFG = thread("t")


class State(TypedDict, total=False):
    first: int
    second: int


class NotANumber(ValueError):
    """The answer is none."""


def a_number(answer: Any, came: Delivery) -> int:
    if not isinstance(answer, int):
        raise NotANumber(repr(answer))
    return answer if came.addressed else -answer


def asking(name: str) -> Any:
    def node(state: State) -> Any:
        return {name: ask({"question": name}, a_number, {"type": "integer"}, asker=name)}

    return node


def graph(*names: str, saver: Any = None) -> Any:
    builder = StateGraph(State)
    for name in names:
        builder.add_node(f"ask {name}", asking(name))
        builder.add_edge(START, f"ask {name}")
    return builder.compile(checkpointer=saver)


def test_it_pauses_with_the_question_and_returns_the_checked_answer() -> None:
    asks = graph("first", saver=InMemorySaver())
    (question,) = asks.invoke({}, CFG)["__interrupt__"]
    assert (question.value, question.response_schema) == ({"question": "first"}, {"type": "integer"})
    assert asks.invoke(Command(resume={question.id: 7}), CFG) == {"first": 7}


def test_an_answer_without_the_questions_id_is_known_as_such() -> None:
    asks = graph("first", saver=InMemorySaver())
    asks.invoke({}, CFG)
    assert asks.invoke(Command(resume=7), CFG) == {"first": -7}


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_refused_answer_raises_its_own_error_and_can_be_given_again(is_async: bool) -> None:
    asks = graph("first", "second", saver=InMemorySaver())
    paused = asks.invoke({}, CFG)["__interrupt__"]
    ids = {question.value["question"]: question.id for question in paused}
    answers: Any = Command(resume={ids["first"]: "many", ids["second"]: 2})
    with pytest.raises(NotANumber, match="'many'"):
        await asks.ainvoke(answers, CFG) if is_async else asks.invoke(answers, CFG)
    assert [one.value["question"] for one in asks.get_state(CFG).interrupts] == ["first"]  # the other one counted
    assert asks.invoke(Command(resume={ids["first"]: 1}), CFG) == {"first": 1, "second": 2}


def test_without_a_checkpointer_it_says_who_asks_and_what_is_missing() -> None:
    with pytest.raises(MissingCheckpointer, match=r"first has to pause .* `checkpointer=`"):
        graph("first").invoke({}, CFG)


def test_a_graph_inside_a_stored_one_can_pause() -> None:
    outer = StateGraph(State)
    outer.add_node("inner", graph("first"))
    outer.add_edge(START, "inner")
    asks: Any = outer.compile(checkpointer=InMemorySaver())
    (question,) = asks.invoke({}, CFG)["__interrupt__"]
    assert asks.invoke(Command(resume={question.id: 7}), CFG) == {"first": 7}


def twice(state: State) -> Any:
    return {name: ask({"question": name}, a_number, {"type": "integer"}, asker=name) for name in ("first", "second")}


def asking_twice() -> Any:
    builder = StateGraph(State)
    builder.add_node("ask twice", twice)
    builder.add_edge(START, "ask twice")
    return builder.compile(checkpointer=InMemorySaver())


def test_a_refused_answer_without_an_id_is_not_kept_for_the_next_question() -> None:
    asks = asking_twice()
    (first,) = asks.invoke({}, CFG)["__interrupt__"]
    with pytest.raises(NotANumber, match="'many'"):
        asks.invoke(Command(resume="many"), CFG)
    (second,) = asks.invoke(Command(resume={first.id: 1000}), CFG)["__interrupt__"]
    assert second.value == {"question": "second"}
    assert asks.invoke(Command(resume={second.id: 2000}), CFG) == {"first": 1000, "second": 2000}


def test_each_answer_is_known_as_addressed_or_not_also_when_the_step_runs_again() -> None:
    asks = asking_twice()
    (first,) = asks.invoke({}, CFG)["__interrupt__"]
    asks.invoke(Command(resume={first.id: 1000}), CFG)
    assert asks.invoke(Command(resume=2000), CFG) == {"first": 1000, "second": -2000}
