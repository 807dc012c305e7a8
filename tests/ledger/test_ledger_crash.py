"""Processes killed at every point around an effect, and resumed in a new one: never twice, never lost unnoticed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from agentkit.ledger import Ledger

PAID = ["paid 5", "paid 7"]


ALL: Final = bool(os.environ.get("AGENTKIT_ALL_CRASHES"))
"""Every tool at every point on both databases, some four times as many processes as in an ordinary run."""


def points(every: str, ordinary: str) -> pytest.MarkDecorator:
    """On which database, with which tool, a process is killed at which point: `database/tool/point`.

    Args:
        every: Tools, and points after a colon, that are crossed with both databases where all crashes are asked for.
        ordinary: What an ordinary run takes of them.
    """
    tools, dies = (part.split() for part in every.split(":"))
    crossed = [(url, tool, point) for url in ("sqlite", "postgres") for tool in tools for point in dies]
    chosen = crossed if ALL else [tuple(one.split("/")) for one in ordinary.split()]
    return pytest.mark.parametrize(("url", "tool", "dies"), chosen, indirect=["url"])


class Story:
    """One thread, its ledger and the world, over several processes."""

    def __init__(self, folder: Path, ledger: str, tool: str, processes: Any, **options: Any) -> None:
        self.ledger = ledger
        self._processes = processes
        self._world = folder / "world.db"
        self._order = {
            "world": str(self._world),
            "threads": str(folder / "threads.db"),
            "ledger": ledger,
            "tool": tool,
            **options,
        }
        with Ledger(ledger) as opened, opened.engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE payments (amount INTEGER)"))

    def goes(self, *, dies: str = "", starts: bool = False, **more: Any) -> dict[str, Any]:
        """Another process goes on with the thread."""
        said: dict[str, Any]
        (said,) = self._processes({**self._order, "dies": dies, "starts": starts, **more})
        assert "raised" not in said, said["raised"]
        return said

    @property
    def payments(self) -> list[int]:
        """What was paid, wherever."""
        with Ledger(self.ledger) as opened, opened.engine.begin() as connection:
            paid = list(connection.execute(sa.text("SELECT amount FROM payments")).scalars())
        if self._world.exists():
            with closing(sqlite3.connect(self._world)) as file:
                paid += [amount for (amount,) in file.execute("SELECT amount FROM payments")]
        return sorted(paid)

    @property
    def doubts(self) -> list[int]:
        with Ledger(self.ledger) as opened:
            return sorted(effect.args["amount"] for effect in opened.in_doubt())

    def at_once(self, number: int, **more: Any) -> list[dict[str, Any]]:
        """Several processes go on with the thread at the same time; some may lose, by name."""
        order = {**self._order, "dies": "", "starts": False, **more}
        said: list[dict[str, Any]] = self._processes(*[order] * number)
        return said

    def answered(self, *, dies: str = "") -> dict[str, Any]:
        """A person looks what was paid, answers every question accordingly, and another process goes on."""
        return self.goes(dies=dies, paid=self.payments)


@points("plain: before after unrecorded", "sqlite/plain/before sqlite/plain/unrecorded postgres/plain/after")
def test_a_killed_call_is_in_doubt_and_a_person_settles_it(
    url: str, tool: str, dies: str, tmp_path: Path, processes: Any
) -> None:
    story = Story(tmp_path, url, tool, processes)
    assert story.goes(dies=dies, starts=True)["killed"]
    happened = story.payments
    said = story.goes()
    assert said["last"] != "all paid"
    assert said["asked"], "one call at least was going on"
    assert sorted(said["asked"]) == story.doubts, "a person is asked what operators see"
    assert set(happened) <= set(said["asked"]), "what happened without a record is not lost unnoticed"
    assert set(story.payments) - set(happened) == {5, 7} - set(said["asked"]), "only what is in no doubt runs"
    assert story.answered()["last"] == "all paid"
    assert (story.payments, story.doubts) == ([5, 7], [])


@points("plain idempotent transactional: recorded", "sqlite/plain/recorded")
def test_what_was_recorded_is_given_again_and_not_executed(
    url: str, tool: str, dies: str, tmp_path: Path, processes: Any
) -> None:
    story = Story(tmp_path, url, tool, processes)
    assert story.goes(dies=dies, starts=True)["killed"]
    with Ledger(url) as opened:
        recorded = {effect.args["amount"] for effect in opened.effects(status="done")}
    assert recorded
    said = story.goes()
    assert not recorded & set(said["asked"])
    if said["asked"]:  # its sibling was going on when the process died
        said = story.answered()
    assert said["last"] == "all paid"
    assert {f"paid {amount}" for amount in recorded} <= set(said["texts"])
    assert story.payments == [5, 7]


@points("idempotent: before after unrecorded", "sqlite/idempotent/after")
def test_an_idempotent_call_is_made_again_with_the_same_key(
    url: str, tool: str, dies: str, tmp_path: Path, processes: Any
) -> None:
    story = Story(tmp_path, url, tool, processes)
    assert story.goes(dies=dies, starts=True)["killed"]
    said = story.goes()
    assert (said["texts"], said["last"]) == (PAID, "all paid")
    assert (story.payments, story.doubts) == ([5, 7], [])


@points(
    "transactional atransactional: before inside after unrecorded recorded",
    "sqlite/transactional/before sqlite/transactional/inside sqlite/transactional/after postgres/transactional/inside "
    "postgres/transactional/unrecorded sqlite/atransactional/inside sqlite/atransactional/after",
)
def test_in_a_shared_transaction_there_is_no_doubt_at_any_point(
    url: str, tool: str, dies: str, tmp_path: Path, processes: Any
) -> None:
    story = Story(tmp_path, url, tool, processes, uses="ainvoke" if tool == "atransactional" else "invoke")
    assert story.goes(dies=dies, starts=True)["killed"]
    said = story.goes()
    assert (said["texts"], said["last"]) == (PAID, "all paid")
    assert (story.payments, story.doubts) == ([5, 7], [])


def test_an_answer_is_for_one_attempt_so_its_crash_is_asked_about_again(tmp_path: Path, processes: Any) -> None:
    story = Story(tmp_path, f"sqlite:///{tmp_path / 'ledger.db'}", "plain", processes)
    assert story.goes(dies="before", starts=True)["killed"]
    story.goes()
    assert story.answered(dies="after")["killed"]
    for _ in range(2):  # the answer is stored in the thread, and must not be taken for one to the new question
        said = story.goes()
        assert said["asked"]
        assert sorted(said["asked"]) == story.doubts
        assert len(set(story.payments)) == len(story.payments)
    while said["asked"]:
        said = story.answered()
    assert said["last"] == "all paid"
    assert story.payments == [5, 7]


def test_a_resumed_turn_ends_as_an_uninterrupted_one(tmp_path: Path, processes: Any) -> None:
    stories = []
    for name in ("whole", "cut"):
        folder = tmp_path / name
        folder.mkdir()
        stories.append(Story(folder, f"sqlite:///{folder / 'ledger.db'}", "transactional", processes))
    whole, cut = stories
    expected = whole.goes(starts=True)
    assert cut.goes(dies="inside", starts=True)["killed"]
    assert cut.goes() == expected


def test_a_sub_agents_calls_are_protected_and_the_sub_agent_goes_on(tmp_path: Path, processes: Any) -> None:
    story = Story(tmp_path, f"sqlite:///{tmp_path / 'ledger.db'}", "transactional", processes, nested=True)
    assert story.goes(dies="after", starts=True)["killed"]
    said = story.goes()
    assert (said["texts"], said["last"]) == (["all paid"], "delegated")
    assert (story.payments, story.doubts) == ([5, 7], [])


@pytest.mark.parametrize(("tool", "url"), [("plain", "sqlite"), ("transactional", "postgres")], indirect=["url"])
def test_two_processes_that_resume_one_thread_do_not_both_execute(
    tool: str, url: str, tmp_path: Path, processes: Any
) -> None:
    """Each knows, or was told by a person, that the calls did not happen; each goes to make them."""
    story = Story(tmp_path, url, tool, processes)
    assert story.goes(dies="before", starts=True)["killed"]
    if tool == "plain":
        assert story.goes()["asked"]
        story.at_once(2, paid=story.payments)
    else:
        story.at_once(2)
    assert len(set(story.payments)) == len(story.payments)
    said = story.goes()
    while said["asked"]:
        said = story.answered()
    assert said["last"] == "all paid"
    assert story.payments == [5, 7]


def test_of_many_processes_that_race_for_one_effect_one_wins(url: str, processes: Any) -> None:
    said = processes(*({"does": "race", "ledger": url} for _ in range(8)))
    assert sorted(one["won"] for one in said) == [False] * 7 + [True]
