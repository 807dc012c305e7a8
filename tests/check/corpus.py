"""Small graphs, each with what a check must say of it: per rule at least one faulty, one mended, one look-alike."""

import asyncio
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired

from langchain.agents import create_agent as langchain_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    hook_config,
)
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, Send, interrupt
from typing_extensions import TypedDict

from agentkit import Limits, barrier, create_agent
from agentkit.middleware import Approval, Gates, ModelRetry, StepBudget, ToolRetry
from agentkit.testing import ScriptedModel


@dataclass(frozen=True)
class Case:
    """A graph and the findings that a check must have of it."""

    name: str
    kind: Literal["faulty", "mended", "alike"]
    code: str
    make: Callable[[], Any]
    durable: bool = False

    @property
    def expected(self) -> list[str]:
        return [self.code] if self.kind == "faulty" else []


Make = Callable[[], Any]
CASES: list[Case] = []


def case(kind: Literal["faulty", "mended", "alike"], code: str, durable: bool = False) -> Callable[[Make], Make]:
    def entered(make: Make) -> Make:
        CASES.append(Case(make.__name__, kind, code, make, durable))
        return make

    return entered


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    text: NotRequired[str]
    count: NotRequired[int]


def logs(name: str) -> Callable[[State], dict[str, Any]]:
    """A node that writes its name into the log."""

    def node(state: State) -> dict[str, Any]:
        return {"log": [name]}

    return node


def drawn(*edges: tuple[Any, str], defer: str = "", schema: Any = State, **nodes: Any) -> Any:
    """A graph of edges (of a list edge the first part is a tuple); nodes that are not given only log their name."""
    builder: Any = StateGraph(schema)
    names = {name for start, end in edges for name in ((start, end) if isinstance(start, str) else (*start, end))}
    for name in sorted(names | nodes.keys()):
        if name not in (START, END):
            builder.add_node(name, nodes.get(name, logs(name)), defer=name == defer)
    for start, end in edges:
        builder.add_edge(start if isinstance(start, str) else list(start), end)
    return builder


# ---- AK101 unequal fan-in


@case("faulty", "AK101")
def one_branch_is_longer() -> Any:
    return drawn((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "e"), ("d", "e"))


@case("faulty", "AK101")
def one_branch_is_longer_under_a_condition() -> Any:
    def statement(state: State) -> Literal["statement", "join"]:
        return "statement" if state["text"] else "join"

    builder = drawn(
        (START, "data"), (START, "score"), ("data", "describe"), ("describe", "join"), ("statement", "join")
    )
    builder.add_conditional_edges("score", statement)
    return builder


@case("faulty", "AK101")
def a_critic_loop_meets_a_plain_branch() -> Any:
    def good(state: State) -> Literal["draft", "publish"]:
        return "publish" if len(state["log"]) > 4 else "draft"

    builder = drawn((START, "draft"), (START, "cover"), ("draft", "critic"), ("cover", "publish"))
    builder.add_conditional_edges("critic", good)
    return builder


@case("faulty", "AK101")
def the_start_itself_is_the_short_branch() -> Any:
    return drawn((START, "a"), (START, "b"), ("a", "b"))


@case("mended", "AK101")
def the_branches_meet_at_a_barrier() -> Any:
    builder = one_branch_is_longer()
    return barrier(builder, ["c", "d"], "e")


@case("mended", "AK101")
def alternatives_meet_at_a_barrier() -> Any:
    builder = one_branch_is_longer_under_a_condition()
    return barrier(builder, ["describe", ("score", "statement")], "join")


@case("mended", "AK101")
def the_branches_meet_at_a_list_edge() -> Any:
    return drawn((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), (("c", "d"), "e"))


@case("mended", "AK101")
def the_node_where_the_branches_meet_is_deferred() -> Any:
    return drawn((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "e"), ("d", "e"), defer="e")


@case("alike", "AK101")
def the_branches_are_equally_long() -> Any:
    return drawn((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))


@case("alike", "AK101")
def the_longer_branch_is_an_alternative() -> Any:
    def choose(state: State) -> Literal["long", "end"]:
        return "end"

    builder = drawn(("long", "longer"), ("longer", "end"))
    builder.add_conditional_edges(START, choose)
    return builder


