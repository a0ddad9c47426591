"""What each condition does to a storm, in virtual time on the smallest plan that shows it, beside its closed twin."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

from tests.storm.stage import Latency, Seen, storm

#: Receipts faster than a writer can read the log and write: about one every 12 ms.
FLOOD: dict[str, Any] = {
    "rounds": 1,
    "width": 4,
    "jitter_buckets": 7,
    "poke_interval_ms": 10.0,
    "poke_jitter_ms": 5.0,
    "poke_max": 4000,
}


@cache
def flooded(condition: str) -> Seen:
    return storm("step-storm", condition, "dispenser", seed=2, cap_s=5.0, **FLOOD)


def work(*seen: Seen) -> Counter[str]:
    """What the runtime had to do, summed over journals."""
    total: Counter[str] = Counter()
    for one in seen:
        for row in one.journal:
            total.update({"restarts": row["restarts"], **row["notes"]})
    return total


def status(seen: Seen) -> str | None:
    return None if seen.row is None else seen.row.status


class TestATailFence:
    def test_lets_a_run_livelock_under_a_flood_of_receipts_and_the_work_shows_it(self) -> None:
        seen = flooded("seq-tail")
        assert status(seen) == "running"
        done = work(seen)
        assert done["restarts"] > 100
        assert done["reinvocation"] > 20
        assert done["refused"] >= done["restarts"]

    def test_which_a_decision_fence_does_not(self) -> None:
        seen = flooded("seq-final")
        assert status(seen) == "completed"
        assert work(seen)["restarts"] < 30


class TestAGateThatLooksAtFacts:
    def seen(self, condition: str) -> list[Seen]:
        slow = Latency()
        return [storm("hook-storm", condition, "nets", seed=seed, latency=slow, rounds=2, width=6) for seed in range(3)]

    def test_refuses_facts_for_nothing_and_the_work_counts_them(self) -> None:
        assert work(*self.seen("seq-decision-snap"))["useless"] > 0

    def test_which_one_that_looks_at_decisions_only_never_does(self) -> None:
        assert work(*self.seen("seq-final"))["useless"] == 0


class TestAdmissionAfterTheEffects:
    def seen(self, condition: str) -> list[Seen]:
        return [
            storm("step-storm", condition, "dispenser", seed=seed, cap_s=30.0, rounds=2, width=6, jitter_buckets=7)
            for seed in range(3)
        ]

    def test_leaves_a_row_without_its_event_and_the_run_is_wedged(self) -> None:
        assert "running" in {status(one) for one in self.seen("seq-buggy-admit")}

    def test_which_admission_before_any_effect_does_not(self) -> None:
        assert {status(one) for one in self.seen("seq-final")} == {"completed"}
