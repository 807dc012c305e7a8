"""The vulnerability assessor: twice as drawn, once as it is right, and many at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentkit.check import check
from examples.cve_assessor import records
from examples.cve_assessor.__main__ import app
from examples.cve_assessor.description import description
from examples.cve_assessor.graph import as_drawn, assessor, batch
from examples.cve_assessor.vectors import read_attack, scored, vector_of

RECORDED = "CVE-2021-44228"
ESTIMATED = "CVE-2019-0708"


def assessed(graph: Any, cve_id: str) -> Any:
    return graph.invoke({"cve_id": cve_id, "steps": []})


def test_as_drawn_the_node_where_the_branches_meet_runs_twice_and_the_vector_is_paid_twice() -> None:
    counts = Counter(assessed(as_drawn().compile(), RECORDED)["steps"])
    assert {name for name, count in counts.items() if count == 2} == {"normalize", "generate_cvss_vector", "severity"}


def test_the_check_names_that_node_its_steps_and_what_is_paid_for_it() -> None:
    (finding,) = check(as_drawn()).findings
    assert (finding.code, finding.severity, finding.node) == ("AK101", "error", "normalize")
    assert "super-steps 2 and 3 when 'get_cvss_data' goes to 'normalize'" in finding.message
    assert "'generate_cvss_vector' and 'severity' run again" in finding.message
    sources = "['generate_asd_data', ('get_cvss_data', 'get_cvss_statement_data')]"
    assert finding.remedy == f"agentkit.barrier(builder, {sources}, 'normalize')"


@pytest.mark.parametrize("cve_id", [RECORDED, ESTIMATED])
def test_with_the_barrier_everything_runs_once_and_sees_both_branches(cve_id: str) -> None:
    result = assessed(assessor(), cve_id)
    assert set(Counter(result["steps"]).values()) == {1}
    assert result["facts"]["title"]
    assert result["facts"]["description"] == result["description"]
    assert check(assessor()).codes == []


async def test_the_graph_does_the_same_async_and_streamed() -> None:
    once = assessed(assessor(), ESTIMATED)
    assert await assessor().ainvoke({"cve_id": ESTIMATED, "steps": []}) == once
    streamed = [*assessor().stream({"cve_id": ESTIMATED, "steps": []}, stream_mode="values")]
    assert streamed[-1] == once


def test_recorded_scores_are_what_the_formula_gives() -> None:
    for cve_id in records.known():
        recorded = records.score(cve_id)
        if recorded is not None:
            rating = scored(recorded["vector"])
            assert rating["score"] == recorded["base_score"]
            assert rating["severity"].upper() == recorded["base_severity"]


@pytest.mark.parametrize(
    ("cve_id", "vector", "score"),  # as the National Vulnerability Database publishes them, of its own ("Primary")
    [
        ("CVE-2019-0708", "AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 9.8),
        ("CVE-2023-4863", "AV:N/AC:L/PR:N/UI:R/S:U/C:H/I:H/A:H", 8.8),
        ("CVE-2023-38545", "AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 9.8),
        ("CVE-2023-44487", "AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H", 7.5),
    ],
)
def test_estimates_come_to_what_the_national_database_says(cve_id: str, vector: str, score: float) -> None:
    result = assessed(assessor(), cve_id)
    assert result["facts"]["basis"] == "estimated"
    assert (result["rating"]["vector"], result["rating"]["score"]) == (f"CVSS:3.1/{vector}", score)


def test_an_attack_by_a_local_user_is_rated_as_one() -> None:
    attack = read_attack("A local user can become root.")
    assert vector_of(attack) == "CVSS:3.1/AV:L/AC:L/PR:L/UI:N/S:U/C:H/I:H/A:H"


def test_the_notes_of_the_sub_graph_stay_inside_it() -> None:
    result = description().invoke({"record": records.record("CVE-2024-3094")})
    assert set(result) == {"techniques", "description"}
    assert [technique["id"] for technique in result["techniques"]] == ["T1195.002"]


def test_many_are_assessed_at_once_and_ranked() -> None:
    chosen = [ESTIMATED, "CVE-2023-32681", RECORDED]
    graph = batch()
    events = [
        event
        for event in graph.stream({"cve_ids": chosen, "assessed": []}, stream_mode="debug")
        if event["type"] == "task"
    ]
    assert [(event["step"], event["payload"]["name"]) for event in events] == [(1, "assess")] * 3 + [(2, "rank")]
    result = graph.invoke({"cve_ids": chosen, "assessed": []})
    assert result["ranking"] == [RECORDED, ESTIMATED, "CVE-2023-32681"]
    assert check(graph).codes == []


def command(*arguments: str, root: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-m", "examples.cve_assessor", *arguments],
        env={**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1", "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_command_prints_json_and_refuses_what_it_does_not_know(root: Path) -> None:
    done = CliRunner().invoke(app, [RECORDED.lower(), ESTIMATED, "--json"])
    assert done.exit_code == 0, done.output
    assert [each["cve_id"] for each in json.loads(done.output)] == [RECORDED, ESTIMATED]
    refused = command("CVE-1999-0001", root=root)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: no record of 'CVE-1999-0001'; there are CVE-2014-0160")
    assert len(refused.stderr.splitlines()) == 1
    assert CliRunner().invoke(app, [RECORDED, ESTIMATED, "--as-drawn"]).exit_code == 2


def test_the_records_carry_their_notice(root: Path) -> None:
    text = json.loads(root.joinpath("examples/cve_assessor/data/records.json").read_text())
    assert "MITRE hereby grants" in text["notice"]
    assert len(text["records"]) == 12
