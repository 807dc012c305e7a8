"""Shapes that the guides teach for several agents, graphs inside graphs and tools that lead on: all are right."""

import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Overwrite, Send
from typing_extensions import TypedDict

from agentkit import create_agent
from agentkit.check import check
from agentkit.testing import ScriptedModel
from tests.check.corpus import State, drawn, logs

SHAPES: list[Callable[[], Any]] = []
MODEL: Any = ScriptedModel("x")


def shape(make: Callable[[], Any]) -> Callable[[], Any]:
    SHAPES.append(make)
    return make


@tool
def search(query: str) -> str:
    """Search."""
    return query


def call_model(state: MessagesState) -> dict[str, Any]:
    return {"messages": [MODEL.invoke(state["messages"])]}


def hand_over_to(name: str) -> BaseTool:
    @tool(f"transfer_to_{name}")
    def transfer() -> Command[Any]:
        """Let the other one go on."""
        return Command(goto=name, graph=Command.PARENT)

    return transfer


@shape
def a_graph_inside_leaves_for_nodes_that_nothing_else_leads_to() -> Any:
    def leave(state: State) -> Command[Any]:
        goto = "left" if state["text"] == "l" else "right"
        return Command(update={"text": "gone"}, goto=goto, graph=Command.PARENT)

    inside = drawn((START, "leave"), leave=leave).compile()
    return drawn((START, "inside"), inside=inside, left=logs("left"), right=logs("right")).compile()


@shape
def agents_hand_over_to_each_other_by_tools() -> Any:
    travel = create_agent(MODEL, [search, hand_over_to("hotel")], name="travel")
    hotel = create_agent(MODEL, [hand_over_to("travel")], name="hotel")
    return drawn((START, "travel"), schema=MessagesState, travel=travel, hotel=hotel).compile()


@shape
def a_tool_leads_on_to_another_node() -> Any:
    @tool
    def escalate() -> Command[Any]:
        """Ask a person."""
        return Command(goto="person")

    return drawn((START, "tools"), schema=MessagesState, tools=ToolNode([escalate]), person=call_model)


@shape
def a_node_and_a_tool_call_a_graph_that_leaves() -> Any:
    def leave(state: State) -> Command[Any]:
        return Command(goto="after", graph=Command.PARENT)

    inside = drawn((START, "leave"), leave=leave).compile()

    @tool
    def work() -> str:
        """Work."""
        return str(inside.invoke({"log": []}))

    def call(state: State) -> dict[str, Any]:
        return {"log": inside.invoke({"log": []})["log"]}

    inner: Any = drawn((START, "call"), ("call", END), call=call, after=logs("after"))
    inner.add_node("tools", ToolNode([work])).add_edge("after", "tools")
    return inner


@shape
def teams_under_supervisors() -> Any:
    def supervisor(members: Sequence[str]) -> Callable[[MessagesState], Any]:
        def choose(state: MessagesState) -> Any:
            goto = MODEL.with_structured_output(dict).invoke(state["messages"])["next"]
            if goto == "FINISH":
                goto = END
            return Command(goto=goto)

        choose.__annotations__["return"] = Command[Literal[(*members, END)]]  # type: ignore[valid-type]
        return choose

    def back_with(answer: Callable[[list[AnyMessage]], Any]) -> Callable[[MessagesState], Any]:
        def work(state: MessagesState) -> Command[Literal["supervisor"]]:
            said = answer(state["messages"])
            return Command(update={"messages": [HumanMessage(said)]}, goto="supervisor")

        return work

    def team(name: str, one: Any, two: Any) -> Any:
        nodes: dict[str, Any] = {"one": back_with(one), "two": back_with(two), "supervisor": supervisor(["one", "two"])}
        return drawn((START, "supervisor"), schema=MessagesState, **nodes).compile(name=name)

    research = team("research", MODEL.invoke, MODEL.invoke)
    writing = team("writing", MODEL.invoke, MODEL.invoke)
    return team(
        "all", lambda said: research.invoke({"messages": said}), lambda said: writing.invoke({"messages": said})
    )


@shape
def two_who_answer_each_other_until_one_is_done() -> Any:
    def following(said: AIMessage, other: str) -> str:
        return END if "FINAL" in said.text else other

    def first(state: MessagesState) -> Command[Literal["second", "__end__"]]:
        said = MODEL.invoke(state["messages"])
        goto: Any = following(said, "second")
        return Command(update={"messages": [said]}, goto=goto)

    def second(state: MessagesState) -> Command[Literal["first", "__end__"]]:
        said = MODEL.invoke(state["messages"])
        goto: Any = following(said, "first")
        return Command(update={"messages": [said]}, goto=goto)

    return drawn((START, "first"), schema=MessagesState, first=first, second=second)


