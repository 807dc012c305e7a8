"""The corpus: every planted fault is found, and nothing is said of the graphs that are right."""

import warnings
from typing import Any

import pytest

from agentkit.check import RULES, check
from tests.check.corpus import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}-{case.kind}-{case.name}")
def test_a_check_says_what_is_wrong_and_nothing_else(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # create_agent warns of conflicting fields itself
        graph: Any = case.make()
    report = check(graph, durable=case.durable)
    assert report.codes == case.expected, str(report)


def test_every_rule_has_a_faulty_a_mended_and_a_look_alike_graph() -> None:
    kinds = {(case.code, case.kind) for case in CASES}
    assert kinds == {(code, kind) for code in RULES for kind in ("faulty", "mended", "alike")}
    assert len({case.name for case in CASES}) == len(CASES) >= 60
