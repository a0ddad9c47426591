"""The client's side of the protocol against real stores: whole storms on the memory world, in virtual time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from stormctl.runtime.density import seq_problem, slot_gap
from stormctl.runtime.rules import OnConflict, Rules
from tests.storm import stage
from tests.storm.stage import Latency, Seen

INPUT = {"rounds": 2, "width": 4, "jitter_buckets": 7}
SEEDS = (1, 2, 3)


def storms(patch: pytest.MonkeyPatch, condition: str, *, batch_atomic: bool = False, **rules: Any) -> list[Seen]:
    """Three step-storms on a slow store under a condition and rules."""
    named = stage.condition_named
    patch.setattr(stage, "condition_named", lambda name: replace(named(name), batch_atomic=batch_atomic))
    patch.setattr(stage, "Rules", partial(Rules, batch_atomic=batch_atomic, **rules))
    return [
        stage.storm("step-storm", condition, "dispenser", seed=seed, latency=Latency(), cap_s=120, **INPUT)
        for seed in SEEDS
    ]


def counted(seen: list[Seen]) -> Counter[str]:
    """The notes of all deliveries of all runs."""
    total: Counter[str] = Counter()
    for one in seen:
        for delivery in one.journal:
            total.update(delivery["notes"])
    return total


def completed(seen: list[Seen]) -> bool:
    return all(one.row is not None and one.row.status == "completed" for one in seen)


@pytest.mark.parametrize("batch_atomic", [False, True])
@pytest.mark.parametrize("condition", ["seq-final", "in-band"])
def test_under_a_fence_every_refused_delivery_finds_what_it_lacked(
    monkeypatch: pytest.MonkeyPatch, condition: str, batch_atomic: bool
) -> None:
    seen = storms(monkeypatch, condition, batch_atomic=batch_atomic)
    notes = counted(seen)
    assert completed(seen)
    assert notes["restart"] > 0
    assert notes["restart.grew"] == notes["restart"]
    assert (notes["stalled"], notes["exhausted"], notes["reread"]) == (0, 0, 0)
    assert all(seq_problem(one.log.events) is None for one in seen)


def test_the_writes_of_a_suspension_as_one_are_refused_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        single = counted(storms(patch, "seq-final"))
    with monkeypatch.context() as patch:
        whole = counted(storms(patch, "seq-final", batch_atomic=True))
    assert whole["restart"] < single["restart"]


def test_writers_that_tell_nothing_are_never_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted(storms(monkeypatch, "seq-final", send_snapshot=False))["behind"] == 0


def test_on_slots_writers_learn_what_they_skipped_and_no_view_has_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = storms(monkeypatch, "slots-link")
    notes = counted(seen)
    assert notes["report"] > 0
    assert (notes["behind"], notes["reread"]) == (0, 0)
    assert all(slot_gap(one.log.events) is None for one in seen)
    codes = {None if one.row is None else one.row.error_code for one in seen}
    assert "WORLD_CONTRACT_ERROR" not in codes


def test_under_a_guard_the_first_refusal_of_a_delivery_is_mended_by_its_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = counted(storms(monkeypatch, "guard"))
    assert notes["restart.delta.used"] > 0
    assert notes["restart.delta.used"] == notes["restart.inline-delta"]
    assert notes["restart.delta.bad"] == 0


def test_under_a_fence_creates_that_exist_already_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = counted(storms(monkeypatch, "seq-final", on_conflict=OnConflict.COMPARE))
    assert notes["conflict"] > 0
    assert notes["conflict.same"] == notes["conflict"]


def test_without_one_some_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = counted(storms(monkeypatch, "slots-link", on_conflict=OnConflict.COMPARE))
    assert notes["conflict.different"] > 0
