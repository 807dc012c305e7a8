"""Graphs in the shapes that LangGraph's documentation teaches: all are right, so nothing may be said of them.

LangGraph's own tests are looked at by `make upstream`; these are written anew, after the guides' ideas.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, RetryPolicy, Send, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from agentkit.check import check
from agentkit.testing import ScriptedModel
from tests.check.corpus import State, drawn, logs

SHAPES: list[Callable[[], Any]] = []


def shape(make: Callable[[], Any]) -> Callable[[], Any]:
    SHAPES.append(make)
    return make


@tool
def search(query: str) -> str:
    """Search."""
    return query


MODEL = ScriptedModel("x").bind_tools([search])


def call_model(state: MessagesState) -> dict[str, Any]:
    return {"messages": [MODEL.invoke(state["messages"])]}


@shape
def a_sequence() -> Any:
    builder: Any = StateGraph(State)
    builder.add_sequence([("one", logs("one")), ("two", logs("two")), ("three", logs("three"))])
    builder.add_edge(START, "one")
    return builder


@shape
def fan_out_and_fan_in() -> Any:
    return drawn((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", END))


@shape
def a_deferred_aggregation() -> Any:
    return drawn((START, "a"), ("a", "b"), ("a", "c"), ("b", "b2"), ("b2", "d"), ("c", "d"), ("d", END), defer="d")


@shape
def a_router_that_starts_two_of_three() -> Any:
    def which(state: State) -> Sequence[str]:
        if state["text"] == "cd":
            return ["c", "d"]
        return ["b", "c"]

    builder = drawn((START, "a"), ("b", "e"), ("c", "e"), ("d", "e"), ("e", END))
    builder.add_conditional_edges("a", which, ["b", "c", "d"])
    return builder


@shape
def map_and_reduce() -> Any:
    class Overall(TypedDict):
        subjects: list[str]
        jokes: Annotated[list[str], operator.add]
        best: str

    class One(TypedDict):
        subject: str

    def topics(state: Overall) -> dict[str, Any]:
        return {"subjects": ["cats", "dogs"]}

    def joke(state: One) -> dict[str, Any]:
        return {"jokes": [state["subject"]]}

    def best(state: Overall) -> dict[str, Any]:
        return {"best": state["jokes"][0]}

    def each(state: Overall) -> list[Send]:
        return [Send("joke", {"subject": subject}) for subject in state["subjects"]]

    builder = drawn(
        (START, "topics"), ("joke", "best"), ("best", END), schema=Overall, topics=topics, joke=joke, best=best
    )
    builder.add_conditional_edges("topics", each, ["joke"])
    return builder


@shape
def a_loop_with_an_end() -> Any:
    def again(state: State) -> Literal["b", "__end__"]:
        return "b" if len(state["log"]) < 7 else "__end__"

    builder = drawn((START, "a"), ("b", "a"))
    builder.add_conditional_edges("a", again)
    return builder


@shape
def a_loop_with_branches_that_meet() -> Any:
    def again(state: State) -> Literal["b", "__end__"]:
        return "b" if len(state["log"]) < 7 else "__end__"

    builder = drawn((START, "a"), ("b", "c"), ("b", "d"), (("c", "d"), "a"))
    builder.add_conditional_edges("a", again)
    return builder


@shape
def a_loop_that_counts_the_steps_that_remain() -> Any:
    class Counting(TypedDict):
        log: Annotated[list[str], operator.add]
        remaining_steps: RemainingSteps

    def again(state: Counting) -> str:
        return END if state["remaining_steps"] <= 2 else "b"

    builder = drawn((START, "a"), ("b", "a"), schema=Counting)
    builder.add_conditional_edges("a", again)
    return builder


@shape
def commands_that_route() -> Any:
    def a(state: State) -> Command[Literal["b", "c"]]:
        value = "b" if state["text"] else "c"
        goto: Any = "b" if value == "b" else "c"
        return Command(update={"text": value}, goto=goto)

    return drawn((START, "a"), a=a, b=logs("b"), c=logs("c"))


@shape
def a_command_to_the_graph_around() -> Any:
    def a(state: State) -> Command[Any]:
        return Command(update={"text": "x"}, goto="b", graph=Command.PARENT)

    outer: Any = StateGraph(State)
    outer.add_node("inner", drawn((START, "a"), a=a).compile(), destinations=("b", "c"))
    outer.add_node("b", logs("b"))
    outer.add_node("c", logs("c"))
    outer.add_edge(START, "inner")
    return outer.compile()


@shape
def states_of_input_output_and_nodes() -> Any:
    class Question(TypedDict):
        question: str

    class Answer(TypedDict):
        answer: str

    class Both(Question, Answer):
        pass

    class Private(TypedDict):
        found: list[str]

    def look(state: Question) -> Private:
        return {"found": [state["question"]]}

    def reply(state: Private) -> Answer:
        return {"answer": state["found"][0]}

    builder: Any = StateGraph(Both, input_schema=Question, output_schema=Answer)
    builder.add_sequence([look, reply])
    builder.add_edge(START, "look")
    builder.add_edge("reply", END)
    return builder.compile()


@shape
def a_pydantic_state() -> Any:
    class Checked(BaseModel):
        name: str = ""
        age: int = 0

    def fill(state: Checked) -> dict[str, Any]:
        return {"name": state.name.title(), "age": state.age + 1}

    return drawn((START, "fill"), ("fill", END), schema=Checked, fill=fill)


@shape
def a_dataclass_state() -> Any:
    @dataclass
    class Kept:
        messages: Annotated[list[AnyMessage], add_messages]

    def reply(state: Kept) -> dict[str, Any]:
        return {"messages": [AIMessage("Hello.")]}

    return drawn((START, "reply"), ("reply", END), schema=Kept, reply=reply)


@shape
def a_chain_of_prompts_with_a_check_between() -> Any:
    class Joke(TypedDict):
        topic: str
        joke: str
        better: str

    def make(state: Joke) -> dict[str, Any]:
        return {"joke": str(MODEL.invoke(state["topic"]))}

    def improve(state: Joke) -> dict[str, Any]:
        return {"better": state["joke"] + "!"}

    def punchline(state: Joke) -> str:
        if "?" in state["joke"] or "!" in state["joke"]:
            return "Pass"
        return "Fail"

    builder = drawn((START, "make"), ("improve", END), schema=Joke, make=make, improve=improve)
    builder.add_conditional_edges("make", punchline, {"Fail": "improve", "Pass": END})
    return builder


@shape
def parallel_calls_and_an_aggregator() -> Any:
    class Work(TypedDict):
        poem: str
        story: str
        both: str

    def poem(state: Work) -> dict[str, Any]:
        return {"poem": "p"}

    def story(state: Work) -> dict[str, Any]:
        return {"story": "s"}

    def both(state: Work) -> dict[str, Any]:
        text = f"{state['poem']}"
        text += state["story"]
        return {"both": text}

    nodes: dict[str, Any] = {"poem": poem, "story": story, "both": both}
    return drawn(
        (START, "poem"), (START, "story"), ("poem", "both"), ("story", "both"), ("both", END), schema=Work, **nodes
    )


@shape
def a_router_by_structured_output() -> Any:
    def decide(state: State) -> str | None:
        if state["text"] == "story":
            return "story"
        elif state["text"] == "joke":
            return "joke"
        return None

    builder = drawn((START, "router"), ("story", END), ("joke", END))
    builder.add_conditional_edges("router", decide, {"story": "story", "joke": "joke"})
    return builder


@shape
def orchestrator_and_workers() -> Any:
    class Report(TypedDict):
        sections: list[str]
        done: Annotated[list[str], operator.add]
        report: str

    class Section(TypedDict):
        section: str
        done: Annotated[list[str], operator.add]

    def plan(state: Report) -> dict[str, Any]:
        return {"sections": ["one", "two"]}

    def write(state: Section) -> dict[str, Any]:
        return {"done": [state["section"]]}

    def join(state: Report) -> dict[str, Any]:
        return {"report": "\n".join(state["done"])}

    def assign(state: Report) -> list[Send]:
        return [Send("write", {"section": section}) for section in state["sections"]]

    builder = drawn((START, "plan"), ("write", "join"), ("join", END), schema=Report, plan=plan, write=write, join=join)
    builder.add_conditional_edges("plan", assign, ["write"])
    return builder


@shape
def a_writer_and_a_judge() -> Any:
    def accept(state: State) -> str:
        if state["text"] == "funny":
            return "Accepted"
        elif state["text"] == "not funny":
            return "Rejected + Feedback"
        raise ValueError(state["text"])

    builder = drawn((START, "writer"), ("writer", "judge"))
    builder.add_conditional_edges("judge", accept, {"Accepted": END, "Rejected + Feedback": "writer"})
    return builder


@shape
def a_tool_calling_loop() -> Any:
    def run_tools(state: MessagesState) -> dict[str, Any]:
        results = []
        for call in state["messages"][-1].tool_calls:  # type: ignore[union-attr]
            results.append(ToolMessage(search.invoke(call["args"]), tool_call_id=call["id"]))
        return {"messages": results}

    def more(state: MessagesState) -> Literal["tools", "__end__"]:
        messages = state["messages"]
        if messages[-1].tool_calls:  # type: ignore[union-attr]
            return "tools"
        return "__end__"

    builder = drawn((START, "model"), ("tools", "model"), schema=MessagesState, model=call_model, tools=run_tools)
    builder.add_conditional_edges("model", more, ["tools", END])
    return builder


@shape
def a_tool_node_with_its_condition() -> Any:
    builder = drawn(
        (START, "model"), ("tools", "model"), schema=MessagesState, model=call_model, tools=ToolNode([search])
    )
    builder.add_conditional_edges("model", tools_condition)
    return builder.compile(checkpointer=InMemorySaver())


@shape
def retrieval_that_grades_and_rewrites() -> Any:
    def grade(state: MessagesState) -> Literal["answer", "rewrite"]:
        return "answer" if "yes" in state["messages"][-1].text else "rewrite"

    def rewrite(state: MessagesState) -> dict[str, Any]:
        return {"messages": [HumanMessage(state["messages"][0].text)]}

    nodes: dict[str, Any] = {
        "ask": call_model,
        "retrieve": ToolNode([search]),
        "rewrite": rewrite,
        "answer": call_model,
    }
    builder = drawn((START, "ask"), ("answer", END), ("rewrite", "ask"), schema=MessagesState, **nodes)
    builder.add_conditional_edges("ask", tools_condition, {"tools": "retrieve", END: END})
    builder.add_conditional_edges("retrieve", grade)
    return builder


@shape
def approve_or_reject() -> Any:
    def review(state: State) -> Command[Literal["proceed", "cancel"]]:
        approved = interrupt({"question": "Go on?", "text": state["text"]})
        if approved:
            return Command(goto="proceed", update={"text": "approved"})
        else:
            return Command(goto="cancel", update={"text": "rejected"})

    builder = drawn((START, "review"), ("proceed", END), ("cancel", END), review=review)
    return builder.compile(checkpointer=InMemorySaver())


@shape
def a_person_is_asked_until_the_answer_is_good() -> Any:
    def age(state: State) -> dict[str, Any]:
        question = "How old are you?"
        while True:
            answer = interrupt(question)
            try:
                return {"count": int(answer)}
            except (TypeError, ValueError):
                question = f"{answer!r} is no number. How old are you?"

    return drawn((START, "age"), ("age", END), age=age).compile(checkpointer=InMemorySaver())


@shape
def a_conversation_that_never_ends_by_itself() -> Any:
    def person(state: MessagesState) -> Command[Literal["agent"]]:
        return Command(update={"messages": [HumanMessage(interrupt("Say something"))]}, goto="agent")

    builder = drawn((START, "agent"), ("agent", "person"), schema=MessagesState, agent=call_model, person=person)
    return builder.compile(checkpointer=InMemorySaver())


@shape
def a_network_of_agents() -> Any:
    def travel(state: MessagesState) -> Command[Literal["hotel", "person"]]:
        goto = state["messages"][-1].text
        return Command(goto=goto, update={"messages": [AIMessage("x")]})  # type: ignore[arg-type]

    def hotel(state: MessagesState) -> Command[Literal["travel", "person"]]:
        goto = state["messages"][-1].text
        return Command(goto=goto)  # type: ignore[arg-type]

    def person(state: MessagesState) -> Command[Literal["travel", "hotel"]]:
        interrupt("Well?")
        return Command(goto="travel")

    nodes: dict[str, Any] = {"travel": travel, "hotel": hotel, "person": person}
    return drawn((START, "travel"), schema=MessagesState, **nodes).compile(checkpointer=InMemorySaver())


@shape
def a_supervisor_with_workers() -> Any:
    def supervise(state: MessagesState) -> Command[Literal["research", "code", "__end__"]]:
        goto: Any = MODEL.invoke(state["messages"]).text
        if goto == "FINISH":
            goto = END
        return Command(goto=goto)

    edges = ((START, "supervise"), ("research", "supervise"), ("code", "supervise"))
    return drawn(*edges, schema=MessagesState, supervise=supervise, research=call_model, code=call_model)


@shape
def plan_and_execute() -> Any:
    class Plan(TypedDict):
        plan: list[str]
        past: Annotated[list[tuple[str, str]], operator.add]
        response: str

    async def plan(state: Plan) -> dict[str, Any]:
        steps = (await MODEL.ainvoke("x")).text.split()
        return {"plan": steps}

    async def execute(state: Plan) -> dict[str, Any]:
        task = state["plan"][0]
        return {"past": [(task, "done")]}

    async def replan(state: Plan) -> dict[str, Any]:
        if state["past"]:
            return {"response": "x"}
        else:
            return {"plan": []}

    def ended(state: Plan) -> str:
        if state.get("response"):
            return END
        else:
            return "execute"

    nodes: dict[str, Any] = {"plan": plan, "execute": execute, "replan": replan}
    builder = drawn((START, "plan"), ("plan", "execute"), ("execute", "replan"), schema=Plan, **nodes)
    builder.add_conditional_edges("replan", ended, ["execute", END])
    return builder


@shape
def a_summary_when_the_conversation_is_long() -> Any:
    class Summed(MessagesState):
        summary: str

    def long(state: Summed) -> str:
        return "summarize" if len(state["messages"]) > 6 else END

    def summarize(state: Summed) -> dict[str, Any]:
        return {"summary": "short", "messages": []}

    builder = drawn((START, "chat"), ("summarize", END), schema=Summed, chat=call_model, summarize=summarize)
    builder.add_conditional_edges("chat", long)
    return builder


@shape
def a_subgraph_called_in_a_node() -> Any:
    class Inner(TypedDict):
        bar: str

    def change(state: Inner) -> dict[str, Any]:
        return {"bar": "hi " + state["bar"]}

    inner = drawn((START, "change"), schema=Inner, change=change).compile()

    def call(state: State) -> dict[str, Any]:
        return {"text": inner.invoke({"bar": state["text"]})["bar"]}

    return drawn((START, "call"), call=call)


@shape
def retries_and_handlers_of_failures() -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("query", logs("query"), retry_policy=RetryPolicy(max_attempts=3), error_handler=logs("failed"))
    builder.add_node("answer", logs("answer"))
    builder.add_edge(START, "query")
    builder.add_edge("query", "answer")
    builder.add_edge("answer", END)
    return builder


@pytest.mark.parametrize("make", SHAPES, ids=lambda make: make.__name__)
def test_nothing_is_said_of_a_graph_that_is_right(make: Callable[[], Any]) -> None:
    report = check(make())
    assert report.findings == (), str(report)
    assert report.complete
