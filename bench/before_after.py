"""A classic `AgentExecutor` and agentkit on one work list with one faulty model: `make bench-before-after`.

The model, the tools and their faults are simulated and seeded; see `bench/shop.py`. Measured are tokens and simulated
seconds per conversation, conversations that went round for ever, and refunds that were made twice.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from tenacity import wait_none

from agentkit import Limits, create_agent, exit_of, thread
from agentkit.testing import ScriptedModel
from bench.shop import INSTRUCTIONS, Conversation, Faults, ShopTimeout

MOST = 15
"""Model calls in one user turn that count as going round for ever: `AgentExecutor`'s own limit."""
ENDLESS = 0.063
"""Share of conversations that went round for ever in the report that started this project."""

PROFILES: dict[str, tuple[str, Faults]] = {
    "retail": ("rates measured in retail conversations of capable models", Faults(0.010, 0.0001, 0.045, 0.045)),
    "flaky": ("the same with a flaky tool", Faults(0.003, 0.0001, 0.171, 0.0)),
    "small": ("rates measured for an 8B model", Faults(0.051, 0.177, 0.020, 0.55)),
    "all": ("rates over all recorded conversations; `stuck` fitted to the 6.3 %", Faults(0.016, 0.028, 0.074, 0.0)),
}

STACK: dict[str, dict[str, Any]] = {
    "Gates": {},
    "Reuse": {"per": "thread"},
    "ToolRetry": {"wait": wait_none()},
}
"""The standard stack, outermost first, as far as it is there."""

Loop = Callable[[Conversation], str]


@dataclass(frozen=True)
class Outcome:
    """What one loop made of the work list."""

    loop: str
    conversations: int
    tokens: float
    seconds: float
    solved: int
    endless: int
    stopped: int
    """Ended early by a gate, before it counted as endless."""
    twice: int
    executions: float

    def cells(self) -> list[str]:
        """The outcome as text."""
        return [
            self.loop,
            f"{self.tokens:,.0f}",
            f"{self.seconds:.1f}",
            f"{self.executions:.2f}",
            f"{self.solved / self.conversations:.1%}",
            f"{self.endless / self.conversations:.1%}",
            f"{self.stopped / self.conversations:.1%}",
            f"{self.twice / self.conversations:.1%}",
        ]


HEAD = ["loop", "tokens", "seconds", "tool runs", "solved", "endless", "stopped early", "refunded twice"]


def classic(conversation: Conversation) -> str:
    """`AgentExecutor` with a memory of what was said, as its documentation shows; errors of tools go to the model."""
    from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
    from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", INSTRUCTIONS),
            MessagesPlaceholder("chat_history"),
            ("human", "{input}"),
            MessagesPlaceholder("agent_scratchpad"),
        ]
    )
    tools = conversation.tools()
    for each in tools:
        each.handle_tool_error = True
        each.handle_validation_error = True
    model = ScriptedModel(conversation.answer, repeat=True, stream=False)
    executor = AgentExecutor(agent=create_tool_calling_agent(model, tools, prompt), tools=tools, max_iterations=MOST)
    said: list[BaseMessage] = []
    answer = ""
    for ask in conversation.asks():
        conversation.new_turn()
        answer = str(executor.invoke({"input": ask, "chat_history": said})["output"])
        said += [HumanMessage(ask), AIMessage(answer)]
    return answer


def agentkit(conversation: Conversation, names: Sequence[str]) -> str:
    """Run agentkit with a stack of middlewares, and no limits of its own below what counts as endless."""
    model = ScriptedModel(conversation.answer, repeat=True, stream=False)
    limits = Limits(model_calls=MOST, same_call_failures=MOST, failed_turns=MOST)
    agent = create_agent(
        model,
        conversation.tools(TimeoutError if "ToolRetry" in names else ShopTimeout),  # which a retry can see
        system_prompt=INSTRUCTIONS,
        middleware=stack(names),
        checkpointer=InMemorySaver(),
        limits=limits,
    )
    result: dict[str, Any] = {}
    for ask in conversation.asks():
        conversation.new_turn()
        result = agent.invoke({"messages": [HumanMessage(ask)]}, thread("t"))
    ended = exit_of(result)
    return str(result["messages"][-1].text) if ended and ended.reason == "answer" else ""


def available() -> list[str]:
    """The names of the stack's middlewares that this version has."""
    there = import_module("agentkit.middleware")
    return [name for name in STACK if hasattr(there, name)]


def stack(names: Sequence[str]) -> list[AgentMiddleware[Any, Any, Any]]:
    """New instances of these middlewares."""
    there = import_module("agentkit.middleware")
    return [getattr(there, name)(**options) for name, options in STACK.items() if name in names]


def work(name: str, loop: Loop, faults: Faults, conversations: int, seed: int) -> Outcome:
    """Let a loop do the work list."""
    done = [Conversation(seed, number, faults) for number in range(conversations)]
    solved = endless = stopped = 0
    for each in done:
        answer = loop(each)
        well = answer.startswith("Done") and each.effects[each.order] > 0
        stuck = each.longest_turn >= MOST
        solved, endless, stopped = solved + well, endless + stuck, stopped + (not well and not stuck)
    return Outcome(
        loop=name,
        conversations=conversations,
        tokens=sum(each.tokens for each in done) / conversations,
        seconds=sum(each.seconds for each in done) / conversations,
        solved=solved,
        endless=endless,
        stopped=stopped,
        twice=sum(each.effects[each.order] > 1 for each in done),
        executions=sum(sum(each.executions.values()) for each in done) / conversations,
    )


def fitted(faults: Faults, conversations: int, seed: int) -> Faults:
    """The faults with the rate of `stuck` at which the classic loop goes round for ever as often as was reported."""
    low, high = 0.0, 1.0
    for _ in range(8):
        middle = (low + high) / 2
        tried = Faults(faults.repeat, faults.malformed, faults.failing, middle)
        found = work("classic", classic, tried, conversations, seed)
        low, high = (middle, high) if found.endless / conversations < ENDLESS else (low, middle)
    return Faults(faults.repeat, faults.malformed, faults.failing, round(high, 3))


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes for a terminal."""
    cells = [HEAD, *(outcome.cells() for outcome in outcomes)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEAD))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make bench-before-after", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--conversations", type=int, default=200, help="how many, 200 by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", choices=PROFILES, action="append", help="which faults; default: all profiles")
    given = parser.parse_args(arguments)
    logging.getLogger("agentkit").setLevel(logging.ERROR)  # gates trip all the time here
    try:
        import_module("langchain_classic")
    except ModuleNotFoundError:
        print("bench-before-after: langchain-classic is not installed (extra: bench)", file=sys.stderr)
        return 2
    names = available()
    loops: list[tuple[str, Loop]] = [
        ("AgentExecutor", classic),
        ("agentkit, bare", partial(agentkit, names=())),
        *(
            (f"agentkit, {' + '.join(names[: n + 1])}", partial(agentkit, names=names[: n + 1]))
            for n in range(len(names))
        ),
    ]
    for profile in given.profile or PROFILES:
        title, faults = PROFILES[profile]
        if profile == "all":
            faults = fitted(faults, given.conversations, given.seed)
        print(f"\n{title}: {faults}, {given.conversations} conversations of 2 turns, seed {given.seed}\n")
        print(table([work(name, loop, faults, given.conversations, given.seed) for name, loop in loops]))
    print(
        f"\nPer conversation. Tokens are characters over four; seconds are simulated. Endless: {MOST} model calls in "
        "one turn.\nStopped early: ended before that without the task done."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