@case("alike", "AK101")
def a_loop_runs_a_side_branch_in_each_round() -> Any:
    def again(state: State) -> Literal["agent", "__end__"]:
        return "__end__"

    builder = drawn((START, "agent"), ("agent", "record"), ("agent", "act"))
    builder.add_conditional_edges("act", again)
    return builder


@case("alike", "AK101")
def a_supervisor_starts_some_workers_of_equal_length() -> Any:
    def pick(state: State) -> list[str]:
        return ["one", "two"] if state["text"] else ["two", "three"]

    def again(state: State) -> Literal["supervisor", "__end__"]:
        return "__end__"

    builder = drawn((START, "supervisor"), ("one", "gather"), ("two", "gather"), ("three", "gather"))
    builder.add_conditional_edges("supervisor", pick)
    builder.add_conditional_edges("gather", again)
    return builder


# ---- AK102 a join over a choice


@case("faulty", "AK102")
def a_join_waits_for_both_of_two_alternatives() -> Any:
    def choose(state: State) -> Literal["a", "b"]:
        return "a"

    builder = drawn((("a", "b"), "c"), ("c", "d"))
    builder.add_conditional_edges(START, choose, ["a", "b"])
    return builder


@case("faulty", "AK102")
def a_join_waits_for_a_node_that_may_be_skipped() -> Any:
    def needed(state: State) -> str:
        return "check" if state["text"] else END

    builder = drawn((START, "work"), (("work", "check"), "merge"))
    builder.add_conditional_edges(START, needed, ["check", END])
    return builder


@case("mended", "AK102")
def alternatives_have_an_edge_each() -> Any:
    def choose(state: State) -> str:
        return "a" if state["text"] else "b"

    builder = drawn(("a", "c"), ("b", "c"), ("c", "d"))
    builder.add_conditional_edges(START, choose, ["a", "b"])
    return builder


@case("alike", "AK102")
def a_router_always_starts_both() -> Any:
    def both(state: State) -> list[str]:
        return ["a", "b"]

    builder = drawn((("a", "b"), "c"))
    builder.add_conditional_edges(START, both, ["a", "b"])
    return builder


@case("alike", "AK102")
def a_join_inside_a_loop_fires_in_each_round() -> Any:
    def again(state: State) -> Literal["split", "__end__"]:
        return "__end__"

    builder = drawn((START, "split"), ("split", "a"), ("split", "b"), (("a", "b"), "join"))
    builder.add_conditional_edges("join", again)
    return builder


# ---- AK103 unreachable, AK104 loops, AK105 dead ends, AK106 deferred


@case("faulty", "AK103")
def a_node_has_no_edge_to_it() -> Any:
    return drawn((START, "a"), orphan=logs("orphan"))


@case("faulty", "AK103")
def a_pair_of_nodes_leads_only_to_each_other() -> Any:
    def go(state: State) -> Literal["island", "__end__"]:
        return "__end__"

    builder = drawn((START, "a"), ("island", "beach"))
    builder.add_conditional_edges("beach", go)
    return builder


@case("mended", "AK103")
def the_node_has_an_edge() -> Any:
    return drawn((START, "a"), ("a", "orphan"))


@case("alike", "AK103")
def a_node_is_only_sent_to() -> Any:
    def dispatch(state: State) -> list[Send]:
        return [Send("work", {"text": each}) for each in state["log"]]

    builder = drawn((START, "split"), work=logs("work"))
    builder.add_conditional_edges("split", dispatch)
    return builder


@case("alike", "AK103")
def a_node_is_only_gone_to() -> Any:
    def choose(state: State) -> Command[Any]:
        target = "left" if state["text"] else "right"
        return Command(goto=target)

    return drawn((START, "choose"), choose=choose, left=logs("left"), right=logs("right"))


@case("alike", "AK103")
def a_node_handles_errors() -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("a", logs("a"), error_handler=logs("handler"))
    builder.add_edge(START, "a")
    return builder


@case("faulty", "AK104")
def a_node_leads_to_itself() -> Any:
    return drawn((START, "a"), ("a", "a"))


@case("faulty", "AK104")
def two_routers_choose_only_each_other() -> Any:
    def to_b(state: State) -> Literal["b"]:
        return "b"

    def to_a(state: State) -> Literal["a"]:
        return "a"

    builder = drawn((START, "a"), b=logs("b"))
    builder.add_conditional_edges("a", to_b)
    builder.add_conditional_edges("b", to_a)
    return builder


