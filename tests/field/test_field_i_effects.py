"""Family I and its neighbours, as far as effects are concerned: crashes between an effect and what is stored of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from agentkit import create_agent, thread
from agentkit.ledger import Ledger, Settlement
from agentkit.middleware import Approval, EffectLedger, decide, pending_approvals
from agentkit.testing import ScriptedModel, ai, tool_call
from agentkit.tools import tool


class Crash(BaseException):
    """The process dies in the saver: nothing after it happens."""


class CrashingSaver(SqliteSaver):
    """A saver whose process dies at the n-th thing it is asked to write, before or after it is written."""

    left = -1
    after = False

    def _count(self, write: Callable[[], Any]) -> Any:
        self.left -= 1
        last = self.left == 0
        result = write() if self.after or not last else None
        if last:
            raise Crash
        return result

    def put(self, *args: Any, **kwargs: Any) -> Any:
        return self._count(lambda: super(CrashingSaver, self).put(*args, **kwargs))

    def put_writes(self, *args: Any, **kwargs: Any) -> None:
        self._count(lambda: super(CrashingSaver, self).put_writes(*args, **kwargs))


@pytest.mark.parametrize("after", [False, True], ids=["unwritten", "written"])
def test_lg_8039_a_crash_at_any_write_neither_repeats_an_effect_nor_loses_a_result(tmp_path: Path, after: bool) -> None:
    """Which of a step's writes are stored depends on timing; with the ledger it makes no difference."""
    for n in range(2 if after else 1, 40, 2):  # both ways together, every write
        paid: list[int] = []

        @tool(effect="write")
        def pay(x: int) -> str:
            """Pay."""
            paid.append(x)  # noqa: B023  # runs in this turn of the loop
            return f"paid {x}"

        def says(request: Any) -> Any:
            if any(m.type == "ai" for m in request.messages):
                return "done"
            return ai("", tool_call("pay", {"x": 1}, "a"), tool_call("pay", {"x": 2}, "b"))

        with Ledger("memory:") as ledger, CrashingSaver.from_conn_string(str(tmp_path / f"{after}{n}.db")) as saver:
            assert isinstance(saver, CrashingSaver)
            agent = create_agent(
                ScriptedModel(says, repeat=True), [pay], middleware=[EffectLedger(ledger)], checkpointer=saver
            )
            saver.left, saver.after = n, after
            crashed = False
            try:
                ended = agent.invoke({"messages": "go"}, thread("t"), durability="sync")
            except Crash:
                crashed = True
                stored = bool(agent.get_state(thread("t")).values.get("messages"))
                ended = agent.invoke(None if stored else {"messages": "go"}, thread("t"), durability="sync")
            assert sorted(paid) == [1, 2], f"crash at write {n}"
            results = {m.text for m in ended["messages"] if isinstance(m, ToolMessage)}
            assert results == {"paid 1", "paid 2"}, f"crash at write {n}"
            assert ended["messages"][-1].text == "done"
        if not crashed:
            assert n > 5, "the crashes were planted in the writes of a run"
            return
    raise AssertionError("the run never ended without a crash")


async def test_str_3615_a_cancel_during_the_approved_call_does_not_run_it_again(tmp_path: Path) -> None:
    began, ran = asyncio.Event(), []

    @tool(effect="write")
    async def transfer(x: int) -> str:
        """Transfer money."""
        ran.append(x)
        began.set()
        await asyncio.sleep(60)
        return "transferred"

    with Ledger(f"sqlite:///{tmp_path / 'effects.db'}") as ledger:
        agent = create_agent(
            ScriptedModel(ai("", tool_call("transfer", {"x": 1}, "c")), "done"),
            [transfer],
            middleware=[Approval("transfer"), EffectLedger(ledger)],
            checkpointer=InMemorySaver(),
        )
        await agent.ainvoke({"messages": "go"}, thread("t"))
        approved = decide(agent.get_state(thread("t")), {"c": {"type": "approve", "by": "ann"}})
        going = asyncio.create_task(agent.ainvoke(approved, thread("t")))
        await began.wait()
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        await agent.ainvoke(None, thread("t"))
        for approval in pending_approvals(agent.get_state(thread("t"))):  # the engine lost the answer with the step
            again = decide(agent.get_state(thread("t")), {str(approval.tool_call_id): {"type": "approve"}})
            await agent.ainvoke(again, thread("t"))
        (question,) = agent.get_state(thread("t")).interrupts
        assert pending_approvals(agent.get_state(thread("t"))) == []
        assert question.value["type"] == "effect_in_doubt"
        answer = {"doubt": question.value["doubt"], "outcome": "done", "result": "transferred"}
        ended = await agent.ainvoke(Command(resume={question.id: answer}), thread("t"))
        assert ended["messages"][2].text == "transferred"
        assert ran == [1]


def test_lc_40688_an_unknown_outcome_is_kept_from_the_models_next_try(tmp_path: Path) -> None:
    """The model is told not to repeat the charge, and does all the same."""
    charged: list[int] = []

    @tool(effect="write", on_error="tell")
    def charge(order: int) -> str:
        """Charge an order."""
        charged.append(order)
        raise TimeoutError("read timed out")

    calls = [ai("", tool_call("charge", {"order": 17}, f"c{n}")) for n in range(4)]
    with Ledger(f"sqlite:///{tmp_path / 'effects.db'}") as ledger:
        guard = EffectLedger(ledger, key=lambda request: str(request.tool_call["args"]["order"]), on_doubt="tell")
        agent = create_agent(ScriptedModel(*calls, "I gave up."), [charge], middleware=[guard])
        agent.invoke({"messages": "charge order 17"})
        assert charged == [17]
        (doubt,) = ledger.in_doubt()
        ledger.settle(doubt.key, Settlement("done", "charged"))
        later = create_agent(ScriptedModel(calls[0], "It is done."), [charge], middleware=[guard])
        ended = later.invoke({"messages": "what about order 17?"})
        assert "charged" in ended["messages"][2].text
        assert charged == [17]
