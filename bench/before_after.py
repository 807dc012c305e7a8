"""A classic `AgentExecutor` and agentkit on one work list with one faulty model: `make bench-before-after`.

The model, the tools and their faults are simulated and seeded; see `bench/shop.py`. Measured are tokens and simulated
seconds per conversation, conversations that went round for ever, and refunds that were made twice.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from importlib import import_module
from itertools import accumulate
from typing import Any, Protocol

from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from tenacity import wait_none

from agentkit import Limits, create_agent, exit_of, thread
from agentkit.ledger import Doubt, Settlement
from agentkit.testing import pairing_problems
from bench.shop import (
    INSTRUCTIONS,
    Conversation,
    Faults,
    ShopTimeout,
    receipt,
    refunds_made,
    shop_model,
    shop_tools,
)

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


def _named(request: ToolCallRequest) -> str | None:
    """A refund is one effect however often the model asks for it, named by its order."""
    return request.tool_call["args"].get("order_id")


def _settled(doubt: Doubt) -> Settlement:
    """What became of a refund that timed out: the shop's books know."""
    args = doubt.effect.args
    if refunds_made(args["order_id"]):
        return Settlement("done", receipt(args["order_id"], args["amount"], 0))
    return Settlement("not_done")


STACK: dict[str, dict[str, Any]] = {
    "Gates": {},
    "Reuse": {"per": "thread"},
    "ToolRetry": {"wait": wait_none()},
    "EffectLedger": {"store": "sqlite://", "key": _named, "on_doubt": _settled},
}
"""The standard stack, outermost first, and a ledger."""


@dataclass(frozen=True)
class Answer:
    """How a conversation ended."""

    text: str
    dangling: int = 0
    """Tool calls in its history that nothing answers."""


class Loop(Protocol):
    """Something that holds conversations."""

    @property
    def name(self) -> str:
        """What the table calls it."""

    def __call__(self, conversation: Conversation) -> Answer:
        """Hold one; it is present."""


class Classic:
    """`AgentExecutor` with a memory of what was said, as its documentation shows; errors of tools go to the model."""

    name = "AgentExecutor"

    @cached_property
    def _executor(self) -> Any:
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
        tools = shop_tools()
        for each in tools:
            each.handle_tool_error = True
            each.handle_validation_error = True
        self._model = shop_model()
        agent = create_tool_calling_agent(self._model, tools, prompt)
        return AgentExecutor(agent=agent, tools=tools, max_iterations=MOST)

    def __call__(self, conversation: Conversation) -> Answer:
        """Hold a conversation."""
        said: list[BaseMessage] = []
        answer = ""
        for ask in conversation.asks():
            conversation.new_turn()
            answer = str(self._executor.invoke({"input": ask, "chat_history": said})["output"])
            said += [HumanMessage(ask), AIMessage(answer)]
        self._model.requests.clear()
        return Answer(answer)


class Agentkit:
    """An agentkit agent with a stack of middlewares, and no limits of its own below what counts as endless."""

    def __init__(self, *names: str) -> None:
        """Name the middlewares, outermost first."""
        self._names = names
        self.name = f"agentkit, {' + '.join(names) or 'bare'}"

    @cached_property
    def _agent(self) -> Any:
        self._model, self._saver = shop_model(), InMemorySaver()
        return create_agent(
            self._model,
            shop_tools(TimeoutError if "ToolRetry" in self._names else ShopTimeout),  # which a retry can see
            system_prompt=INSTRUCTIONS,
            middleware=stack(self._names),
            checkpointer=self._saver,
            limits=Limits(model_calls=MOST, same_call_failures=MOST, failed_turns=MOST),
        )

    def __call__(self, conversation: Conversation) -> Answer:
        """Hold a conversation."""
        agent, name, result = self._agent, f"t{conversation.number}", {}
        for ask in conversation.asks():
            conversation.new_turn()
            result = agent.invoke({"messages": [HumanMessage(ask)]}, thread(name))
        self._model.requests.clear()
        self._saver.delete_thread(name)
        ended = exit_of(result)
        text = str(result["messages"][-1].text) if ended and ended.reason == "answer" else ""
        return Answer(text, len(pairing_problems(result["messages"])))


def available() -> list[str]:
    """The names of the stack's middlewares that this version has."""
    there = import_module("agentkit.middleware")
    return [name for name in STACK if hasattr(there, name)]


def stack(names: Sequence[str]) -> list[AgentMiddleware[Any, Any, Any]]:
    """New instances of these middlewares."""
    there = import_module("agentkit.middleware")
    return [getattr(there, name)(**options) for name, options in STACK.items() if name in names]


