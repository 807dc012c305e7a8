"""`make bench-before-after`: the simulated shop and model do what the faults say, the same each time."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec

import pytest

from bench.before_after import HEAD, MOST, Agentkit, Bench, Classic, available, work
from bench.shop import Conversation, Faults

NONE = Faults(repeat=0, malformed=0, failing=0, stuck=0)
STUCK = Faults(repeat=0, malformed=1, failing=0, stuck=1)
FLAKY = Faults(repeat=0, malformed=0, failing=0.5, stuck=0)

bare = Agentkit()


def test_without_faults_every_conversation_is_solved_once() -> None:
    outcome = work(bare, NONE, range(5), 1)
    assert (outcome.solved, outcome.endless, outcome.stopped, outcome.twice, outcome.dangling) == (5, 0, 0, 0, 0)
    assert outcome.executions == 15  # the second turn finds in the history what the first has looked up


def test_a_model_that_is_stuck_goes_round_for_ever_unless_a_gate_stops_it() -> None:
    endless = work(bare, STUCK, range(3), 1)
    assert (endless.endless, endless.stopped) == (3, 0)
    gated = work(Agentkit("Gates"), STUCK, range(3), 1)
    assert (gated.endless, gated.stopped) == (0, 3)
    assert gated.tokens < endless.tokens


def test_an_effect_that_timed_out_may_be_made_twice() -> None:
    assert work(bare, FLAKY, range(40), 1).twice > 0


def test_the_same_seed_gives_the_same() -> None:
    assert work(bare, FLAKY, range(5), 3) == work(bare, FLAKY, range(5), 3)
    assert Conversation(1, 2, FLAKY).chance(0.5, "x") == Conversation(1, 2, FLAKY).chance(0.5, "x")


def test_a_chance_is_as_often_as_its_rate() -> None:
    hits = sum(Conversation(1, number, FLAKY).chance(0.3, "x") for number in range(2000))
    assert 500 < hits < 700


def test_the_stack_has_what_this_version_has() -> None:
    assert available()[0] == "Gates"


def test_the_table_has_a_cell_for_each_column() -> None:
    assert len(work(bare, NONE, range(1), 1).cells()) == len(HEAD)


@pytest.mark.skipif(not find_spec("langchain_classic"), reason="langchain-classic is not installed (extra: bench)")
def test_the_classic_loop_forgets_what_it_looked_up_and_ends_at_its_limit() -> None:
    outcome = work(Classic(), NONE, range(3), 1)
    assert (outcome.solved, outcome.executions) == (3, 15)
    conversation = Conversation(1, 0, STUCK)
    with conversation.present():
        Classic()(conversation)
    assert conversation.longest_turn == MOST


def test_processes_share_a_work_list_without_changing_what_comes_out() -> None:
    with ProcessPoolExecutor(1) as pool:
        [shared] = Bench(pool, 7, 1, chunk=3).outcomes([Agentkit()], FLAKY)
    assert shared.cells() == work(bare, FLAKY, range(7), 1).cells()
