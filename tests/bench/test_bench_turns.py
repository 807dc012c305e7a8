"""`make bench` measures every contender on the same work, and says what it leaves out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bench import page
from bench.turns.__main__ import SCENARIOS, main
from bench.turns.measuring import measure, spread
from bench.turns.model import Bare, Model, add
from bench.turns.peers import environment
from bench.turns.processes import process
from bench.turns.scenario import CONTENDERS, LeftOut, Prepared, Row, import_or_leave_out
from bench.turns.targets import TARGETS, Target, verdict
from bench.turns.telling import targets
from bench.turns.threads import MARKS, exponent, rows


def test_a_quick_run_measures_agents_beside_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "out.json"
    assert main(["--quick", "--no-peers", "--only", "S1", "S3", "--json", str(written)]) == 0
    rows = {row["row"]: row for row in json.loads(written.read_text())["rows"]}
    assert set(rows["S1"]["values"]) == {"hook", "turn", "langchain", "bare"}
    stored = {name: value["median"] for name, value in rows["S3-20.bytes"]["values"].items()}
    assert stored["turn"] < stored["hook"] < stored["langchain"]  # what a turn stores is not a matter of time
    assert rows["S3-20.bytes"]["ratios"]["turn / langchain"]["median"] < 0.2
    said = capsys.readouterr()
    assert "| S1 | 10 turns | ms |" in said.out and "| S1 | pydantic-ai | 0.36 | not measured |" in said.out
    assert "S3: 1 round" in said.err


@pytest.mark.parametrize(
    ("given", "named"), [(["--only", "S99"], "'S99'"), (["--docs", "--quick"], "leave out --quick")]
)
def test_what_makes_no_sense_is_refused(given: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(given) == 2
    assert named in capsys.readouterr().err


def test_the_bare_loop_makes_the_calls_that_agents_make() -> None:
    messages = Bare(Model(turns=4, calls=2), [add]).invoke({"messages": [("user", "1 + 2?")]})
    assert [getattr(message, "type", "human") for message in messages] == ["human", *["ai", "tool", "tool"] * 3, "ai"]


def test_the_rounds_alternate_who_is_first() -> None:
    order: list[str] = []

    def sampler(name: str, value: float) -> list[float]:
        order.append(name)
        return [value]

    samplers = {
        "hook": lambda: sampler("hook", 2),
        "turn": lambda: sampler("turn", 1),
        "bare": lambda: sampler("bare", 4),
    }
    (result,) = measure(Prepared([Row("S", "work")], samplers, warm=False), 3).results()
    assert order == ["turn", "bare", "hook", "bare", "hook", "turn", "hook", "turn", "bare"]
    assert result["ratios"]["turn / bare"]["median"] == 0.25 and result["rounds"] == 3


def test_spread_is_the_middle_half() -> None:
    assert spread([1, 2, 3, 4, 100]) == {"median": 3, "low": 2, "high": 4}


def test_the_exponent_tells_how_something_grows() -> None:
    assert exponent([(n, 7 * n**2) for n in (50, 100, 200, 400)]) == pytest.approx(2)
    assert math.isnan(exponent([(50, 1)]))


def test_a_target_is_met_by_its_median() -> None:
    middle = {"median": 0.4, "low": 0.3, "high": 0.9}
    row = {"row": "S1", "ratios": {"turn / langchain": middle}, "values": {"turn": middle}}
    assert verdict(Target("S1", 0.4), "turn", [row]).met is True
    assert verdict(Target("S1", 0.39), "turn", [row]).met is False
    assert verdict(Target("S1", 0.39), "hook", [row]).met is None
    assert verdict(Target("S1", 0.5, against=""), "turn", [row]).met is True
    assert "**no**" not in targets([]) and "not measured" in targets([])


def test_every_target_is_of_a_row_that_is_measured() -> None:
    known = {scenario.name for scenario in SCENARIOS} | {row.name for row in rows("S3", "SQLite", MARKS)}
    assert {target.row for target in TARGETS} <= known
    assert {target.against for target in TARGETS} <= {"", *CONTENDERS}


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LeftOut, match=r"env could not be made; try: .*pip.*pydantic-ai-slim"):
        environment(tmp_path / "file" / "env")
    with pytest.raises(LeftOut, match="a-package is not installed"):
        import_or_leave_out("no_such_module", "a-package")


def test_a_process_that_fails_is_told() -> None:
    with pytest.raises(LeftOut, match="ended with 3"):
        process(["sh", "-c", "echo 1; exit 3"])
    assert process(["sh", "-c", "echo 7"])[1] == 7


def test_a_page_is_written_only_between_its_marks(tmp_path: Path) -> None:
    one = tmp_path / "page.md"
    one.write_text("a\n<!-- begin: x -->\nold\n<!-- end: x -->\nb\n")
    page.write(one, "x", "new")
    assert one.read_text() == "a\n<!-- begin: x -->\n\nnew\n\n<!-- end: x -->\nb\n"
    with pytest.raises(ValueError, match="no place"):
        page.write(one, "y", "new")
