"""CVSS 3.1: from what a text says of an attack to a vector, and from a vector to a score."""

from __future__ import annotations

from typing import Literal, TypedDict

from cvss import CVSS3

__all__ = ["Attack", "Scored", "read_attack", "scored", "vector_of"]


class Attack(TypedDict):
    """What has to be known of an attack to rate it."""

    local: bool
    """Whether the attacker needs an account on the machine."""
    hard: bool
    """Whether it needs luck or circumstances that the attacker does not control."""
    needs_user: bool
    """Whether somebody else has to do something, such as open a page."""
    effect: Literal["takeover", "disclosure", "outage"]


class Scored(TypedDict):
    """A vector and what it comes to."""

    vector: str
    score: float
    severity: str


_IMPACT = {"takeover": "C:H/I:H/A:H", "disclosure": "C:H/I:N/A:N", "outage": "C:N/I:N/A:H"}


def read_attack(summary: str) -> Attack:
    """Read a published summary. A rule of thumb: what comes of it is an estimate, and is called one."""
    text = summary.lower()
    discloses = any(word in text for word in ("collect", "learn the", "reads past"))
    exhausts = "exhausts" in text
    return {
        "local": "local user" in text,
        "hard": any(word in text for word in (" race ", "after a redirect")),
        "needs_user": any(word in text for word in ("html page", "after a redirect")),
        "effect": "outage" if exhausts else "disclosure" if discloses else "takeover",
    }


def vector_of(attack: Attack) -> str:
    """The base metrics of an attack."""
    reach = "AV:L" if attack["local"] else "AV:N"
    complexity = "AC:H" if attack["hard"] else "AC:L"
    privileges = "PR:L" if attack["local"] else "PR:N"
    interaction = "UI:R" if attack["needs_user"] else "UI:N"
    return f"CVSS:3.1/{reach}/{complexity}/{privileges}/{interaction}/S:U/{_IMPACT[attack['effect']]}"


def scored(vector: str) -> Scored:
    """The base score and severity of a vector, by the published formula."""
    rated = CVSS3(vector)
    return {"vector": vector, "score": float(rated.scores()[0]), "severity": rated.severities()[0]}
