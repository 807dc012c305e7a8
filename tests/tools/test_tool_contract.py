"""The tool contract: what is declared, what is refused, and what the tools step makes of it."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import tool as plain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from agentkit import AgentState, create_agent, thread
from agentkit.errors import InvalidContract, UnknownStateField
from agentkit.middleware import ToolRetry
from agentkit.testing import ENTRY_POINTS, EntryPoint, ScriptedModel, ai, run, tool_call
from agentkit.tools import Contract, IdempotencyKey, contract_of, tool, with_contract

GRANULARITIES = ("hook", "turn")


@pytest.fixture(params=ENTRY_POINTS)
def entry(request: pytest.FixtureRequest) -> EntryPoint:
    return request.param  # type: ignore[no-any-return]


def results(ended: Any) -> list[ToolMessage]:
    return [m for m in ended.messages if isinstance(m, ToolMessage)]


def calls(name: str, *args: dict[str, Any], first: str = "c") -> Any:
    return ai("", *(tool_call(name, one, f"{first}{n}") for n, one in enumerate(args)))


# ---- the declaration


def test_the_decorator_is_langchains_with_a_contract() -> None:
    @tool("look_up", effect="read", timeout=2, risk="low", return_direct=True)
    def look(order: str) -> str:
        """Look an order up."""
        return order

    @tool
    def bare(order: str) -> str:
        """Nothing declared."""
        return order

    assert (look.name, look.description, look.return_direct) == ("look_up", "Look an order up.", True)
    assert contract_of(look) == Contract(effect="read", timeout=2, risk="low")
    assert look.invoke({"order": "7"}) == "7"
    assert contract_of(bare) == Contract() and bare.metadata is None


def test_a_tool_without_contract_promises_nothing() -> None:
    @plain_tool
    def act(x: int) -> int:
        """Act."""
        return x

    for unknown in (act, None, object(), {"type": "web_search"}):
        assert contract_of(unknown) == Contract() and not contract_of(unknown).repeatable


def test_any_tool_can_be_given_a_contract_and_stays_as_it_was() -> None:
    act = StructuredTool.from_function(lambda x: x, name="act", description="Act.", metadata={"team": "a"})
    made = with_contract(act, effect="write", idempotent=True)
    more = with_contract(made, timeout=3)
    assert contract_of(more) == Contract(effect="write", idempotent=True, timeout=3) and more.metadata is not None
    assert more.metadata["team"] == "a" and act.metadata == {"team": "a"}
    assert contract_of(more).repeatable


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("effect", "delete"),
        ("timeout", 0),
        ("timeout", -1),
        ("timeout", True),
        ("max_concurrency", 0),
        ("max_concurrency", 1.5),
        ("idempotent", "yes"),
        ("sequential", 1),
        ("writes", ["order_id"]),
        ("writes", {"order_id": 1}),
        ("risk", 3),
    ],
)
def test_values_that_cannot_be_meant_are_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidContract, match=f"{field}=") as caught:
        tool("act", description="Act.", **{field: value})(lambda x: x)
    assert caught.value.field == field


def test_a_contract_that_something_else_wrote_is_refused() -> None:
    for record in ("read", {"efect": "read"}):
        act = StructuredTool.from_function(lambda x: x, name="act", description="Act.", metadata={"agentkit": record})
        with pytest.raises(InvalidContract):
            create_agent(ScriptedModel("x"), [act])


# ---- arguments


class Address(BaseModel):
    city: str


@pytest.mark.parametrize("call", ["invoke", "ainvoke"])
def test_bad_arguments_are_told_by_field_with_what_was_sent_and_what_is_allowed(call: EntryPoint) -> None:
    runs = []

    @tool
    def ship(order: str, how: Literal["air", "sea"], to: Address, runtime: ToolRuntime, boxes: int = 1) -> str:
        """Ship an order."""
        runs.append(order)
        return "shipped"

    bad = {"how": "rail", "to": {"town": "Rome"}, "boxes": "many"}
    model = ScriptedModel(calls("ship", bad), "sorry")
    [told] = results(run(create_agent(model, [ship]), "go", entry=call))
    assert runs == [] and told.status == "error"
    lines = told.text.splitlines()
    assert lines[0] == "The call of `ship` was not executed: its arguments were refused with error:"
    assert "- order: Field required" in lines
    assert "- how: Input should be 'air' or 'sea' (you sent 'rail')" in lines
    assert "- to.city: Field required" in lines
    assert any(line.startswith("- boxes: Input should be a valid integer") and "'many'" in line for line in lines)
    assert "order (string), how ('air' | 'sea')" in lines[-1] and "boxes (integer, optional)" in lines[-1]
    assert "runtime" not in told.text and len(lines) == 6


def test_long_values_are_not_repeated_whole() -> None:
    @tool
    def count(n: int) -> str:
        """Count."""
        return ""

    model = ScriptedModel(calls("count", {"n": "x" * 10_000}), "sorry")
    [told] = results(run(create_agent(model, [count]), "go"))
    assert len(told.text) < 800


def test_a_validation_error_inside_a_tool_is_not_blamed_on_the_arguments() -> None:
    @tool
    def parse(text: str) -> str:
        """Parse."""
        return Address.model_validate({}).city

    [told] = results(run(create_agent(ScriptedModel(calls("parse", {"text": "x"}), "sorry"), [parse]), "go"))
    assert "was not executed" not in told.text


# ---- idempotency key


class Payments:
    """A tool that remembers the keys it was called with."""

    def __init__(self, *steps: Exception | None) -> None:
        self.keys: list[str] = []
        steps_left = list(steps)

        @tool(effect="write", idempotent=True)
        def pay(amount: int, key: Annotated[str, IdempotencyKey]) -> str:
            """Pay."""
            self.keys.append(key)
            step = steps_left.pop(0) if steps_left else None
            if step is not None:
                raise step
            return f"paid {amount}"

        self.tool = pay


def test_the_key_is_hidden_from_the_model_which_cannot_set_it(entry: EntryPoint) -> None:
    pay = Payments()
    assert set(pay.tool.args) == {"amount"}
    forged = calls("pay", {"amount": 1, "key": "mine"})
    ended = run(create_agent(ScriptedModel(forged, "done"), [pay.tool]), "go", entry=entry)
    assert results(ended)[0].text == "paid 1" and pay.keys != ["mine"] and len(pay.keys) == 1


def test_two_calls_have_two_keys_and_attempts_of_one_share_it(entry: EntryPoint, clock: Any) -> None:
    pay = Payments(TimeoutError(), TimeoutError())
    model = ScriptedModel(calls("pay", {"amount": 1}), calls("pay", {"amount": 1}), "done")  # one id, two messages
    run(create_agent(model, [pay.tool], middleware=[ToolRetry()]), "go", entry=entry)
    assert len(pay.keys) == 4 and len(set(pay.keys[:3])) == 1 and len(set(pay.keys)) == 2


def test_the_key_may_be_marked_with_an_instance_and_in_async_tools() -> None:
    keys = []

    @tool(effect="write")
    async def pay(amount: int, key: Annotated[str, IdempotencyKey()]) -> str:
        """Pay."""
        keys.append(key)
        return "paid"

    run(create_agent(ScriptedModel(calls("pay", {"amount": 1}), "done"), [pay]), "go", entry="ainvoke")
    assert "key" not in pay.args and len(keys[0]) == 36


def test_threads_have_different_keys() -> None:
    pay = Payments()
    for name in ("a", "b"):
        message = calls("pay", {"amount": 1}).model_copy(update={"id": "same"})
        agent = create_agent(ScriptedModel(message, "done"), [pay.tool], checkpointer=InMemorySaver())
        run(agent, "go", thread(name))
    assert len(set(pay.keys)) == 2


_CRASHING = """
import sqlite3, sys
from typing import Annotated
from langgraph.checkpoint.sqlite import SqliteSaver
from agentkit import create_agent, thread
from agentkit.testing import ScriptedModel, ai, tool_call
from agentkit.tools import IdempotencyKey, tool