@case("faulty", "AK104")
def an_edge_to_the_end_does_not_stop_a_plain_loop() -> Any:
    return drawn((START, "a"), ("a", "b"), ("b", "a"), ("b", END))


@case("mended", "AK104")
def the_loop_has_a_condition() -> Any:
    def again(state: State) -> Literal["a", "__end__"]:
        return "a" if len(state["log"]) < 3 else "__end__"

    builder = drawn((START, "a"))
    builder.add_conditional_edges("a", again)
    return builder


@case("alike", "AK104")
def a_loop_waits_for_a_person_in_each_round() -> Any:
    def person(state: State) -> dict[str, Any]:
        return {"text": interrupt("What next?")}

    return drawn((START, "bot"), ("bot", "person"), ("person", "bot"), person=person)


@case("alike", "AK104")
def a_loop_is_left_by_a_command() -> Any:
    def judge(state: State) -> Command[Literal["write", "__end__"]]:
        return Command(goto="__end__" if len(state["log"]) > 3 else "write")

    return drawn((START, "write"), ("write", "judge"), judge=judge)


@case("faulty", "AK105")
def one_end_is_not_drawn() -> Any:
    def choose(state: State) -> Literal["a", "b"]:
        return "a" if state["text"] else "b"

    builder = drawn(("a", END), b=logs("b"))
    builder.add_conditional_edges(START, choose)
    return builder


@case("mended", "AK105")
def every_end_is_drawn() -> Any:
    builder = one_end_is_not_drawn()
    builder.add_edge("b", END)
    return builder


@case("alike", "AK105")
def a_router_without_a_choice_starts_a_side_branch() -> Any:
    def beside(state: State) -> Literal["note"]:
        return "note"

    builder = drawn((START, "a"), ("a", "b"), ("b", END), note=logs("note"))
    builder.add_conditional_edges("a", beside)
    return builder


@case("alike", "AK105")
def no_end_is_drawn() -> Any:
    return drawn((START, "a"), ("a", "b"), ("a", "c"))


@case("faulty", "AK106")
def a_deferred_node_waits_for_an_unrelated_branch() -> Any:
    return drawn((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "c2"), ("c2", "c3"), defer="d")


@case("mended", "AK106")
def the_node_is_not_deferred() -> Any:
    return drawn((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "c2"), ("c2", "c3"))


@case("alike", "AK106")
def a_deferred_node_waits_for_its_own_long_branch() -> Any:
    return drawn((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "c2"), ("c2", "c3"), ("c3", "d"), defer="d")


# ---- AK201 path maps, AK202 unknown targets, AK203 goto beside an edge


@case("faulty", "AK201")
def a_router_returns_what_its_map_lacks() -> Any:
    def route(state: State) -> str:
        kind = "urgent" if state["text"] else "normal"
        return kind

    builder = drawn(a=logs("a"))
    builder.add_conditional_edges(START, route, {"normal": "a"})
    return builder


def _level(text: str) -> str:
    return "high" if text else "low"


@case("faulty", "AK201")
def a_router_returns_what_another_function_says() -> Any:
    def route(state: State) -> str:
        return _level(state["text"])

    builder = drawn((START, "a"), b=logs("b"))
    builder.add_conditional_edges("a", route, {"high": "b"})
    return builder


class JumpsToModel(AgentMiddleware[Any, Any, Any]):
    @hook_config(can_jump_to=["model"])
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return None


@case("faulty", "AK201")
def the_first_hook_of_a_langchain_agent_jumps_to_the_model() -> Any:
    return langchain_agent(ScriptedModel("x"), middleware=[JumpsToModel()])


@case("mended", "AK201")
def the_map_has_every_value() -> Any:
    def route(state: State) -> str:
        kind = "urgent" if state["text"] else "normal"
        return kind

    builder = drawn(a=logs("a"), b=logs("b"))
    builder.add_conditional_edges(START, route, {"normal": "a", "urgent": "b"})
    return builder


@case("mended", "AK201")
def the_first_hook_of_an_agentkit_agent_jumps_to_the_model() -> Any:
    return create_agent(ScriptedModel("x"), middleware=[JumpsToModel()])


@case("alike", "AK201")
def a_router_returns_true_or_false() -> Any:
    def long(state: State) -> bool:
        return len(state["log"]) > 3

    builder = drawn(a=logs("a"))
    builder.add_conditional_edges(START, long, {True: END, False: "a"})
    return builder


