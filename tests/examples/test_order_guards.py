"""The order assistant stays in bounds: its three layers of gates, on a model that would not stop by itself."""

from pathlib import Path
from typing import Any

import pytest

from agentkit import exit_of
from agentkit.testing import ENTRY_POINTS, EntryPoint, ScriptedModel, ai, assert_paired, run, tool_call
from examples.order_assistant.assistant import build
from examples.order_assistant.tools import ShopContext

ME = ShopContext(customer_id="C-1001")


@pytest.fixture(params=ENTRY_POINTS)
def entry(request: pytest.FixtureRequest) -> EntryPoint:
    chosen: EntryPoint = request.param
    return chosen


def asking(name: str, **args: Any) -> Any:
    """A model that goes on asking for one tool, each time by another id."""
    return lambda request: ai("", tool_call(name, {k: v(request.turn) for k, v in args.items()}, f"c{request.turn}"))


def test_no_more_calls_is_the_end(entry: EntryPoint, tmp_path: Path) -> None:
    model = ScriptedModel(ai("", tool_call("get_latest_order")), "It is on its way.")
    ended = run(build(tmp_path / "shop.db", model), "where is it?", entry=entry, context=ME)
    assert exit_of(ended.raw).reason == "answer"  # type: ignore[union-attr]


def test_a_spent_budget_ends_with_an_answer_and_runs_nothing_more(entry: EntryPoint, tmp_path: Path) -> None:
    model = ScriptedModel(
        lambda request: asking("search_products", query=lambda n: f"word {n}")(request) if request.tools else "So far.",
        repeat=True,
    )
    ended = run(build(tmp_path / "shop.db", model), "find me something", entry=entry, context=ME)
    assert exit_of(ended.raw).reason == "step_budget"  # type: ignore[union-attr]
    assert ended.messages[-1].text == "So far."
    assert model.calls == 11  # ten, and the closing one
    assert_paired(model, ended.messages)


def test_a_call_that_keeps_failing_goes_to_a_person(entry: EntryPoint, tmp_path: Path) -> None:
    model = ScriptedModel(asking("get_order", order_number=lambda n: "ORD-99999"), repeat=True)
    ended = run(build(tmp_path / "shop.db", model), "my order?", entry=entry, context=ME)
    assert exit_of(ended.raw).reason == "handoff"  # type: ignore[union-attr]
    assert "customer service" in ended.messages[-1].text
    assert model.calls <= 3
    assert_paired(model, ended.messages)


def test_the_same_question_over_and_over_goes_to_a_person(entry: EntryPoint, tmp_path: Path) -> None:
    model = ScriptedModel(asking("get_latest_order"), repeat=True)
    ended = run(build(tmp_path / "shop.db", model), "my order?", entry=entry, context=ME)
    assert exit_of(ended.raw).reason == "handoff"  # type: ignore[union-attr]
    assert model.calls <= 4
    assert_paired(model, ended.messages)
