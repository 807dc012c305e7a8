"""Shapes that the guides teach for corrections, persons and failures: all are right, so nothing may be said of them."""

import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda, chain
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langgraph.types import CachePolicy, Command, RetryPolicy, interrupt
from typing_extensions import TypedDict

from agentkit.check import check
from agentkit.testing import ScriptedModel
from tests.check.corpus import State, drawn, logs

SHAPES: list[Callable[[], Any]] = []
MODEL: Any = ScriptedModel("x")
FLAG = "do not reflect"


def shape(make: Callable[[], Any]) -> Callable[[], Any]:
    SHAPES.append(make)
    return make


def call_model(state: MessagesState) -> dict[str, Any]:
    return {"messages": MODEL.invoke(state["messages"])}


@shape
def code_that_is_tried_and_corrected() -> Any:
    class Code(TypedDict):
        messages: list[Any]
        code: str
        rounds: int
        failed: str

    def write(state: Code) -> dict[str, Any]:
        messages = state["messages"]
        rounds = state["rounds"]
        if state["failed"] == "yes":
            messages += [("user", "Try again.")]
        code = MODEL.invoke(messages).text
        messages += [("assistant", code)]
        rounds = rounds + 1
        return {"code": code, "messages": messages, "rounds": rounds}

    def attempt(state: Code) -> dict[str, Any]:
        messages = state["messages"]
        try:
            compile(state["code"], "code", "exec")
        except Exception as error:
            messages += [("user", f"It failed: {error}")]
            return {"messages": messages, "failed": "yes"}
        return {"messages": messages, "failed": "no"}

    def enough(state: Code) -> str:
        if state["failed"] == "no" or state["rounds"] == 3:
            return "end"
        else:
            if FLAG == "reflect":
                return "reflect"
            else:
                return "write"

    builder = drawn((START, "write"), ("write", "attempt"), ("reflect", "write"), schema=Code, write=write,
                    attempt=attempt, reflect=write)  # fmt: skip
    builder.add_conditional_edges("attempt", enough, {"end": END, "reflect": "reflect", "write": "write"})
    return builder


class Asked(TypedDict):
    question: str
    answer: str
    found: list[str]


def look(state):  # type: ignore[no-untyped-def]  # as the guides write nodes
    question = state["question"]
    return {"found": [question], "question": question}


def keep(state):  # type: ignore[no-untyped-def]
    kept = []
    for each in state["found"]:
        if each:
            kept.append(each)
        else:
            continue
    return {"found": kept, "question": state["question"]}


def answer(state):  # type: ignore[no-untyped-def]
    return {"found": state["found"], "question": state["question"], "answer": "a"}


def whereto(state):  # type: ignore[no-untyped-def]
    source = MODEL.with_structured_output(dict).invoke(state["question"])
    if source.kind == "web":
        return "web"
    elif source.kind == "store":
        return "store"


def any_left(state):  # type: ignore[no-untyped-def]
    state["question"]
    return "rephrase" if not state["found"] else "answer"


def good(state):  # type: ignore[no-untyped-def]
    grade = MODEL.invoke(state["answer"]).text
    if grade == "yes":
        grade = MODEL.invoke(state["question"]).text
        if grade == "yes":
            return "useful"
        else:
            return "not useful"
    else:
        return "not supported"


@shape
def answers_graded_twice_with_a_question_that_is_routed_first() -> Any:
    nodes: dict[str, Any] = {"web": look, "store": look, "keep": keep, "answer": answer, "rephrase": look}
    builder = drawn(("web", "answer"), ("store", "keep"), ("rephrase", "store"), schema=Asked, **nodes)
    builder.add_conditional_edges(START, whereto, {"web": "web", "store": "store"})
    builder.add_conditional_edges("keep", any_left, {"rephrase": "rephrase", "answer": "answer"})
    builder.add_conditional_edges("answer", good, {"not supported": "answer", "useful": END, "not useful": "rephrase"})
    return builder


