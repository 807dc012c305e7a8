"""The public records that come with the example, in place of two services on the network."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TypedDict

__all__ = ["Cvss", "Record", "UnknownCve", "known", "record", "score"]


class Cvss(TypedDict):
    """A score as it was recorded."""

    version: str
    vector: str
    base_score: float
    base_severity: str


class Record(TypedDict):
    """What is published about a vulnerability."""

    cve_id: str
    published: str
    product: str
    vendor: str | None
    affected_versions: str
    weaknesses: list[str]
    summary: str
    references: list[str]
    source: str


class UnknownCve(LookupError):
    """There is no record of that name here."""

    def __init__(self, cve_id: str) -> None:
        super().__init__(f"no record of {cve_id!r}; there are {', '.join(known())}")


@cache
def _all() -> dict[str, dict[str, object]]:
    text = files("examples.cve_assessor").joinpath("data", "records.json").read_text(encoding="utf-8")
    return {entry["cve_id"]: entry for entry in json.loads(text)["records"]}


def known() -> list[str]:
    """The CVEs there are records of, oldest first."""
    return list(_all())


def record(cve_id: str) -> Record:
    """What the first service knows: everything but the score."""
    if cve_id not in _all():
        raise UnknownCve(cve_id)
    return {key: _all()[cve_id][key] for key in Record.__annotations__}  # type: ignore[return-value]


def score(cve_id: str) -> Cvss | None:
    """What the second service knows: the recorded score, if there is one."""
    if cve_id not in _all():
        raise UnknownCve(cve_id)
    return _all()[cve_id]["cvss"]  # type: ignore[return-value]
