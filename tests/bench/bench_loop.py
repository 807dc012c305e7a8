"""What agentkit itself costs, in CPU milliseconds: `make bench`, or `make bench ARGS="--rounds 20"`.

The model is scripted and answers at once, so what is measured is the framework: building an agent, and one run (a
model call, a tool call, the closing model call) with growing stacks of middleware; with a step per hook, with a step
per turn, and with LangChain's own factory, round by round. The best round of each counts, since other programs only
ever add time.
"""

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import AgentMiddleware

from agentkit import create_agent
from agentkit.testing import Request, ScriptedModel, ai, tool_call

RUNS = 20  # per round


class Hook(AgentMiddleware[Any, Any, Any]):
    """Two node hooks that do nothing; a class of its own per name, which LangChain's factory wants."""

    def before_model(self, state: Any, runtime: Any) -> None:
        return None

    def after_model(self, state: Any, runtime: Any) -> None:
        return None


class Wrap(AgentMiddleware[Any, Any, Any]):
    """A wrap that does nothing."""

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def answer(request: Request) -> Any:
    return "Three." if request.turn else ai("", tool_call("add", {"a": 1, "b": 2}))


def stack(kind: type[AgentMiddleware[Any, Any, Any]], size: int) -> list[AgentMiddleware[Any, Any, Any]]:
    return [type(f"{kind.__name__}{number}", (kind,), {})() for number in range(size)]


def cpu(work: Callable[[], object]) -> float:
    """CPU milliseconds of the whole process for one piece of work, averaged over `RUNS`."""
    gc.collect()
    start = time.process_time()
    for _ in range(RUNS):
        work()
    return (time.process_time() - start) / RUNS * 1000


def candidates(middleware: Sequence[AgentMiddleware[Any, Any, Any]]) -> dict[str, Callable[[], Any]]:
    """How each contender builds an agent."""

    def model() -> ScriptedModel:
        return ScriptedModel(answer, repeat=True)

    return {
        "per hook": lambda: create_agent(model(), [add], middleware=middleware),
        "per turn": lambda: create_agent(model(), [add], middleware=middleware, granularity="turn"),
        "langchain": lambda: langchain_create_agent(model(), [add], middleware=middleware),
    }


def best(rounds: int, work: dict[str, Callable[[], object]]) -> dict[str, float]:
    times = [{name: cpu(each) for name, each in work.items()} for _ in range(rounds)]
    return {name: min(row[name] for row in times) for name in work}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds per line; the best counts (default: 5)")
    rounds = parser.parse_args().rounds
    lines = [("no middleware", stack(Hook, 0)), ("3 with hooks", stack(Hook, 3)), ("10 with hooks", stack(Hook, 10))]
    lines.append(("5 with wraps", stack(Wrap, 5)))

    print(f"{'CPU ms':<24}{'per hook':>11}{'per turn':>11}{'langchain':>11}")
    for label, middleware in lines:
        builders = candidates(middleware)
        runs = {name: partial(build().invoke, {"messages": "1 + 2?"}) for name, build in builders.items()}
        for what, work in (("build", builders), ("run", runs)):
            found = best(rounds, dict(work))
            print(f"{what}, {label:<{22 - len(what)}}" + "".join(f"{found[name]:>11.2f}" for name in found))


if __name__ == "__main__":
    main()
