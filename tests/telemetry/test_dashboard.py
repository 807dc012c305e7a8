"""The dashboard asks for metrics and attributes that there are, under the names that Prometheus gives them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentkit.telemetry.instruments import INSTRUMENTS

FILE = Path(__file__).resolve().parents[2] / "docs" / "dashboards" / "agentkit-grafana.json"


def exported() -> Iterator[tuple[str, frozenset[str]]]:
    """Each series as Prometheus knows it, with its labels."""
    for name, told in INSTRUMENTS.items():
        base = name.replace(".", "_") + ("_seconds" if told.unit == "s" else "")
        ends = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",), "observable_up_down_counter": ("",)}
        labels = frozenset(attribute.replace(".", "_") for attribute in told.attributes)
        for end in ends[told.kind]:
            yield base + end, labels | ({"le"} if end == "_bucket" else set())


def test_every_panel_asks_for_what_there_is() -> None:
    series = dict(exported())
    board: dict[str, Any] = json.loads(FILE.read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(queries) >= len(board["panels"]) == 13
    for query in queries:
        (name,) = re.findall(r"\b((?:gen_ai|agentkit)_\w+?)(?=[\[{)])(?!\))|\((agentkit_agent_active)\)", query)[0:1]
        asked = next(part for part in name if part)
        assert asked in series, query
        labels = set(re.findall(r"(\w+)(?:=~|!=|=)\"", query))
        grouped = re.findall(r"by \(([^)]*)\)", query)
        labels |= {label.strip() for group in grouped for label in group.split(",")}
        assert labels <= series[asked], query


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(FILE.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        taken |= cells