@shape
def steps_that_are_planned_and_carried_out_one_by_one() -> Any:
    class Plan(TypedDict):
        steps: list[tuple[str, str]]
        results: dict[str, str] | None
        answer: str

    def current(state: Plan) -> int | None:
        if "results" not in state or state["results"] is None:
            return 1
        if len(state["results"]) == len(state["steps"]):
            return None
        else:
            return len(state["results"]) + 1

    def act(state: Plan) -> dict[str, Any]:
        results = (state["results"] or {}) if "results" in state else {}
        name, what = state["steps"][(current(state) or 1) - 1]
        results[name] = what
        return {"results": results}

    def whereto(state: Plan) -> str:
        step = current(state)
        if step is None:
            return "solve"
        else:
            return "act"

    def solve(state: Plan) -> dict[str, Any]:
        text = ""
        for name, _ in state["steps"]:
            text += name
        return {"answer": text}

    nodes: dict[str, Any] = {"plan": lambda state: {"steps": [("a", "b")]}, "act": act, "solve": solve}
    builder = drawn((START, "plan"), ("plan", "act"), ("solve", END), schema=Plan, **nodes)
    builder.add_conditional_edges("act", whereto)
    return builder


@shape
def a_line_of_nodes_that_give_back_the_whole_state() -> Any:
    class Article(TypedDict):
        topic: str
        outline: str
        article: str

    async def outline(state: Article) -> dict[str, Any]:
        made = await MODEL.ainvoke(state["topic"])
        return {**state, "outline": made.text}

    async def index(state: Article) -> Article:
        seen = []
        seen.append(state["outline"])
        return state

    async def write(state: Article) -> dict[str, Any]:
        return {**state, "article": "\n".join([state["outline"]])}

    builder: Any = StateGraph(Article)
    names = [("outline", outline), ("index", index), ("write", write)]
    for number, (name, node) in enumerate(names):
        builder.add_node(name, node, retry_policy=RetryPolicy(max_attempts=3))
        if number > 0:
            builder.add_edge(names[number - 1][0], name)
    builder.set_entry_point("outline")
    builder.set_finish_point("write")
    return builder.compile(checkpointer=InMemorySaver())


@shape
def an_answer_that_is_validated_with_a_fallback() -> Any:
    class Wrapped(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]
        attempts: Annotated[int, operator.add]

    class Finalizer:
        def __call__(self, state: Wrapped) -> dict[str, Any]:
            return {"messages": state["messages"][-1]}

    def validated(state: Wrapped) -> str:
        if state["attempts"] > 3:
            raise ValueError("too often")
        for message in state["messages"][::-1]:
            if message.type == "ai":
                break
            if message.additional_kwargs.get("is_error"):
                return "fallback"
        return "finalizer"

    asked: Any = RunnableLambda(lambda state: state["messages"]) | MODEL
    asked = asked | (lambda message: {"messages": [message], "attempts": 1})
    nodes: dict[str, Any] = {"ask": asked, "fallback": asked, "validator": ToolNode([]), "finalizer": Finalizer()}
    builder = drawn((START, "ask"), ("ask", "validator"), ("fallback", "validator"), ("finalizer", END),
                    schema=Wrapped, **nodes)  # fmt: skip
    builder.add_conditional_edges("validator", validated, ["finalizer", "fallback"])
    return builder


@shape
def a_planner_and_a_joiner_that_are_chains() -> Any:
    @chain
    def schedule(state: MessagesState) -> dict[str, Any]:
        messages = state["messages"]
        return {"messages": messages}

    def again(state: MessagesState) -> str:
        if state["messages"][-1].type == "ai":
            return END
        return "schedule"

    join = RunnableLambda(lambda state: state["messages"]) | (lambda said: {"messages": said})
    builder = drawn((START, "schedule"), ("schedule", "join"), schema=MessagesState, schedule=schedule, join=join)
    builder.add_conditional_edges("join", again)
    return builder


@shape
def a_person_reviews_each_tool_call() -> Any:
    def review(state: MessagesState) -> Any:
        said: Any = state["messages"][-1]
        answer = interrupt({"call": said.tool_calls[-1]})
        if answer["action"] == "continue":
            return Command(goto="run")
        elif answer["action"] == "update":
            return Command(goto="run", update={"messages": [said]})
        elif answer["action"] == "feedback":
            return Command(goto="ask", update={"messages": [ToolMessage(answer["data"], tool_call_id="1")]})

    def after(state: MessagesState) -> Literal["review", "__end__"]:
        if len(state["messages"][-1].tool_calls) == 0:  # type: ignore[union-attr]
            return "__end__"
        else:
            return "review"

    review.__annotations__["return"] = Command[Literal["ask", "run"]]
    nodes: dict[str, Any] = {"ask": call_model, "run": call_model, "review": review}
    builder = drawn((START, "ask"), ("run", "ask"), schema=MessagesState, **nodes)
    builder.add_conditional_edges("ask", after)
    return builder.compile(checkpointer=InMemorySaver())