@tool(effect="write", idempotent=True)
def pay(amount: int, key: Annotated[str, IdempotencyKey]) -> str:
    "Pay."
    print(key, flush=True)
    if sys.argv[2] == "crash":
        raise SystemExit(9)
    return "paid"

saver = SqliteSaver(sqlite3.connect(sys.argv[1], check_same_thread=False))
script = [ai("", tool_call("pay", {"amount": 1}, "c"))] if sys.argv[2] == "crash" else ["done"]
agent = create_agent(ScriptedModel(*script), [pay], checkpointer=saver)
agent.invoke({"messages": "go"} if sys.argv[2] == "crash" else None, thread("t"))
"""


def test_the_key_is_the_same_in_the_process_that_resumes_after_a_crash(root: Path, tmp_path: Path) -> None:
    seen = []
    for how in ("crash", "resume"):
        done = subprocess.run(
            [sys.executable, "-c", _CRASHING, str(tmp_path / "t.db"), how],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) == (how == "resume"), done.stderr
        seen.append(done.stdout)
    assert len(seen[0]) == 37 and seen[0] == seen[1]


def test_the_key_survives_a_pause() -> None:
    keys = []

    @tool
    def pay(amount: int, key: Annotated[str, IdempotencyKey]) -> str:
        """Pay."""
        keys.append(key)
        return str(interrupt("sure?"))

    agent = create_agent(ScriptedModel(calls("pay", {"amount": 1}), "done"), [pay], checkpointer=InMemorySaver())
    run(agent, "go", thread("t"))
    run(agent, Command(resume="yes"), thread("t"))
    assert len(keys) == 2 and len(set(keys)) == 1


# ---- time-out


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("native", [True, False], ids=["async tool", "sync tool"])
def test_a_time_out_is_an_error_result_and_leaves_the_siblings_alone(
    entry: EntryPoint, native: bool, granularity: Any
) -> None:
    release = threading.Event()

    def made(name: str, hangs: bool, **contract: Any) -> BaseTool:
        def do(x: int) -> str:
            if hangs:
                release.wait(10)
            return name

        async def ado(x: int) -> str:
            if hangs:
                await asyncio.sleep(10)
            return name

        is_async = native and entry in ("ainvoke", "astream")
        seconds = 0.02 if hangs else 30
        return tool(name, description="Do it.", timeout=seconds, **contract)(ado if is_async else do)

    tools = [made("look", True, effect="read"), made("pay", True), made("quick", False)]
    asked = ai("", *(tool_call(one.name, {"x": 1}, one.name) for one in tools))
    try:
        ended = run(create_agent(ScriptedModel(asked, "done"), tools, granularity=granularity), "go", entry=entry)
    finally:
        release.set()
    look, pay, quick = results(ended)
    assert look.status == "error" and "did not answer within 0.02 s" in look.text and "unknown" not in look.text
    assert pay.status == "error" and "Whether it took effect is unknown. Do not repeat" in pay.text
    assert (quick.text, quick.status, ended.text) == ("quick", "success", "done")


def test_a_tools_own_time_out_error_is_its_own(entry: EntryPoint) -> None:
    error = TimeoutError("the tool's")

    @tool(timeout=5)
    def look(x: int) -> str:
        """Look."""
        raise error

    agent = create_agent(ScriptedModel(calls("look", {"x": 1}), "done"), [look])
    assert run(agent, "go", entry=entry, catch=True).error is error


def test_a_pause_in_a_tool_with_a_time_out_is_a_pause(entry: EntryPoint) -> None:
    @tool(timeout=5, max_concurrency=1)
    def ask(x: int) -> str:
        """Ask."""
        return str(interrupt("well?"))

    agent = create_agent(ScriptedModel(calls("ask", {"x": 1}), "done"), [ask], checkpointer=InMemorySaver())
    assert [i.value for i in run(agent, "go", thread("t"), entry=entry).interrupts] == ["well?"]
    assert results(run(agent, Command(resume="fine"), thread("t"), entry=entry))[0].text == "fine"


async def test_nothing_goes_on_after_a_run_with_time_outs() -> None:
    cancelled = []

    @tool(timeout=0.05, max_concurrency=1)
    async def look(x: int) -> str:
        """Look."""
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            cancelled.append(x)
            raise
        return ""

    agent = create_agent(ScriptedModel(calls("look", {"x": 1}, {"x": 2}), "done"), [look])
    await agent.ainvoke({"messages": "go"})
    assert cancelled == [1, 2]
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_hanging_sync_tool_does_not_keep_the_process_alive(root: Path) -> None:
    code = (
        "import threading\n"
        "from agentkit import create_agent\n"
        "from agentkit.testing import ScriptedModel, ai, tool_call\n"
        "from agentkit.tools import tool\n"
        "@tool('look', description='Look.', timeout=0.01)\n"
        "def look(x: int) -> str:\n"
        "    threading.Event().wait()\n"
        "agent = create_agent(ScriptedModel(ai('', tool_call('look', {'x': 1}, 'c')), 'done'), [look])\n"
        "print(agent.invoke({'messages': 'go'})['messages'][-1].text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "done\n"


# ---- max_concurrency


class Crowd:
    """A tool that knows how many of its executions there were at once."""

    def __init__(self, *, is_async: bool, **contract: Any) -> None:
        self.now = self.peak = self.total = 0
        self._lock = threading.Lock()

        def enter(by: int) -> None:
            with self._lock:
                self.now += by
                self.total += by > 0
                self.peak = max(self.peak, self.now)

        def do(x: int) -> str:
            enter(1)
            time.sleep(0.004)
            enter(-1)
            return str(x)

        async def ado(x: int) -> str:
            enter(1)
            await asyncio.sleep(0.004)
            enter(-1)
            return str(x)

        self.tool = tool("work", description="Work.", **contract)(ado if is_async else do)


@pytest.mark.parametrize("contract", [{}, {"timeout": 5}], ids=["", "with a time-out"])
@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("native", [True, False], ids=["async tool", "sync tool"])
def test_no_more_executions_at_once_than_declared(
    entry: EntryPoint, native: bool, limit: int, contract: dict[str, Any]
) -> None:
    is_async = native and entry in ("ainvoke", "astream")
    crowd = Crowd(is_async=is_async, max_concurrency=limit, **contract)
    asked = calls("work", *({"x": n} for n in range(6)))
    ended = run(create_agent(ScriptedModel(asked, "done"), [crowd.tool]), "go", entry=entry)
    assert crowd.peak <= limit and crowd.total == 6
    assert [m.text for m in results(ended)] == [str(n) for n in range(6)]


async def test_the_limit_belongs_to_the_tool_whoever_uses_it() -> None:
    crowd = Crowd(is_async=False, max_concurrency=1)
    agents = [create_agent(ScriptedModel(calls("work", {"x": 1}, {"x": 2}), "done"), [crowd.tool]) for _ in range(3)]
    sync = asyncio.to_thread(agents[0].invoke, {"messages": "go"})
    await asyncio.gather(sync, *(agent.ainvoke({"messages": "go"}) for agent in agents[1:]))
    assert crowd.peak == 1 and crowd.total == 6


def test_a_failed_or_timed_out_execution_frees_its_place_when_it_is_over() -> None:
    release = threading.Event()
    runs = []

    @tool(timeout=0.3, max_concurrency=1)
    def look(x: int) -> str:
        """Look."""
        runs.append(x)
        if x == 0:
            raise ValueError("broken")
        if x == 1:
            release.wait(10)
        return "seen"

    def told(x: int) -> Any:
        return run(create_agent(ScriptedModel(calls("look", {"x": x}), "done"), [look]), "go", catch=True)

    assert isinstance(told(0).error, ValueError)
    assert "did not answer" in results(told(1))[0].text
    threading.Timer(0.02, release.set).start()  # the thread that was given up holds its place until then
    assert results(told(2))[0].text == "seen" and runs == [0, 1, 2]


# ---- sequential


def steps_of(run_one: Callable[[int], Any] | None = None, **options: Any) -> tuple[list[int], BaseTool]:
    ran: list[int] = []

    def step(n: int) -> Any:
        time.sleep(0.002 * (3 - n))  # the later, the faster
        ran.append(n)
        return str(n) if run_one is None else run_one(n)

    return ran, tool("step", description="Take a step.", sequential=True, **options)(step)


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_calls_of_one_answer_run_in_the_models_order(entry: EntryPoint, granularity: Any) -> None:
    ran, step = steps_of()
    asked = calls("step", {"n": 0}, {"n": 1}, {"n": 2})
    model = ScriptedModel(asked, calls("step", {"n": 0}, {"n": 1}, first="d"), "done")
    ended = run(create_agent(model, [step], granularity=granularity), "go", entry=entry)
    assert ran == [0, 1, 2, 0, 1] and model.calls == 3
    assert [m.text for m in results(ended)] == ["0", "1", "2", "0", "1"]


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_other_calls_of_the_answer_run_beside_them_and_each_call_once(entry: EntryPoint, granularity: Any) -> None:
    ran, step = steps_of()
    others: list[int] = []

    @tool
    def other(n: int) -> str:
        """Do something else."""
        others.append(n)
        return "other"

    kinds = ["other", "step", "other", "step", "other", "step"]
    asked = ai("", *(tool_call(kind, {"n": n // 2}, f"c{n}") for n, kind in enumerate(kinds)))
    model = ScriptedModel(asked, "done")
    ended = run(create_agent(model, [step, other], granularity=granularity), "go", entry=entry)
    assert ran == [0, 1, 2] and sorted(others) == [0, 1, 2] and model.calls == 2
    assert len(results(ended)) == 6


def test_each_call_sees_what_those_before_it_wrote(entry: EntryPoint) -> None:
    class State(AgentState[Any]):
        total: int

    @tool(sequential=True, writes={"total": "total"})
    def add(n: int, runtime: ToolRuntime) -> dict[str, int]:
        """Add."""
        return {"total": runtime.state.get("total", 0) + n}

    asked = calls("add", {"n": 1}, {"n": 2}, {"n": 3})
    agent = create_agent(ScriptedModel(asked, "done"), [add], state_schema=State)
    assert run(agent, "go", entry=entry).values["total"] == 6


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_a_pause_stops_the_line_and_nothing_runs_twice_in_a_new_process(tmp_path: Path, granularity: Any) -> None:
    done: list[int] = []

    def one(n: int) -> str:
        if n == 1:
            interrupt("go on?")
        done.append(n)
        return str(n)

    asked = calls("step", {"n": 0}, {"n": 1}, {"n": 2})
    for given, script in (("go", [asked]), (Command(resume="yes"), ["done"])):
        ran, step = steps_of(one)
        with sqlite3.connect(tmp_path / "t.db", check_same_thread=False) as connection:
            saver = SqliteSaver(connection)
            agent = create_agent(ScriptedModel(*script), [step], checkpointer=saver, granularity=granularity)
            ended = run(agent, given, thread("t"))
        connection.close()
        if given == "go":
            assert ran == [0, 1] and done == [0] and ended.interrupts
    assert done == [0, 1, 2] and [m.text for m in results(ended)] == ["0", "1", "2"] and ended.text == "done"


def test_a_failure_stops_the_line_which_goes_on_where_it_stood() -> None:
    broken = [True]

    def one(n: int) -> str:
        if n == 1 and broken.pop():
            raise ValueError("broken")
        return str(n)

    broken[:] = [False, True]
    ran, step = steps_of(one)
    asked = calls("step", {"n": 0}, {"n": 1}, {"n": 2})
    agent = create_agent(ScriptedModel(asked, "done"), [step], checkpointer=InMemorySaver())
    assert isinstance(run(agent, "go", thread("t"), catch=True).error, ValueError) and ran == [0, 1]
    assert run(agent, None, thread("t")).text == "done"
    assert ran == [0, 1, 1, 2]


def test_a_call_without_a_result_does_not_hold_up_the_line(entry: EntryPoint) -> None:
    from agentkit import Middleware

    class Swallow(Middleware):
        def wrap_tool_call(self, request: Any) -> Any:
            result = yield request
            return Command(update={}) if result.text == "0" else result

    ran, step = steps_of()
    model = ScriptedModel(calls("step", {"n": 0}, {"n": 1}), "done")
    ended = run(create_agent(model, [step], middleware=[Swallow()]), "go", entry=entry)
    assert ran == [0, 1] and ended.text == "done" and len(results(ended)) == 2


# ---- writes


class Order(AgentState[Any]):
    order_id: str
    city: str


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_state_fields_are_filled_from_the_result(entry: EntryPoint, granularity: Any) -> None:
    @tool(writes={"order_id": "id", "city": "ship_to.city"})
    def order(n: int) -> dict[str, Any]:
        """Find an order."""
        return {"id": f"A-{n}", "ship_to": {"city": "Rome"}}

    agent = create_agent(
        ScriptedModel(calls("order", {"n": 7}), "done"), [order], state_schema=Order, granularity=granularity
    )
    values = run(agent, "go", entry=entry).values
    assert (values["order_id"], values["city"]) == ("A-7", "Rome")


def test_of_parallel_calls_the_last_wins(entry: EntryPoint) -> None:
    @tool(writes={"order_id": "."})
    def order(n: int) -> str:
        """Find an order."""
        time.sleep(0.002 * (2 - n))
        return f"{n}"

    agent = create_agent(
        ScriptedModel(calls("order", {"n": 0}, {"n": 1}, {"n": 2}), "done"), [order], state_schema=Order
    )
    assert run(agent, "go", entry=entry).values["order_id"] == "2"


def test_artifacts_count_and_errors_write_nothing(caplog: pytest.LogCaptureFixture) -> None:
    from langchain_core.tools import ToolException

    @tool(writes={"order_id": "city"}, response_format="content_and_artifact")
    def order(n: int) -> tuple[str, Any]:
        """Find an order."""
        if n == 0:
            raise ToolException('{"city": "no"}')
        return "found", Address(city="Rome") if n == 1 else {"other": 1}

    for n, expected in ((0, None), (1, "Rome"), (2, None)):
        agent = create_agent(ScriptedModel(calls("order", {"n": n}), "done"), [order], state_schema=Order)
        assert run(agent, "go").values.get("order_id") == expected
    assert "has no 'city', so the state field 'order_id' is not written" in caplog.text


def test_a_field_that_the_state_lacks_is_found_when_the_agent_is_built() -> None:
    order = tool("order", description="Find.", writes={"order_id": "id"})(lambda n: {})
    with pytest.raises(UnknownStateField, match="'order' writes the state field 'order_id'") as caught:
        create_agent(ScriptedModel("x"), [order])
    assert caught.value.field == "order_id"
