"""The other frameworks; run by the Python of their own environment, which has neither agentkit nor LangChain.

`python -P peer.py LIBRARY` reads a task as one line of JSON and answers with one, the CPU milliseconds and those by the
clock that it took, until its input ends. `python -P peer.py LIBRARY TASK` does `package`, `factory` or `run` and
prints the bytes of memory that the process then holds. The scripted models implement what each library offers for it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

PAUSE = 0.02
PACKAGES = {"pydantic-ai": "pydantic_ai", "openai-agents": "agents"}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def wait(a: int) -> int:
    """Wait 20 milliseconds."""
    time.sleep(PAUSE)
    return a


async def await_(a: int) -> int:
    """Wait 20 milliseconds."""
    await asyncio.sleep(PAUSE)
    return a


def asked(task: dict[str, Any], turn: int) -> list[tuple[str, str, dict[str, int]]]:
    """Id, name and arguments of the calls of a turn."""
    name, given = ("wait", {"a": 1}) if task.get("slow") else ("add", {"a": 1, "b": 2})
    return [(f"c{turn}-{number}", name, given) for number in range(task.get("calls", 1))]


def tool_of(task: dict[str, Any]) -> Callable[..., Any]:
    """The function behind the tool."""
    if not task.get("slow"):
        return add
    return await_ if task.get("asynchronous") else wait


class PydanticAI:
    """pydantic-ai with its `FunctionModel`."""

    def __init__(self, task: dict[str, Any]) -> None:
        library: Any = import_module("pydantic_ai")
        messages: Any = import_module("pydantic_ai.messages")
        function: Any = import_module("pydantic_ai.models.function")
        # Or it would be estimated from the whole history, which no real model does.
        used = import_module("pydantic_ai.usage").RequestUsage(input_tokens=1, output_tokens=1)

        async def answer(history: Any, info: Any) -> Any:
            turn = sum(isinstance(message, messages.ModelResponse) for message in history)
            if turn >= task["turns"] - 1:
                return messages.ModelResponse(parts=[messages.TextPart("Three.")], usage=used)
            calls = [messages.ToolCallPart(name, args, id) for id, name, args in asked(task, turn)]
            return messages.ModelResponse(parts=calls, usage=used)

        tool = library.Tool(tool_of(task), name=asked(task, 0)[0][1])
        self._agent: Any = library.Agent(function.FunctionModel(answer), tools=[tool])

    def invoke(self) -> Any:
        """Run to the end."""
        return self._agent.run_sync("1 + 2?").output

    async def ainvoke(self) -> Any:
        """Run to the end."""
        return (await self._agent.run("1 + 2?")).output


class Scripted:
    """What the model of openai-agents answers; a mixin of its `Model`."""

    def __init__(self, task: dict[str, Any]) -> None:
        self._task = task
        self._library: Any = import_module("agents")
        self._types: Any = import_module("openai.types.responses")

    async def get_response(self, system_instructions: Any, input: Any, *more: Any, **named: Any) -> Any:
        """Calls in all turns but the last."""
        items = input if isinstance(input, list) else []
        turn = sum(item.get("type") == "function_call" for item in items) // self._task.get("calls", 1)
        output = [self._said()] if turn >= self._task["turns"] - 1 else self._calls(turn)
        return self._library.ModelResponse(output=output, usage=self._library.Usage(), response_id=None)

    def stream_response(self, *given: Any, **named: Any) -> Any:
        """Nobody streams."""
        raise NotImplementedError

    def _said(self) -> Any:
        text = self._types.ResponseOutputText(text="Three.", type="output_text", annotations=[])
        return self._types.ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )

    def _calls(self, turn: int) -> list[Any]:
        call = self._types.ResponseFunctionToolCall
        return [
            call(arguments=json.dumps(args), call_id=id, name=name, type="function_call")
            for id, name, args in asked(self._task, turn)
        ]


class OpenAIAgents:
    """openai-agents with a `Model` of our own."""

    def __init__(self, task: dict[str, Any]) -> None:
        library: Any = import_module("agents")
        library.set_tracing_disabled(True)
        model = type("Model", (Scripted, import_module("agents.models.interface").Model), {})(task)
        tool = library.function_tool(tool_of(task), name_override=asked(task, 0)[0][1])
        self._runner: Any = library.Runner
        self._agent: Any = library.Agent("bench", model=model, tools=[tool])
        self._most = task["turns"] + 1

    def invoke(self) -> Any:
        """Run to the end."""
        return self._runner.run_sync(self._agent, "1 + 2?", max_turns=self._most).final_output

    async def ainvoke(self) -> Any:
        """Run to the end."""
        return (await self._runner.run(self._agent, "1 + 2?", max_turns=self._most)).final_output


LIBRARIES: dict[str, Any] = {"pydantic-ai": PydanticAI, "openai-agents": OpenAIAgents}


def work_of(agent: Any, task: dict[str, Any]) -> Callable[[], Any]:
    """What a task asks for."""
    at_once = task.get("at_once") or (1 if task.get("asynchronous") else 0)
    if not at_once:
        work: Callable[[], Any] = agent.invoke
        return work

    async def crowd() -> None:
        await asyncio.gather(*(agent.ainvoke() for _ in range(at_once)))

    return lambda: asyncio.run(crowd())


def serve(library: str) -> None:
    """Do one task after the other; an agent is made once for each kind of task."""
    made: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        task = json.loads(line)
        work = made.get(line) or made.setdefault(line, work_of(LIBRARIES[library](task), task))
        gc.collect()
        gc.disable()
        begun, working = time.perf_counter(), time.process_time()
        work()
        spent = {"cpu": (time.process_time() - working) * 1000, "wall": (time.perf_counter() - begun) * 1000}
        gc.enable()
        print(json.dumps(spent), flush=True)


def resident() -> int:
    """Bytes of memory that this process holds now; where the system does not tell, held at most."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def once(library: str, task: str) -> None:
    """Do one task in a process that has done nothing yet."""
    package = import_module(PACKAGES[library])
    if task == "factory":
        package.Agent  # noqa: B018  (the import may be lazy)
    if task == "run":
        LIBRARIES[library]({"turns": 2}).invoke()
    print(resident())


if __name__ == "__main__":
    once(*sys.argv[1:]) if len(sys.argv) > 2 else serve(sys.argv[1])
