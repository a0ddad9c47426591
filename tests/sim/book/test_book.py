"""The book: 41 scenarios, each red where the reference says that it is, and nowhere else."""

from __future__ import annotations

import pytest

from stormctl.sim.book import BOOK, ENTRIES, LATER_ONES, Entry, play_entry
from stormctl.sim.tape import parse, printed

RED = {
    "mint-ulid": [
        "stale-read-step-count-fork",
        "stale-read-equal-step-counts",
        "step-vs-step-fork",
        "step-vs-step-fork-fenced",
        "in-flight-before-decision",
        "in-flight-after-decision",
    ],
    "mint-slot": ["in-flight-before-decision", "in-flight-before-decision-counted", "in-flight-after-decision"],
    "append-only": [],
}


def ids(entry: Entry) -> str:
    return entry.id


def test_there_are_forty_one_and_no_two_of_one_name() -> None:
    assert len(BOOK) == 41
    assert len(ENTRIES) == len(BOOK) + len(LATER_ONES)


@pytest.mark.parametrize("world", RED)
@pytest.mark.parametrize("entry", BOOK, ids=ids)
def test_each_is_red_where_it_should_be(entry: Entry, world: str) -> None:
    played = play_entry(entry, world)
    assert played.passed is (entry.id not in RED[world]), played.problems


@pytest.mark.parametrize("world", RED)
def test_the_oracles_alone_find_the_same(world: str) -> None:
    red = [entry.id for entry in BOOK if play_entry(entry, world, expected=False).run.problems]
    assert red == RED[world]


#: what is wrong of the later ones where order is that of the commits, and the generation that mends it, if one does
LATER_RED = {
    "clock-after-race": ("ledger/rebound/step:soon/step:late", "registered"),
    "sleep-resumeat-recomputed": ("ledger/moved-wait", "registered"),
    "lost-step-dispatch": ("end/dormant", None),
}


@pytest.mark.parametrize("entry", LATER_ONES, ids=ids)
def test_the_later_ones_have_their_stated_result(entry: Entry) -> None:
    played = play_entry(entry, "append-only")
    assert played.missed == ()
    signature, mended = LATER_RED.get(entry.id, (None, None))
    assert played.passed is (signature is None), played.problems
    if signature is not None:
        assert signature in {problem.signature for problem in played.problems}
    if mended is not None:
        assert play_entry(entry, "append-only", generation_name=mended).passed


@pytest.mark.parametrize("entry", BOOK, ids=ids)
def test_each_script_is_followed_to_its_end_where_the_run_does_not_fail(entry: Entry) -> None:
    assert play_entry(entry, "append-only").missed == ()
    assert printed(parse(printed(parse(entry.script)))) == printed(parse(entry.script))


def test_a_script_that_cannot_be_followed_is_red_although_all_went_well() -> None:
    from dataclasses import replace

    entry = replace(ENTRIES["fork-hook-wins"], script="S:neverCalled: run to step_started committed")
    played = play_entry(entry, "append-only")
    assert [problem.signature for problem in played.problems] == ["expect/script"]


def test_an_entry_that_states_the_wrong_outcome_is_red() -> None:
    from dataclasses import replace

    wrong = replace(ENTRIES["parallel-steps"], output="left")
    assert [problem.signature for problem in play_entry(wrong, "append-only").problems] == ["expect/output"]


def test_the_unread_payload_was_red_before_the_barrier_knew_the_log() -> None:
    """Vercel/workflow #3406: under the engine of before, the result overtakes the wait that is ahead of it."""
    entry = ENTRIES["unclaimed-payload-under-fork"]
    assert play_entry(entry, "append-only", generation_name="nets").passed
    assert not play_entry(entry, "append-only", generation_name="opposite").passed