@case("alike", "AK201")
def a_router_returns_what_the_state_says() -> Any:
    def route(state: State) -> str:
        return state["text"]

    builder = drawn(a=logs("a"))
    builder.add_conditional_edges(START, route, ["a", END])
    return builder


@case("faulty", "AK202")
def a_command_goes_to_a_misspelt_node() -> Any:
    def go(state: State) -> Command[Any]:
        return Command(goto="wrok")

    return drawn((START, "go"), ("go", "work"), go=go)


@case("faulty", "AK202")
def a_router_without_a_map_returns_a_misspelt_node() -> Any:
    def route(state: State) -> str:
        return "work" if state["text"] else "wrok"

    builder = drawn(work=logs("work"))
    builder.add_conditional_edges(START, route)
    return builder


@case("mended", "AK202")
def a_command_goes_to_a_node() -> Any:
    def go(state: State) -> Command[Any]:
        return Command(goto="work")

    return drawn((START, "go"), go=go, work=logs("work"))


@case("alike", "AK202")
def a_command_goes_to_a_node_of_the_graph_around() -> Any:
    def hand_over(state: State) -> Command[Any]:
        return Command(goto="human", graph=Command.PARENT)

    return drawn((START, "hand_over"), hand_over=hand_over)


@case("faulty", "AK203")
def a_node_has_an_edge_beside_its_command() -> Any:
    def go(state: State) -> Command[Literal["b"]]:
        return Command(goto="b")

    return drawn((START, "go"), ("go", "a"), go=go, b=logs("b"))


@case("mended", "AK203")
def a_node_has_commands_only() -> Any:
    def go(state: State) -> Command[Literal["a", "b"]]:
        return Command(goto="b" if state["text"] else "a")

    return drawn((START, "go"), go=go, a=logs("a"), b=logs("b"))


@case("alike", "AK203")
def a_command_that_only_updates_stands_beside_an_edge() -> Any:
    def go(state: State) -> Command[Any]:
        return Command(update={"text": "x"})

    return drawn((START, "go"), ("go", "a"), go=go)


# ---- AK301 concurrent writes, AK302 unknown fields, AK303 conflicts, AK304 whole states


def writes(field: str) -> Callable[[Any], dict[str, Any]]:
    def text(state: State) -> dict[str, Any]:
        return {"text": "x"}

    def count(state: State) -> dict[str, Any]:
        return {"count": 1}

    return text if field == "text" else count


@case("faulty", "AK301")
def two_branches_write_one_plain_field() -> Any:
    return drawn((START, "a"), (START, "b"), a=writes("text"), b=writes("text"))


@case("faulty", "AK301")
def every_task_of_a_map_writes_one_plain_field() -> Any:
    def dispatch(state: State) -> list[Send]:
        return [Send("work", {"text": each}) for each in state["log"]]

    builder = drawn(work=writes("text"))
    builder.add_conditional_edges(START, dispatch)
    return builder


class Tenant(TypedDict):
    tenant: str


@case("faulty", "AK301")
def two_subgraphs_share_a_plain_field() -> Any:
    def look(state: Tenant) -> None: ...

    inner = drawn((START, "look"), schema=Tenant, look=look).compile()
    return drawn((START, "a"), (START, "b"), schema=Tenant, a=inner, b=inner)


@case("mended", "AK301")
def two_branches_write_fields_of_their_own() -> Any:
    return drawn((START, "a"), (START, "b"), a=writes("text"), b=writes("count"))


@case("mended", "AK301")
def two_branches_write_a_field_with_a_reducer() -> Any:
    return drawn((START, "a"), (START, "b"))


@case("alike", "AK301")
def two_alternatives_write_one_plain_field() -> Any:
    def choose(state: State) -> Literal["a", "b"]:
        return "a" if state["log"] else "b"

    builder = drawn(a=writes("text"), b=writes("text"))
    builder.add_conditional_edges(START, choose)
    return builder


@case("alike", "AK301")
def two_branches_write_one_plain_field_one_after_the_other() -> Any:
    return drawn((START, "a"), (START, "b"), ("b", "c"), a=writes("text"), c=writes("text"))