def kept(left: list[str], right: str | None) -> list[str]:
    return left if right is None else left[:-1] if right == "pop" else [*left, right]


class Desk(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    skills: Annotated[list[Literal["desk", "flights"]], kept]


class Assistant:
    def __call__(self, state: Desk) -> dict[str, Any]:
        while True:
            said = MODEL.invoke(state["messages"])
            if said.text or said.tool_calls:
                return {"messages": said}
            state = {**state, "messages": [*state["messages"], HumanMessage("Say something.")]}


def entry(skill: str) -> Callable[[Desk], Any]:
    def enter(state: Desk) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]  # type: ignore[union-attr]
        return {"messages": [ToolMessage("entered", tool_call_id=call["id"])], "skills": skill}

    return enter


def leave(state: Desk) -> dict[str, Any]:
    messages = []
    if state["messages"][-1].tool_calls:  # type: ignore[union-attr]
        messages.append(ToolMessage("left", tool_call_id="1"))
    return {"skills": "pop", "messages": messages}


def to_skill(state: Desk) -> Literal["desk", "flights"]:
    if not state.get("skills"):
        return "desk"
    return state["skills"][-1]


def from_desk(state: Desk) -> str:
    if tools_condition(state) == END:  # type: ignore[arg-type]
        return END
    if state["messages"][-1].tool_calls[0]["name"] == "to_flights":  # type: ignore[union-attr]
        return "enter_flights"
    raise ValueError("no way on")


def from_flights(state: Desk) -> str:
    route = tools_condition(state)  # type: ignore[arg-type]
    if route == END:
        return END
    calls = state["messages"][-1].tool_calls  # type: ignore[union-attr]
    if any(call["name"] == "done" for call in calls):
        return "leave"
    return "careful" if all(call["name"] == "search" for call in calls) else "sensitive"


@shape
def a_desk_with_skills_that_are_entered_and_left() -> Any:
    tools = ToolNode([search]).with_fallbacks([RunnableLambda(leave)], exception_key="error")
    nodes: dict[str, Any] = {
        "enter_flights": entry("flights"),
        "leave": leave,
        "desk": Assistant(),
        "flights": Assistant(),
    }
    edges = ((START, "greet"), ("enter_flights", "flights"), ("leave", "desk"), ("careful", "flights"))
    builder = drawn(*edges, ("sensitive", "flights"), schema=Desk, greet=lambda state: None, careful=tools,
                    sensitive=tools, **nodes)  # fmt: skip
    builder.add_conditional_edges("greet", to_skill)
    builder.add_conditional_edges("desk", from_desk, ["enter_flights", END])
    builder.add_conditional_edges("flights", from_flights, ["careful", "sensitive", "leave", END])
    return builder.compile(checkpointer=InMemorySaver(), interrupt_before=["sensitive"])


class Interview(MessagesState):
    context: Annotated[list[str], operator.add]
    sections: list[str]


class Report(TypedDict):
    topic: str
    feedback: str
    analysts: list[str]
    sections: Annotated[list[str], operator.add]
    start: str
    body: str
    end: str
    report: str


def web(state: Interview) -> dict[str, Any]:
    return {"context": ["w"]}


def books(state: Interview) -> dict[str, Any]:
    return {"context": ["b"]}


def after(state: Interview, name: str = "expert") -> str:
    if len([each for each in state["messages"] if each.name == name]) >= 2:
        return "section"
    return "ask"


def section(state: Interview) -> dict[str, Any]:
    return {"sections": ["s"]}


def analysts(state: Report) -> dict[str, Any]:
    return {"analysts": [state["topic"]]}


def feedback(state: Report) -> None: ...


def interviews(state: Report) -> Any:
    if state.get("feedback", "approve") != "approve":
        return "analysts"
    else:
        return [Send("interview", {"messages": [HumanMessage(each)]}) for each in state["analysts"]]


def part(name: str) -> Callable[[Report], Any]:
    return lambda state: {name: "\n".join(state["sections"])}


def whole(state: Report) -> dict[str, Any]:
    return {"report": state["start"] + state["body"] + state["end"]}


