"""Reports as text, as JSON, and as SARIF 2.1.0, which code hosts and editors show beside the code."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from agentkit.check.findings import Finding, Report, Suppressed
from agentkit.check.rule import RULES, Rule

__all__ = ["as_json", "as_sarif", "as_text", "own_version", "page_of"]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def page_of(code: str) -> str:
    """A rule's page, as a path inside the documentation."""
    return f"docs/checks/{code}.md"


def as_text(reports: Sequence[Report], width: int = 100) -> str:
    """Reports for people: what, where, and how to mend it.

    Args:
        reports: The reports.
        width: Columns to stay within.
    """
    return "\n".join(line for report in reports for line in _lines(report, width))


def _lines(report: Report, width: int) -> list[str]:
    lines = []
    for finding in report.findings:
        lines.append(f"{report.subject}: {finding.severity} {finding.code} {finding.name} at {finding.subject}")
        lines += _indented(_sentence(finding), width)
        lines += _indented(f"mend it: {finding.remedy}", width)
        if finding.place is not None:
            lines += [f"    in {finding.place.path}:{finding.place.line}"]
    for each in report.suppressed:
        because = f" ({each.because})" if each.because else ""
        lines.append(f"{report.subject}: silenced {each.finding.code} at {each.finding.subject}{because}")
    if not report.complete:
        lines.append(f"{report.subject}: too large to follow every way through it; there may be more")
    return [*lines, f"{report.subject}: {_summary(report)}"]


def _sentence(finding: Finding) -> str:
    return f"{finding.subject} {finding.message}." if finding.node else f"{finding.message}."


def _indented(text: str, width: int) -> list[str]:
    indent = "    "
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False)


def _summary(report: Report) -> str:
    counts = [(sum(f.severity == kind for f in report.findings), kind) for kind in ("error", "warning", "note")]
    told = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for count, kind in counts if count)
    return told or "no findings"


def as_json(reports: Sequence[Report]) -> str:
    """Reports for programs: a list, one entry per graph."""
    return json.dumps([_plain(report) for report in reports], indent=2, ensure_ascii=False)


def _plain(report: Report) -> dict[str, Any]:
    return {
        "graph": report.subject,
        "ok": report.ok,
        "complete": report.complete,
        "findings": [_entry(finding) for finding in report.findings],
        "suppressed": [{**_entry(each.finding), "because": each.because} for each in report.suppressed],
    }


def _entry(finding: Finding) -> dict[str, Any]:
    place = finding.place
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "node": finding.node,
        "edge": list(finding.edge) if finding.edge else None,
        "message": finding.message,
        "remedy": finding.remedy,
        "page": page_of(finding.code),
        "file": place.path if place else None,
        "line": place.line if place else None,
    }


def as_sarif(reports: Sequence[Report], root: Path | None = None) -> str:
    """Reports as one SARIF 2.1.0 log.

    Args:
        reports: The reports.
        root: The folder that paths are made relative to. Default: the current one.
    """
    base = (root or Path.cwd()).resolve()
    rules = list(RULES.values())
    numbers = {rule.code: number for number, rule in enumerate(rules)}
    results = [
        _result(report.subject, finding, numbers[finding.code], base, None)
        for report in reports
        for finding in report.findings
    ] + [
        _result(report.subject, each.finding, numbers[each.finding.code], base, each)
        for report in reports
        for each in report.suppressed
    ]
    driver = {"name": "agentkit check", "version": own_version(), "rules": [_descriptor(rule) for rule in rules]}
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"ROOT": {"uri": f"{base.as_uri()}/"}},
                "results": results,
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _descriptor(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.text, "markdown": rule.text},
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(graph: str, finding: Finding, number: int, base: Path, silenced: Suppressed | None) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": number,
        "level": finding.severity,
        "message": {"text": f"{_sentence(finding)} Mend it: {finding.remedy}."},
        "locations": [_location(graph, finding, base)],
        "partialFingerprints": {"graphNodeRule/v1": f"{graph}:{finding.subject}:{finding.code}"},
    }
    if silenced is not None:
        result["suppressions"] = [{"kind": "inSource", "justification": silenced.because}]
    return result


def _location(graph: str, finding: Finding, base: Path) -> dict[str, Any]:
    name = f"{graph}/{finding.subject}" if finding.node or finding.edge else graph
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": name, "kind": "function"}]}
    if finding.place is not None:
        location["physicalLocation"] = {
            "artifactLocation": _artifact(finding.place.path, base),
            "region": {"startLine": finding.place.line},
        }
    return location


def _artifact(path: str, base: Path) -> dict[str, str]:
    whole = Path(path).resolve()
    if whole.is_relative_to(base):
        return {"uri": whole.relative_to(base).as_posix(), "uriBaseId": "ROOT"}
    return {"uri": whole.as_uri()}


def own_version() -> str:
    """The version of agentkit that is installed; `0` in a checkout that is not."""
    try:
        return version("agentkit")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "0"