@case("alike", "AK301")
def two_agents_run_side_by_side() -> Any:
    class Shared(AgentState[Any]):
        tenant: NotRequired[str]

    one = create_agent(ScriptedModel("one"), state_schema=Shared, name="one")
    two = create_agent(ScriptedModel("two"), state_schema=Shared, name="two")
    return drawn((START, "one"), (START, "two"), schema=Shared, one=one, two=two)


@case("faulty", "AK302")
def a_node_returns_a_field_that_is_not_declared() -> Any:
    def node(state: State) -> dict[str, Any]:
        return {"txt": "x"}

    return drawn((START, "node"), node=node)


@case("mended", "AK302")
def a_node_returns_a_declared_field() -> Any:
    return drawn((START, "node"), node=writes("text"))


class Private(TypedDict):
    draft: str


@case("alike", "AK302")
def a_field_is_declared_by_the_node_that_reads_it() -> Any:
    def write(state: State) -> dict[str, Any]:
        return {"draft": "x"}

    def read(state: Private) -> dict[str, Any]:
        return {"text": state["draft"]}

    return drawn((START, "write"), ("write", "read"), write=write, read=read)


class Text(AgentState[Any]):
    order: NotRequired[str]


class Number(AgentState[Any]):
    order: NotRequired[int]


class ReadsText(AgentMiddleware[Any, Any, Any]):
    state_schema = Text


class ReadsNumber(AgentMiddleware[Any, Any, Any]):
    state_schema = Number


@case("faulty", "AK303")
def two_middlewares_declare_a_field_differently() -> Any:
    return create_agent(ScriptedModel("x"), middleware=[ReadsText(), ReadsNumber()])


class Count(TypedDict):
    count: str


@case("faulty", "AK303")
def a_node_declares_a_field_differently() -> Any:
    def node(state: Count) -> None: ...

    return drawn((START, "node"), node=node)


@case("mended", "AK303")
def two_middlewares_agree() -> Any:
    class AlsoReadsText(ReadsText):
        pass

    return create_agent(ScriptedModel("x"), middleware=[ReadsText(), AlsoReadsText()])


class Loose(TypedDict):
    count: int | None
    log: list[str]


@case("alike", "AK303")
def a_node_declares_a_field_more_loosely() -> Any:
    def node(state: Loose) -> None: ...

    return drawn((START, "node"), node=node)


@case("faulty", "AK304")
def a_node_returns_the_state_with_a_list_that_adds_up() -> Any:
    def node(state: State) -> State:
        return state

    return drawn((START, "node"), node=node)


@case("faulty", "AK304")
def a_node_returns_a_copy_of_the_state_with_a_change() -> Any:
    def node(state: State) -> Any:
        return {**state, "text": "x"}

    return drawn((START, "node"), node=node)


@case("mended", "AK304")
def a_node_returns_only_what_it_changed() -> Any:
    return drawn((START, "node"), node=writes("text"))


class Plain(TypedDict):
    text: str


@case("alike", "AK304")
def a_node_returns_the_state_without_a_reducer() -> Any:
    def node(state: Plain) -> Plain:
        return state

    return drawn((START, "node"), schema=Plain, node=node)


@case("alike", "AK304")
def a_node_returns_messages_which_are_kept_by_id() -> Any:
    def node(state: MessagesState) -> MessagesState:
        return state

    return drawn((START, "node"), schema=MessagesState, node=node)


# ---- AK401 pauses without a saver, AK402 swallowed, AK403 not durable


def asks(state: State) -> dict[str, Any]:
    return {"text": interrupt("Well?")}


@tool
def look(x: int) -> str:
    """Look."""
    return str(x)


@case("faulty", "AK401")
def a_node_pauses_without_a_saver() -> Any:
    return drawn((START, "asks"), asks=asks).compile()


@case("faulty", "AK401")
def an_approval_has_no_saver() -> Any:
    return create_agent(ScriptedModel("x"), [look], middleware=[Approval("look")])


@case("faulty", "AK401")
def a_graph_is_stopped_before_a_node_without_a_saver() -> Any:
    return drawn((START, "a"), ("a", "b")).compile(interrupt_before=["b"])


@case("faulty", "AK401")
def a_langchain_approval_has_no_saver() -> Any:
    stack: list[Any] = [HumanInTheLoopMiddleware({"look": True}), ModelCallLimitMiddleware(run_limit=5)]
    return langchain_agent(ScriptedModel("x"), [look], middleware=stack)