@shape
def interviews_side_by_side_and_a_report_of_three_parts() -> Any:

    edges = ((START, "ask"), ("ask", "web"), ("ask", "books"), ("web", "answer"), ("books", "answer"), ("section", END))
    nodes: dict[str, Any] = {"web": web, "books": books, "section": section}
    interview = drawn(*edges, schema=Interview, ask=call_model, answer=call_model, **nodes)
    interview.add_conditional_edges("answer", after, ["ask", "section"])

    parts = {name: part(name) for name in ("start", "body", "end")}
    outer: Any = StateGraph(Report)
    for name, node in {"analysts": analysts, "feedback": feedback, "interview": interview.compile()}.items():
        outer.add_node(name, node)
    for name, node in parts.items():
        outer.add_node(f"write_{name}", node)
        outer.add_edge("interview", f"write_{name}")
    outer.add_node(whole)
    outer.add_edge(START, "analysts").add_edge("analysts", "feedback")
    outer.add_conditional_edges("feedback", interviews, ["analysts", "interview"])
    outer.add_edge([f"write_{name}" for name in parts], "whole").add_edge("whole", END)
    return outer.compile(interrupt_before=["feedback"], checkpointer=InMemorySaver())


@shape
def graphs_side_by_side_that_share_one_field() -> Any:
    class Outcome(TypedDict):
        done: list[str]

    class Inner(Outcome):
        raw: list[str]
        found: list[str]

    class Outer(TypedDict):
        raw: list[str]
        done: Annotated[list[str], operator.add]

    def find(state: Inner) -> dict[str, Any]:
        found = [each for each in state["raw"] if each]
        return {"found": found}

    def finish(state: Inner) -> dict[str, Any]:
        return {"done": [f"checked {each}" for each in state["found"]]}

    def inner() -> Any:
        builder: Any = StateGraph(Inner, output_schema=Outcome)
        return builder.add_sequence([find, finish]).add_edge(START, "find").add_edge("finish", END).compile()

    def clean(state: Outer) -> dict[str, Any]:
        raw = state["raw"]
        return {"raw": raw}

    edges = ((START, "clean"), ("clean", "one"), ("clean", "two"), ("one", END), ("two", END))
    return drawn(*edges, schema=Outer, clean=clean, one=inner(), two=inner())


@shape
def tools_as_nodes_of_their_own_chosen_by_what_the_model_says() -> Any:
    class Browser(TypedDict):
        prediction: dict[str, Any]
        observation: str
        notes: list[str]

    def annotate(state: Browser) -> dict[str, Any]:
        return {**state}

    def note(state: Browser) -> dict[str, Any]:
        old = state.get("notes")
        notes = [*old, state["observation"]] if old else [state["observation"]]
        return {**state, "notes": notes}

    def choose(state: Browser) -> str:
        action = state["prediction"]["action"]
        if action == "answer":
            return END
        if action == "retry":
            return "agent"
        return str(action)

    agent = RunnableLambda(annotate) | RunnablePassthrough.assign(prediction=lambda state: {"action": "answer"})
    builder = drawn((START, "agent"), ("note", "agent"), schema=Browser, agent=agent, note=note)
    for name in ("click", "scroll"):
        builder.add_node(name, RunnableLambda(lambda state: "seen") | (lambda seen: {"observation": seen}))
        builder.add_edge(name, "note")
    builder.add_conditional_edges("agent", choose)
    return builder


@shape
def a_reducer_that_is_passed_by() -> Any:
    def replace(state: State) -> dict[str, Any]:
        return {"log": Overwrite(["anew"])}

    def replace_by_key(state: State) -> dict[str, Any]:
        return {"log": {"__overwrite__": ["anew"]}}

    nodes: dict[str, Any] = {"replace": replace, "by_key": replace_by_key}
    return drawn((START, "a"), ("a", "replace"), ("replace", "by_key"), ("by_key", END), **nodes)


@pytest.mark.parametrize("make", SHAPES, ids=lambda make: make.__name__)
def test_nothing_is_said_of_a_graph_that_is_right(make: Callable[[], Any]) -> None:
    report = check(make())
    assert report.findings == (), str(report)
    assert report.complete


def test_a_node_that_is_a_graph_and_leaves_beside_an_edge_of_its_own_does_both() -> None:
    def leave(state: State) -> Command[Any]:
        return Command(goto="b", graph=Command.PARENT)

    inside = drawn((START, "leave"), leave=leave).compile()
    builder = drawn((START, "inside"), ("inside", "a"), inside=inside, b=logs("b"))
    assert sorted(builder.compile().invoke({"log": []})["log"]) == ["a", "b"]
    assert check(builder).codes == ["AK203"]