@shape
def a_person_answers_whoever_asked() -> Any:
    def agent(other: str) -> Any:
        def ask(state: MessagesState) -> Any:
            response = {"messages": [MODEL.invoke(state["messages"])]}
            return Command(update=response, goto="person")

        ask.__annotations__["return"] = Command[Literal[(other, "person")]]  # type: ignore[valid-type]
        return ask

    def person(state: MessagesState, config: RunnableConfig) -> Command[Literal["one", "two", "person"]]:
        said = interrupt(value="Well?")
        triggers = config["metadata"]["langgraph_triggers"]
        if len(triggers) != 1:
            raise AssertionError("one trigger is expected")
        return Command(update={"messages": [HumanMessage(said)]}, goto=triggers[0].split(":")[1])

    nodes: dict[str, Any] = {"one": agent("two"), "two": agent("one"), "person": person}
    return drawn((START, "one"), schema=MessagesState, **nodes).compile(checkpointer=InMemorySaver())


@shape
def two_persons_are_asked_at_once() -> Any:
    def asks(name: str) -> Callable[[State], Any]:
        return lambda state: {"log": [f"{name}: {interrupt(name)}"]}

    edges = ((START, "a"), (START, "b"), ("a", END), ("b", END))
    return drawn(*edges, a=asks("a"), b=asks("b")).compile(checkpointer=InMemorySaver())


@shape
def a_form_that_asks_again_over_a_condition() -> Any:
    class Form(TypedDict):
        age: int | None
        question: str | None

    def collect(state: Form) -> dict[str, Any]:
        answer = interrupt(state.get("question") or "How old are you?")
        if isinstance(answer, int) and answer > 0:
            return {"age": answer, "question": None}
        return {"question": f"{answer!r} is no age."}

    def done(state: Form) -> str:
        return END if state.get("age") is not None else "collect"

    builder = drawn((START, "collect"), schema=Form, collect=collect)
    builder.add_conditional_edges("collect", done)
    return builder.compile(checkpointer=InMemorySaver())


@shape
def a_node_where_a_run_stops_before_it_and_nodes_that_write_nothing() -> Any:
    def step(state):  # type: ignore[no-untyped-def]
        print("---step---")
        pass

    def forget(state: MessagesState) -> Any:
        messages = state["messages"]
        if len(messages) > 2:
            return {"messages": [RemoveMessage(id=m.id or "") for m in messages[:2]]}

    nodes: dict[str, Any] = {"ask": call_model, "forget": forget, "step": step}
    builder = drawn((START, "ask"), ("ask", "step"), ("step", "forget"), schema=MessagesState, **nodes)
    return builder.compile(checkpointer=InMemorySaver(), interrupt_before=["step"])


@shape
def a_failure_that_is_made_good_by_another_node() -> Any:
    def charge(state: State) -> dict[str, Any]:
        raise ConnectionError("the gateway is away")

    def compensate(state: State, error: NodeError) -> Command[Any]:
        return Command(update={"text": f"made good: {error.error}"}, goto="finish")

    def cached(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        if runtime.execution_info is not None and runtime.execution_info.node_attempt > 1:
            return {"text": "second"}
        return {"text": "first"}

    builder: Any = StateGraph(State)
    builder.add_node("finish", logs("finish"))
    builder.add_node("cached", cached, cache_policy=CachePolicy(ttl=3))
    builder.add_node("charge", charge, retry_policy=RetryPolicy(max_attempts=3), error_handler=compensate)
    builder.add_edge(START, "cached").add_edge("cached", "charge")
    return builder.compile(cache=InMemoryCache())


@shape
def a_tool_that_asks_before_it_acts() -> Any:
    @tool
    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}" if interrupt({"to": to})["approved"] else "not sent"

    def run(state: MessagesState) -> dict[str, Any]:
        done = []
        for call in state["messages"][-1].tool_calls:  # type: ignore[union-attr]
            done.append(ToolMessage(send.invoke(call["args"]), tool_call_id=call["id"]))
        return {"messages": done}

    def more(state: MessagesState) -> Literal["run", "__end__"]:
        """Go on, or stop."""
        messages = state["messages"]
        if messages[-1].tool_calls:  # type: ignore[union-attr]
            return "run"
        return "__end__"

    builder = drawn((START, "ask"), ("run", "ask"), schema=MessagesState, ask=call_model, run=run)
    builder.add_conditional_edges("ask", more, ["run", END])
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("make", SHAPES, ids=lambda make: make.__name__)
def test_nothing_is_said_of_a_graph_that_is_right(make: Callable[[], Any]) -> None:
    report = check(make())
    assert report.findings == (), str(report)
    assert report.complete
