"""Rules about agents: tools of one name, retries around gates, loops that nothing brakes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from langchain_core.tools import BaseTool

from agentkit.check.rule import Given, Hit, rule
from agentkit.check.stack import bound_tools, is_agent, middleware_of, tools_of
from agentkit.limits import Limits
from agentkit.ordering import arrange
from agentkit.run import AgentGraph

__all__ = ["duplicate_tool", "loop_without_gate", "retry_outside_gate"]

# By name: the catalogue lies above this package, and a class derived from one of these is meant as well.
_RETRIES: Final = frozenset({"ToolRetry", "ModelRetry", "ToolRetryMiddleware", "ModelRetryMiddleware"})
_GATES: Final = frozenset({"Gates", "Approval", "ModelCallLimitMiddleware", "ToolCallLimitMiddleware"})
_BRAKES: Final = frozenset({"Gates", "ModelCallLimitMiddleware"})


@rule("AK601", "duplicate-tool", "error")
def duplicate_tool(given: Given) -> Iterator[Hit]:
    """Two tools have one name, so one runs in place of the other.

    ## Why it bites

    Tools are kept by name. Of two with the same name the later silently replaces the earlier: the model asks for the
    harmless one, and the other runs. Seen are the tools that a node's function has bound to its model, and tools that
    stand under one name in several tool nodes (a warning: the graph may mean that). `agentkit.create_agent` refuses
    duplicates when it builds the agent.

    ## Mend it

    Rename one of them: `@tool("cancel_order")`.

    ## Fails

    ```python
    from langchain_core.tools import tool
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode
    from agentkit.check import check
    from agentkit.testing import ScriptedModel

    @tool("act")
    def show() -> str:
        '''Show the order.'''
        return "shown"

    @tool("act")
    def cancel() -> str:
        '''Cancel the order.'''
        return "cancelled"

    model = ScriptedModel("Done.").bind_tools([show, cancel])

    def ask(state: MessagesState) -> MessagesState:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_node("tools", ToolNode([show, cancel]))
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "tools")

    print(check(builder).codes)  # -> ['AK601']
    ```

    ## Passes

    ```python
    from langchain_core.tools import tool
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode
    from agentkit.check import check
    from agentkit.testing import ScriptedModel

    @tool("show_order")
    def show() -> str:
        '''Show the order.'''
        return "shown"

    @tool("cancel_order")
    def cancel() -> str:
        '''Cancel the order.'''
        return "cancelled"

    model = ScriptedModel("Done.").bind_tools([show, cancel])

    def ask(state: MessagesState) -> MessagesState:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_node("tools", ToolNode([show, cancel]))
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "tools")

    print(check(builder).codes)  # -> []
    ```
    """
    known: dict[str, tuple[str, BaseTool]] = {}
    for node in given.shape.nodes.values():
        for model, names in bound_tools(node):
            for name in sorted({name for name in names if names.count(name) > 1}):
                yield Hit(
                    node=node.name,
                    message=f"{model!r} has {names.count(name)} tools named {name!r}, and only the last of them runs",
                    remedy="rename one of them",
                )
        for name, tool in tools_of(node).items():
            first, other = known.setdefault(name, (node.name, tool))
            if other is not tool and _function(other) is not _function(tool):
                yield Hit(
                    node=node.name,
                    message=f"its tool {name!r} is another one than {first!r} has under this name",
                    remedy="rename one of them",
                    severity="warning",
                )


def _function(tool: BaseTool) -> Any:
    return getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)


@rule("AK602", "retry-outside-gate", "warning")
def retry_outside_gate(given: Given) -> Iterator[Hit]:
    """A retry sits outside of a gate, so every attempt passes the gate again.

    ## Why it bites

    A gate that sees attempts instead of calls counts each of them, may ask a person once per attempt, and may be undone
    by a retry of its own refusal. The same with a `retry_policy` on a node that is a whole agent: its limits start anew
    with each attempt, and what its tools did is done again.

    ## Mend it

    Put the retry after (inside of) the gate in `middleware`; `agentkit.middleware.standard()` has the right order.
    Retry inside an agent, not around it.

    ## Fails

    ```python
    from agentkit import create_agent
    from agentkit.check import check
    from agentkit.middleware import Gates, ModelRetry, StepBudget
    from agentkit.testing import ScriptedModel

    agent = create_agent(ScriptedModel("Done."), middleware=[ModelRetry(), Gates(StepBudget(5))])
    print(check(agent).codes)  # -> ['AK602']
    ```

    ## Passes

    ```python
    from agentkit import create_agent
    from agentkit.check import check
    from agentkit.middleware import Gates, ModelRetry, StepBudget
    from agentkit.testing import ScriptedModel

    agent = create_agent(ScriptedModel("Done."), middleware=[Gates(StepBudget(5)), ModelRetry()])
    print(check(agent).codes)  # -> []
    ```
    """
    table = given.shape.compiled.agent.hooks if isinstance(given.shape.compiled, AgentGraph) else None
    for kind in ("model", "tool") if table is not None else ():
        assert table is not None
        phase: Any = f"wrap_{kind}_call"
        retries: list[str] = []
        for hook in arrange(table.of(phase), kind):
            if _is_one_of(hook.middleware, _RETRIES):
                retries.append(hook.name)
            elif retries and _is_one_of(hook.middleware, _GATES):
                yield Hit(
                    message=f"{' and '.join(retries)} retries {kind} calls outside of {hook.name}, which sees every "
                    "attempt",
                    remedy=f"put {hook.name} before {retries[0]} in `middleware`",
                )
    for node in given.shape.nodes.values():
        if node.retries and isinstance(node.graph, AgentGraph):
            yield Hit(
                node=node.name,
                message="has a retry policy around a whole agent, whose limits start anew with each attempt",
                remedy="retry inside the agent (ToolRetry, ModelRetry), and leave the node's retry_policy out",
            )


def _is_one_of(middleware: object, names: frozenset[str]) -> bool:
    return bool(names & {kind.__name__ for kind in type(middleware).__mro__})


@rule("AK603", "loop-without-gate", "warning")
def loop_without_gate(given: Given) -> Iterator[Hit]:
    """An agent's loop ends only when the model wants it to: no gate and no limit brakes it.

    ## Why it bites

    A model that asks for the same failing call again and again is an everyday event. LangChain's agents may take 9,999
    steps, so what ends such a run is the bill. `agentkit.create_agent` has default limits; this is about agents that
    switch them off (`Limits.none()`) and agents of LangChain's factory.

    ## Mend it

    Leave the default limits, or put `Gates` into the stack (`ModelCallLimitMiddleware` in LangChain).

    ## Fails

    ```python
    from agentkit import Limits, create_agent
    from agentkit.check import check
    from agentkit.testing import ScriptedModel

    def look() -> str:
        '''Look.'''
        return "seen"

    agent = create_agent(ScriptedModel("Done."), [look], limits=Limits.none())
    print(check(agent).codes)  # -> ['AK603']
    ```

    ## Passes

    ```python
    from agentkit import create_agent
    from agentkit.check import check
    from agentkit.testing import ScriptedModel

    def look() -> str:
        '''Look.'''
        return "seen"

    agent = create_agent(ScriptedModel("Done."), [look])
    print(check(agent).codes)  # -> []
    ```
    """
    compiled = given.shape.compiled
    if compiled is None or not is_agent(given.shape) or not any(map(tools_of, given.shape.nodes.values())):
        return
    limited = isinstance(compiled, AgentGraph) and compiled.agent.limits != Limits.none()
    braked = any(_is_one_of(one, _BRAKES) for _, one in middleware_of(given.shape))
    if not limited and not braked:
        allowed = (compiled.config or {}).get("recursion_limit", 0)
        yield Hit(
            message=f"nothing ends the loop but the model and a recursion limit of {allowed:,} steps",
            remedy="agentkit's default limits, or Gates in `middleware`",
        )
