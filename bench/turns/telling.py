"""Results as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.turns.measuring import Result
from bench.turns.scenario import CONTENDERS, OURS, SHARED
from bench.turns.targets import ITSELF, TARGETS, Verdict, verdict

TITLES = {"langchain": "LangChain", SHARED: "LangChain, agentkit's saver"}
_MET = {True: "yes", False: "**no**", None: ""}
_LEFT_TO_JSON = ".wall"


def is_of_a_thread(result: Result) -> bool:
    """Whether a row belongs to a scenario of a thread that grows in a store."""
    return str(result["row"]).startswith("S3")


def tables(results: Sequence[Result]) -> str:
    """Two tables: whole runs and processes, and threads in a store."""
    threads = [result for result in results if is_of_a_thread(result)]
    others = [result for result in results if not is_of_a_thread(result)]
    return "\n\n".join(_table(part) for part in (others, threads) if part)


def _table(results: Sequence[Result]) -> str:
    names = [name for name in CONTENDERS if any(name in result["values"] for result in results)]
    ratios = [f"{ours} / langchain" for ours in OURS]
    head = ["", "", "unit", *(TITLES.get(name, name) for name in names), *(f"{ours} / LangChain" for ours in OURS)]
    lines = [head, ["---", "---", "---", *("---:" for _ in head[3:])]]
    for result in results:
        if not result["row"].endswith(_LEFT_TO_JSON):
            cells = [cell(result["values"].get(name), result["unit"]) for name in names]
            cells += [cell(result["ratios"].get(name), "ratio") for name in ratios]
            lines.append([result["row"], result["what"], result["unit"], *cells])
    return markdown(lines)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """The lines as a Markdown table; the second one tells how columns are aligned."""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: Mapping[str, float] | None, unit: str) -> str:
    """A median, and the middle half in brackets where it differs."""
    if value is None:
        return ""
    middle, low, high = (_number(value[key], unit) for key in ("median", "low", "high"))
    return middle if low == middle == high else f"{middle} ({low} to {high})"


def _number(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 0.1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def targets(results: Sequence[Result]) -> str:
    """Each target of both granularities, what was measured, and whether it is met."""
    lines = [
        ["", "as a share of", *(f"{name}, {what}" for name in reversed(OURS) for what in ("at most", "is", "met"))]
    ]
    lines.append(["---", "---", *("---:" if at % 3 < 2 else "---" for at in range(6))])
    for target in TARGETS:
        against = "itself" if target.against == ITSELF else TITLES.get(target.against, target.against)
        cells = [part for name in reversed(OURS) for part in _judged(verdict(target, name, results))]
        lines.append([target.row, against, *cells])
    return markdown(lines)


def _judged(found: Verdict) -> list[str]:
    most = "" if found.most is None else f"{found.most:g}"
    return [most, cell(found.measured, "ratio") or "not measured", _MET[found.met]]
