"""What a report says and how: suppression, text, JSON, SARIF, nested graphs, and the rules' pages."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from agentkit import AgentMiddleware, barrier
from agentkit.check import RULES, as_json, as_sarif, check, ignore
from agentkit.errors import CannotJoin, NoGraph, UnknownRule
from tests.check.corpus import State, drawn, logs


def counts_in_place(state: Any) -> None:
    state["count"] = 1


def faulty(metadata: dict[str, Any] | None = None) -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("counts", counts_in_place, metadata=metadata)
    builder.add_node("orphan", logs("orphan"))
    builder.add_edge(START, "counts")
    return builder


def test_a_finding_about_code_says_where_it_stands() -> None:
    finding = next(found for found in check(faulty()).findings if found.code == "AK501")
    assert finding.place is not None
    assert Path(finding.place.path).name == Path(__file__).name
    line = Path(finding.place.path).read_text().splitlines()[finding.place.line - 1]
    assert line.strip() == 'state["count"] = 1'


def test_a_rule_is_silenced_at_a_node_with_a_reason_that_stays() -> None:
    report = check(faulty(ignore("AK501", because="the old engine wants it")))
    assert report.codes == ["AK103"]
    assert [(each.finding.code, each.because) for each in report.suppressed] == [("AK501", "the old engine wants it")]
    assert "silenced AK501 at counts (the old engine wants it)" in str(report)
    assert check(faulty({"check_ignore": ["AK501"]})).codes == ["AK103"]


def test_a_rule_is_left_out_everywhere() -> None:
    assert check(faulty(), ignore=["AK501", "AK103"]).codes == []
    with pytest.raises(UnknownRule, match="there is no rule 'AK999'; there are AK101"):
        check(faulty(), ignore=["AK999"])


def test_a_report_is_text_with_the_worst_first_and_a_summary() -> None:
    lines = str(check(drawn((START, "a"), ("a", "b"), counts=counts_in_place))).splitlines()
    assert lines[0] == "State: error AK103 unreachable-node at counts"
    assert lines[-1] == "State: 2 errors"
    assert "    mend it: return {'count': ...}" in lines
    assert all(len(line) <= 100 for line in lines if not line.startswith("    in "))
    assert str(check(drawn((START, "a")))) == "State: no findings"


def test_a_report_is_json() -> None:
    (entry,) = json.loads(as_json([check(faulty())]))
    assert entry["ok"] is False
    assert [found["code"] for found in entry["findings"]] == ["AK103", "AK501"]
    assert entry["findings"][1]["page"] == "docs/checks/AK501.md"
    assert entry["findings"][1]["line"] > 0


def test_graphs_inside_are_looked_at_as_well() -> None:
    inner = faulty().compile()
    report = check(drawn((START, "inner"), inner=inner))
    assert {finding.node for finding in report.findings} == {"inner/counts", "inner/orphan"}
    assert check(drawn((START, "inner"), inner=inner), nested=False).codes == []


@pytest.mark.parametrize("given", [None, "text", check, AgentMiddleware()])
def test_what_is_no_graph_is_refused(given: Any) -> None:
    with pytest.raises(NoGraph, match="is no graph that can be checked"):
        check(given)


def test_a_branch_that_does_not_lead_to_the_target_cannot_be_joined() -> None:
    builder = drawn((START, "a"), ("a", "b"))
    with pytest.raises(CannotJoin, match="no edge leads there"):
        barrier(builder, ["b"], "a")
    with pytest.raises(CannotJoin, match="not a node that leads there"):
        barrier(builder, ["nobody"], "b")


# ---- SARIF


def test_a_report_is_sarif_that_a_code_host_takes() -> None:
    """The parts that the published schema of SARIF 2.1.0 requires, and those that GitHub needs to show a finding."""
    log = json.loads(as_sarif([check(faulty(ignore("AK501", because="known")))]))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "agentkit check"
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"]) == len(RULES)
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        assert all(each["logicalLocations"][0]["fullyQualifiedName"] for each in result["locations"])
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
    silenced = next(result for result in run["results"] if result["ruleId"] == "AK501")
    assert silenced["suppressions"] == [{"kind": "inSource", "justification": "known"}]


def test_paths_in_sarif_are_relative_to_the_checkout(root: Path) -> None:
    log = json.loads(as_sarif([check(faulty())], root))
    (place,) = [
        location["physicalLocation"]
        for result in log["runs"][0]["results"]
        for location in result["locations"]
        if "physicalLocation" in location
    ]
    assert place["artifactLocation"] == {"uri": "tests/check/test_check_report.py", "uriBaseId": "ROOT"}
    assert place["region"]["startLine"] > 0
    assert log["runs"][0]["originalUriBaseIds"]["ROOT"]["uri"] == f"{root.as_uri()}/"


# ---- pages


def test_the_pages_of_the_rules_are_up_to_date(root: Path) -> None:
    spec = importlib.util.spec_from_file_location("check_pages", root / "scripts" / "check_pages.py")
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    assert pages.stale() == [], "run: python scripts/check_pages.py"


@pytest.mark.parametrize("code", RULES)
def test_a_page_says_why_and_how_and_shows_both(code: str, root: Path) -> None:
    """The examples are run, and what they print is compared, where all examples of the documentation are."""
    page = root.joinpath("docs", "checks", f"{code}.md").read_text()
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings == ["## Why it bites", "## Mend it", "## Fails", "## Passes", "## Silence it"]
    fails, passes = page.partition("## Fails")[2].split("## Passes")
    assert f"# -> ['{code}']" in fails or f"# -> {code} " in fails
    assert "# -> []" in passes
    assert f"checks/{code}.md" in root.joinpath("mkdocs.yml").read_text()