@case("mended", "AK401")
def a_node_pauses_with_a_saver() -> Any:
    return drawn((START, "asks"), asks=asks).compile(checkpointer=InMemorySaver())


@case("mended", "AK401")
def an_approval_has_a_saver() -> Any:
    return create_agent(ScriptedModel("x"), [look], middleware=[Approval("look")], checkpointer=InMemorySaver())


@case("alike", "AK401")
def a_node_of_a_subgraph_pauses_under_its_parents_saver() -> Any:
    inner = drawn((START, "asks"), asks=asks).compile()
    return drawn((START, "inner"), inner=inner).compile(checkpointer=InMemorySaver())


@case("alike", "AK401")
def a_pausing_graph_is_not_compiled_yet() -> Any:
    return drawn((START, "asks"), asks=asks)


@case("faulty", "AK402")
def a_pause_is_taken_for_a_failure() -> Any:
    def node(state: State) -> dict[str, Any]:
        try:
            answer = interrupt("Well?")
        except Exception:
            answer = "yes"
        return {"text": answer}

    return drawn((START, "node"), node=node)


@case("faulty", "AK402")
def a_pause_is_taken_for_one_of_many_failures() -> Any:
    def node(state: State) -> dict[str, Any]:
        for _ in range(3):
            try:
                return {"text": interrupt("Well?")}
            except:  # noqa: E722  the fault that is looked for
                continue
        return {"text": ""}

    return drawn((START, "node"), node=node)


@case("mended", "AK402")
def a_pause_passes_first() -> Any:
    def node(state: State) -> dict[str, Any]:
        try:
            return {"text": interrupt("Well?")}
        except GraphBubbleUp:
            raise
        except Exception:
            return {"text": "yes"}

    return drawn((START, "node"), node=node)


@case("alike", "AK402")
def only_one_kind_of_failure_is_caught() -> Any:
    def node(state: State) -> dict[str, Any]:
        try:
            return {"count": int(interrupt("How many?"))}
        except ValueError:
            return {"count": 0}

    return drawn((START, "node"), node=node)


@case("faulty", "AK403", durable=True)
def a_saver_in_memory_where_threads_must_last() -> Any:
    return drawn((START, "a")).compile(checkpointer=InMemorySaver())


@case("faulty", "AK403", durable=True)
def no_saver_where_threads_must_last() -> Any:
    return drawn((START, "a")).compile()


@case("mended", "AK403", durable=True)
def a_saver_on_a_database() -> Any:
    import sqlite3

    return drawn((START, "a")).compile(checkpointer=SqliteSaver(sqlite3.connect(":memory:")))


@case("alike", "AK403")
def a_saver_in_memory_where_nobody_asked() -> Any:
    return drawn((START, "a")).compile(checkpointer=InMemorySaver())


# ---- AK501 changed in place, AK502 blocking


@case("faulty", "AK501")
def a_counter_is_changed_in_place() -> Any:
    def node(state: Any) -> None:
        state["count"] += 1

    return drawn((START, "node"), node=node)


@case("faulty", "AK501")
def a_list_in_the_state_is_appended_to() -> Any:
    def node(state: State) -> dict[str, Any]:
        state["log"].append("x")
        return {"text": "x"}

    return drawn((START, "node"), node=node)


@case("mended", "AK501")
def a_counter_is_returned() -> Any:
    def node(state: Any) -> dict[str, Any]:
        return {"count": state["count"] + 1}

    return drawn((START, "node"), node=node)


@case("alike", "AK501")
def a_copy_is_changed() -> Any:
    def node(state: State) -> dict[str, Any]:
        found = list(state["log"])
        found.append("x")
        update: dict[str, Any] = {}
        update["text"] = found[-1]
        return update

    return drawn((START, "node"), node=node)


@case("alike", "AK501")
def the_changed_field_is_returned() -> Any:
    def node(state: Any) -> dict[str, Any]:
        state["count"] = state["count"] + 1
        return {"count": state["count"]}

    return drawn((START, "node"), node=node)


@case("faulty", "AK502")
def an_async_node_sleeps() -> Any:
    async def node(state: State) -> None:
        time.sleep(0.01)

    return drawn((START, "node"), node=node)


MODEL = ScriptedModel("x")


