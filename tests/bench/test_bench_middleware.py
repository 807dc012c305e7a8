"""`make bench-middleware` measures each shipped middleware, and counts what no machine disturbs."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from agentkit import Middleware, middleware
from bench.middleware import CASES, Case, cost, main, table


def case(name: str) -> Case:
    return next(each for each in CASES if each.name.startswith(name))


def test_every_shipped_middleware_is_measured() -> None:
    shipped: list[Any] = [getattr(middleware, name) for name in middleware.__all__]
    classes = [each.__name__ for each in shipped if inspect.isclass(each) and issubclass(each, Middleware)]
    measured = {each.name.partition("(")[0] for each in CASES}
    assert set(classes) <= measured and "standard" in measured


@pytest.mark.parametrize(("granularity", "steps"), [("hook", 2.25), ("turn", 0)])
def test_steps_and_calls_are_counted(granularity: str, steps: float, tmp_path: Path) -> None:
    """Gates has a hook before the model and one after it; and one before the run, of four turns."""
    found = cost(case("Gates"), granularity, False, runs=1, turns=4, folder=tmp_path)
    assert found.steps == pytest.approx(steps)
    assert found.calls > 100


def test_a_middleware_that_changes_the_course_of_a_run_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="another course"):
        early = Case("early", lambda folder: [middleware.Gates(middleware.StepBudget(2))])
        cost(early, "turn", False, runs=1, turns=4, folder=tmp_path)


def test_the_command_prints_a_line_per_middleware(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "Insist", "--runs", "1", "--turns", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines] == ["per turn, added", "---", "`Insist()`"]
    assert main(["--only", "Nothing"]) == 2
    assert "Gates" in capsys.readouterr().err
    assert table({}).startswith("| per turn, added")
