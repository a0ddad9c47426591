"""Whole storms in virtual time on the memory world: workers that overlap, a pump that presses, one run at a time."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest

from stormctl.engine.door import Outcome
from stormctl.engine.engines import engine_for
from stormctl.history import EventLog, kinds
from tests.storm.stage import Latency, Seen, storm

SMALL: dict[str, dict[str, Any]] = {
    "step-storm": {"rounds": 2, "width": 4, "jitter_buckets": 7},
    "hook-storm": {"rounds": 2, "width": 4, "hook_resume_stagger_ms": 900.0},
    "capture-step-storm": {"rounds": 2, "width": 4},
    "capture-hook-storm": {"rounds": 2, "width": 4},
}
OLD, NEW = ("main", "nets"), ("seq-final", "dispenser")
SLOW = Latency()
SEEDS = range(5)
#: The scenarios whose small form a slow store corrupts in about three runs of four.
FRAGILE: dict[str, dict[str, Any]] = {
    "step-storm": {"rounds": 2, "width": 5, "jitter_buckets": 7},
    "hook-storm": {"rounds": 2, "width": 4, "resume": "burst"},
}

every = pytest.mark.parametrize("scenario", SMALL)


@cache
def sound(scenario: str, seed: int = 0) -> Seen:
    """One run of the new pair with the delays of production."""
    return storm(scenario, *NEW, seed=seed, **SMALL[scenario])


@cache
def slowed(scenario: str, condition: str, generation: str, seed: int) -> Seen:
    """One run on a slow store."""
    return storm(scenario, condition, generation, seed=seed, latency=SLOW, **FRAGILE[scenario])


def creates(log: EventLog) -> Counter[str]:
    """How often each step (by name) and everything else (by type) was created."""
    return Counter(event.short_name or event.type for event in log if event.type in kinds.CREATES)


def repeats(log: EventLog) -> list[str | None]:
    """The ids of entities that were created more than once."""
    seen = Counter(event.correlation_id for event in log if event.type in kinds.CREATES)
    return [one for one, count in seen.items() if count > 1]


def shape(seen: Seen) -> list[tuple[str, int | None, str | None, int | None]]:
    """What makes two logs the same: types, ranks, ids and times."""
    return [(event.type, seen.log.rank(event), event.event_id, event.created_at) for event in seen.log]


class TestTheNewPair:
    @every
    def test_completes_with_a_ledger_that_adds_up(self, scenario: str) -> None:
        seen = sound(scenario)
        assert seen.row is not None
        assert seen.row.status == "completed"
        assert seen.code.check(seen.row.output, seen.input) is None

    @every
    def test_creates_exactly_what_the_stragglers_ask_for(self, scenario: str) -> None:
        seen = sound(scenario)
        assert seen.row is not None
        assert repeats(seen.log) == []
        wanted = seen.code.counts(seen.input, seen.code.stragglers(seen.row.output))
        assert creates(seen.log) == {name: count for name, count in wanted.items() if count}

    @every
    def test_has_winners_and_stragglers_or_it_would_prove_nothing(self, scenario: str) -> None:
        seen = sound(scenario)
        assert seen.row is not None
        assert 0 < seen.code.stragglers(seen.row.output) < seen.input.rounds * seen.input.width
        assert seen.pressure.resumes_sent > 0

    @every
    def test_has_dense_positions_and_ids_in_their_order(self, scenario: str) -> None:
        log = sound(scenario).log
        assert [event.position for event in log] == list(range(1, len(log) + 1))
        ids = [event.event_id or "" for event in log]
        assert ids == sorted(set(ids))

    @every
    def test_every_step_starts_and_ends_once(self, scenario: str) -> None:
        log = sound(scenario).log
        steps = {event.correlation_id for event in log if event.type == kinds.STEP_CREATED}
        for type in (kinds.STEP_STARTED, kinds.STEP_COMPLETED):
            assert Counter(event.correlation_id for event in log if event.type == type) == dict.fromkeys(steps, 1)

    @every
    def test_is_the_same_log_again_from_the_same_seed(self, scenario: str) -> None:
        again = storm(scenario, *NEW, seed=0, **SMALL[scenario])
        assert shape(again) == shape(sound(scenario))

    def test_is_another_log_from_another_seed(self) -> None:
        assert shape(sound("step-storm", 1)) != shape(sound("step-storm", 0))

    def test_leaves_an_audit_record_for_every_event(self) -> None:
        seen = sound("step-storm")
        recorded = {record.event_id for record in seen.audit if record.admitted}
        assert {event.event_id for event in seen.log} <= recorded

    def test_the_workers_journal_tells_of_overlapping_deliveries(self) -> None:
        seen = sound("step-storm")
        assert {row["run"] for row in seen.journal} == {seen.log.run_id}
        assert sum(row["passes"] for row in seen.journal) > len(seen.journal) / 4
        assert len({record.writer for record in seen.audit}) > seen.input.width


class TestTheOldPair:
    @every
    def test_also_completes_when_the_store_is_fast_for_nothing_is_late_then(self, scenario: str) -> None:
        seen = storm(scenario, *OLD, seed=0, storage_scale=0.01, **SMALL[scenario])
        assert seen.row is not None
        assert seen.row.status == "completed"
        assert seen.code.check(seen.row.output, seen.input) is None
        if not repeats(seen.log):
            wanted = seen.code.counts(seen.input, seen.code.stragglers(seen.row.output))
            assert creates(seen.log) == {name: count for name, count in wanted.items() if count}

    def test_is_the_same_log_again_from_the_same_seed(self) -> None:
        again = storm("step-storm", *OLD, seed=1, latency=SLOW, **FRAGILE["step-storm"])
        assert shape(again) == shape(slowed("step-storm", *OLD, 1))


@pytest.mark.parametrize("scenario", FRAGILE)
class TestASlowStore:
    def test_corrupts_runs_of_the_old_pair_one_after_another_and_none_of_the_new_one(self, scenario: str) -> None:
        old = [slowed(scenario, *OLD, seed) for seed in SEEDS]
        corrupted = [seen for seen in old if seen.row is not None and seen.row.error_code == "CORRUPTED_EVENT_LOG"]
        assert len(corrupted) >= 2
        for seed in SEEDS:
            row = slowed(scenario, *NEW, seed).row
            assert row is not None
            assert (seed, row.status) == (seed, "completed")

    def test_the_corrupted_logs_diverge_again_when_their_own_generation_replays_them(self, scenario: str) -> None:
        for seed in SEEDS:
            seen = slowed(scenario, *OLD, seed)
            if seen.row is None or seen.row.error_code != "CORRUPTED_EVENT_LOG":
                continue
            engine = engine_for(OLD[1], seen.code, seen.input)
            replay = next(engine.passes(seen.log, (len(seen.log) - 1,)))
            assert replay.outcome is Outcome.DIVERGED
            assert replay.divergence is not None
            assert f"the last divergence was at {replay.divergence.event_id}:" in (seen.row.error_message or "")

    def test_a_run_is_given_up_after_three_recovery_replays(self, scenario: str) -> None:
        for seed in SEEDS:
            seen = slowed(scenario, *OLD, seed)
            if seen.row is not None and seen.row.error_code == "CORRUPTED_EVENT_LOG":
                assert "replay diverged 4 times after 3 recovery replays" in (seen.row.error_message or "")
                assert sum(row["notes"].get("divergence", 0) for row in seen.journal) >= 4

    def test_the_new_pair_keeps_positions_dense_and_creates_nothing_twice(self, scenario: str) -> None:
        for seed in SEEDS:
            log = slowed(scenario, *NEW, seed).log
            assert [event.position for event in log] == list(range(1, len(log) + 1))
            assert repeats(log) == []


class TestPassesThatDiffer:
    """Payloads take another time to be read in every pass. The store is sound (seq-final), and slow."""

    SEEDS = (5, 6, 8)  # of the first ten, those whose run is corrupted under nets

    def storm(self, gen: str, seed: int, jitter_ms: int) -> Seen:
        return storm(
            "step-storm",
            "seq-final",
            gen,
            seed=seed,
            jitter_ms=jitter_ms,
            latency=Latency(often=0.05, median_ms=100.0),
            rounds=3,
            width=8,
            jitter_buckets=7,
            step_delay_ms=1900.0,
            step_delay_jitter_ms=350.0,
            cap_s=120,
        )

    def statuses(self, gen: str, jitter_ms: int) -> list[str]:
        rows = [self.storm(gen, seed, jitter_ms).row for seed in self.SEEDS]
        return ["" if row is None else row.error_code or row.status for row in rows]

    def test_leave_nets_a_residue_that_no_storage_condition_removes(self) -> None:
        assert self.statuses("nets", 1) == ["CORRUPTED_EVENT_LOG"] * 3

    def test_leave_the_dispenser_none(self) -> None:
        assert self.statuses("dispenser", 1) == ["completed"] * 3

    def test_are_the_cause_for_without_them_nets_completes_too(self) -> None:
        assert self.statuses("nets", 0) == ["completed"] * 3