@case("faulty", "AK502")
def an_async_node_calls_its_model_synchronously() -> Any:
    async def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [MODEL.invoke(state["messages"])]}

    return drawn((START, "node"), schema=MessagesState, node=node)


@case("mended", "AK502")
def an_async_node_awaits() -> Any:
    async def node(state: MessagesState) -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {"messages": [await MODEL.ainvoke(state["messages"])]}

    return drawn((START, "node"), schema=MessagesState, node=node)


@case("alike", "AK502")
def a_plain_node_sleeps() -> Any:
    def node(state: State) -> None:
        time.sleep(0.01)

    return drawn((START, "node"), node=node)


@case("alike", "AK502")
def an_async_node_sleeps_in_a_thread() -> Any:
    async def node(state: State) -> None:
        await asyncio.to_thread(time.sleep, 0.01)

    return drawn((START, "node"), node=node)


# ---- AK601 tools, AK602 retries, AK603 gates


def act(does: str) -> BaseTool:
    @tool("act", description=f"To {does}.")
    def made() -> str:
        return does

    @tool("look", description="To look.")
    def other() -> str:
        return does

    return made if does == "act" else other


ACT, LOOK, AGAIN = act("act"), act("look"), act("act")


def asking(tools: list[BaseTool]) -> Any:
    model = ScriptedModel("x").bind_tools(tools)

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    return drawn((START, "ask"), ("ask", "tools"), schema=MessagesState, ask=ask, tools=ToolNode(tools))


@case("faulty", "AK601")
def a_model_has_two_tools_of_one_name() -> Any:
    return asking([ACT, LOOK, AGAIN])


@case("faulty", "AK601")
def two_tool_nodes_have_other_tools_of_one_name() -> Any:
    @tool("act")
    def other() -> str:
        """Do something else."""
        return "else"

    return drawn((START, "a"), ("a", "b"), schema=MessagesState, a=ToolNode([ACT]), b=ToolNode([other]))


@case("mended", "AK601")
def tools_have_names_of_their_own() -> Any:
    return asking([ACT, LOOK])


@case("alike", "AK601")
def two_tool_nodes_share_a_tool() -> Any:
    return drawn((START, "a"), ("a", "b"), schema=MessagesState, a=ToolNode([ACT, LOOK]), b=ToolNode([ACT]))


@case("faulty", "AK602")
def a_model_retry_is_outside_of_the_gates() -> Any:
    return create_agent(ScriptedModel("x"), middleware=[ModelRetry(), Gates(StepBudget(5))])


@case("faulty", "AK602")
def a_node_is_retried_that_is_an_agent() -> Any:
    builder: Any = StateGraph(MessagesState)
    builder.add_node("agent", create_agent(ScriptedModel("x"), [look]), retry_policy=RetryPolicy())
    builder.add_edge(START, "agent")
    return builder


@case("mended", "AK602")
def retries_are_inside_of_the_gates() -> Any:
    return create_agent(ScriptedModel("x"), [look], middleware=[Gates(StepBudget(5)), ToolRetry(), ModelRetry()])


@case("alike", "AK602")
def a_retry_is_listed_first_but_placed_inside() -> Any:
    stack = [ToolRetry(), Approval("look")]
    return create_agent(ScriptedModel("x"), [look], middleware=stack, checkpointer=InMemorySaver())


@case("alike", "AK602")
def a_plain_node_is_retried() -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("a", logs("a"), retry_policy=RetryPolicy())
    builder.add_edge(START, "a")
    return builder


@case("faulty", "AK603")
def an_agent_has_switched_its_limits_off() -> Any:
    return create_agent(ScriptedModel("x"), [look], limits=Limits.none())


@case("faulty", "AK603")
def a_langchain_agent_has_no_limit() -> Any:
    return langchain_agent(ScriptedModel("x"), [look])


@case("mended", "AK603")
def an_agent_without_limits_has_gates() -> Any:
    return create_agent(ScriptedModel("x"), [look], limits=Limits.none(), middleware=[Gates(StepBudget(5))])


@case("mended", "AK603")
def a_langchain_agent_has_a_limit() -> Any:
    return langchain_agent(ScriptedModel("x"), [look], middleware=[ModelCallLimitMiddleware(run_limit=5)])


@case("alike", "AK603")
def an_agent_without_tools_has_no_loop() -> Any:
    return langchain_agent(ScriptedModel("x"))