@dataclass(frozen=True)
class Outcome:
    """What one loop made of a work list, in sums over its conversations."""

    loop: str
    conversations: int
    tokens: int
    seconds: float
    executions: int
    solved: int
    endless: int
    stopped: int
    """Ended early by a gate, before it counted as endless."""
    twice: int
    dangling: int

    def __add__(self, other: Outcome) -> Outcome:
        """The outcome of both work lists."""
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "loop"}
        return replace(self, **sums)

    def cells(self) -> list[str]:
        """The outcome as text."""
        n = self.conversations
        return [
            self.loop,
            f"{self.tokens / n:,.0f}",
            f"{self.seconds / n:.1f}",
            f"{self.executions / n:.2f}",
            *(f"{count / n:.2%}" for count in (self.solved, self.stopped)),
            *(f"{count:,}" for count in (self.endless, self.twice, self.dangling)),
        ]


HEAD = ["loop", "tokens", "seconds", "tool runs", "solved", "stopped early", "endless", "refunded twice", "open calls"]


def work(loop: Loop, faults: Faults, numbers: Iterable[int], seed: int) -> Outcome:
    """Let a loop hold the conversations of these numbers."""
    done = [Conversation(seed, number, faults) for number in numbers]
    solved = endless = stopped = dangling = 0
    for each in done:
        with each.present():
            answer = loop(each)
        well = answer.text.startswith("Done") and each.effects[each.order] > 0
        stuck = each.longest_turn >= MOST
        solved, endless, stopped = solved + well, endless + stuck, stopped + (not well and not stuck)
        dangling += answer.dangling
    return Outcome(
        loop=loop.name,
        conversations=len(done),
        tokens=sum(each.tokens for each in done),
        seconds=sum(each.seconds for each in done),
        executions=sum(sum(each.executions.values()) for each in done),
        solved=solved,
        endless=endless,
        stopped=stopped,
        twice=sum(each.effects[each.order] > 1 for each in done),
        dangling=dangling,
    )


@dataclass(frozen=True)
class Bench:
    """The work list and who does it."""

    pool: ProcessPoolExecutor
    conversations: int
    seed: int
    chunk: int = 100
    """Conversations that a process takes at a time."""

    def outcomes(self, loops: Sequence[Loop], faults: Faults) -> Iterator[Outcome]:
        """Each loop's outcome, as soon as it is there; progress goes to the terminal."""
        for loop in loops:
            starts = range(0, self.conversations, self.chunk)
            chunks = [range(start, min(start + self.chunk, self.conversations)) for start in starts]
            parts = self.pool.map(partial(work, loop, faults, seed=self.seed), chunks)
            total = None
            for total in accumulate(parts):
                _progress(f"{loop.name}: {total.conversations:,} of {self.conversations:,} conversations")
            assert total is not None
            yield total

    def fitted(self, faults: Faults) -> Faults:
        """The faults with the rate of `stuck` at which the classic loop goes round as often as was reported."""
        low, high = 0.0, 1.0
        for _ in range(9):
            middle = (low + high) / 2
            tried = replace(faults, stuck=middle)
            [found] = self.outcomes([Classic()], tried)
            low, high = (middle, high) if found.endless / self.conversations < ENDLESS else (low, middle)
        return replace(faults, stuck=round(high, 3))


def _quiet() -> None:
    logging.getLogger("agentkit").setLevel(logging.ERROR)  # gates trip all the time here


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def table(outcomes: Iterable[Outcome], markdown: bool = False) -> str:
    """The outcomes for a terminal, or for a page."""
    cells = [HEAD, *(outcome.cells() for outcome in outcomes)]
    _progress("")
    if markdown:
        lines = [f"| {' | '.join(line)} |" for line in cells]
        return "\n".join([lines[0], "|---" * len(HEAD) + "|", *lines[1:]])
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEAD))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make bench-before-after", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--conversations", type=int, default=200, help="how many, 200 by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", choices=PROFILES, action="append", help="which faults; default: all profiles")
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes, one per core by default")
    given = parser.parse_args(arguments)
    try:
        import_module("langchain_classic")
    except ModuleNotFoundError:
        print("bench-before-after: langchain-classic is not installed (extra: bench)", file=sys.stderr)
        return 2
    names = available()
    loops: list[Loop] = [Classic(), *(Agentkit(*names[:n]) for n in range(len(names) + 1))]
    with ProcessPoolExecutor(given.jobs, initializer=_quiet) as pool:
        bench = Bench(pool, given.conversations, given.seed)
        for profile in given.profile or PROFILES:
            title, faults = PROFILES[profile]
            if profile == "all":
                fit = replace(bench, conversations=min(given.conversations, 1000))
                faults = fit.fitted(faults)
            print(f"\n{title}: {faults}, {given.conversations:,} conversations of 2 turns, seed {given.seed}\n")
            print(table(bench.outcomes(loops, faults), given.markdown), flush=True)
    print(
        "\nTokens, simulated seconds and tool runs per conversation; tokens are characters over four. Stopped early:\n"
        f"ended without the task done. The last three are counts; endless are {MOST} model calls in one turn."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
