"""Every class of engine determinism: a log that must be named it, and a twin that must not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stormctl.engine.door import Perturbation
from stormctl.explain import Answer, Explanation, explain
from stormctl.explain.taxonomy import classes
from stormctl.history import RunRow
from stormctl.testing import LogBuilder
from tests.engine.known_faults import (
    YEAR,
    buffered_claim,
    buffered_race,
    late_claim,
    late_claim_log,
    neighbours,
    unread,
)
from tests.explain.overlap import Overlap, plan
from tests.explain.seeded import around_the_flip, busy, quiet_log

ENGINE = {row.name for row in classes() if row.group.value == "engine determinism"}


def opened() -> LogBuilder:
    return LogBuilder().run_created("small").run_started()


def told(made: Overlap, body: Any, generation: str | None = None, **capture: Any) -> Explanation:
    data = {} if generation is None else {"generation": generation}
    return explain(replace(made.capture(**capture), data=data), plan(body))


#: the class, the generation that writes, a seed whose quiet log flips under it, and the pull request
FLIPS = [
    ("hop-race", "queue", 9, 2171),
    ("step-order", "opposite", 1, 3139),
    ("idle-collapse", "transitive", 30, 3198),
    ("buffered-claim", "parked-idle", 6, 3406),
    ("net-order-flip", "nets", 17, 3554),
    ("blocked-branch", "nets", 42, 3700),
    ("blocked-branch", "dispenser", 42, 3700),
    ("late-claim", "turnstile", 31, 3879),
]


class TestTwoWritersAroundAFlip:
    @pytest.mark.parametrize("stale_first", [True, False])
    @pytest.mark.parametrize(("name", "generation", "seed", "pull"), FLIPS)
    def test_are_named_by_what_closed_the_flip(
        self, name: str, generation: str, seed: int, pull: int, stale_first: bool
    ) -> None:
        found = told(around_the_flip(seed, generation, stale_first=stale_first), busy, generation)
        assert found.answer is Answer.EXPLAINED
        assert found.named is not None
        assert (found.named.name, found.named.weight, found.written_by) == (name, "shown", generation)
        assert pull in found.named.closed_by
        assert found.today is not None
        assert found.today.would == "no"

    @pytest.mark.parametrize(("name", "generation", "seed", "pull"), FLIPS)
    def test_are_nothing_of_the_kind_under_the_newest(self, name: str, generation: str, seed: int, pull: int) -> None:
        log = quiet_log(seed, "registered")
        made = Overlap(busy, LogBuilder().edited(lambda events: events.extend(log.events[:34])), "registered")
        made.builder._names = {log.rank(one): one.name for one in log if one.name is not None}  # type: ignore[misc]
        stale, fresh = made.read(made.length - 1), made.read()
        made.write(fresh)
        made.write(stale)
        found = told(made, busy, "registered", failed=False)
        assert found.named is None or found.named.name not in ENGINE
        assert found.answer is not Answer.EXPLAINED
        assert found.guilty is None

    def test_the_guilty_write_and_both_bindings_are_told(self) -> None:
        made = around_the_flip(42, "nets", stale_first=True)
        found = told(made, busy, "nets")
        assert found.guilty is not None
        assert found.guilty.position - 1 in made.truth
        assert found.guilty.writer is not None
        assert found.bindings
        ranks = {(pair.one.rank, pair.one.label) for pair in found.bindings}
        ranks |= {(pair.other.rank, pair.other.label) for pair in found.bindings}
        assert len(ranks) > 1
        assert found.story[0].word == "first"
        assert "however" in [beat.word for beat in found.story]


class TestAHooksRegistration:
    async def body(self, wf: Any, _input: Any) -> None:
        wf.hook("poke")

        async def waiting() -> None:
            await wf.sleep(1000)
            await wf.step("after the wait")

        async def asking() -> None:
            await wf.hook("door").conflict()
            await wf.step("after the registration")

        wf.sleep(YEAR)
        await wf.all([waiting(), asking()])

    def two_writers(self, generation: str) -> Overlap:
        log = opened().hook_created(0, "poke").wait_created(1, YEAR).wait_created(2)
        made = Overlap(self.body, log.hook_received(0).wait_completed(2).hook_created(3, "door"), generation)
        stale, fresh = made.read(made.length - 1), made.read()
        made.write(stale)
        made.write(fresh)
        return made

    def test_is_named_where_two_writers_lie_around_it(self) -> None:
        found = told(self.two_writers("rearm"), self.body, "rearm")
        assert found.named is not None
        assert (found.named.name, found.named.closed_by) == ("hook-registration", (4215,))

    def test_is_not_where_it_keeps_to_the_order_of_the_log(self) -> None:
        found = told(self.two_writers("registered"), self.body, "registered", failed=False)
        assert found.named is None
        assert found.guilty is None


class TestACache:
    def writer(self, perturbation: Perturbation) -> Overlap:
        log = opened().wait_created(0, YEAR).wait_created(1).step_created(2, "work").step_started(2)
        made = Overlap(neighbours, log.wait_completed(1).step_completed(2, "done"), "opposite")
        made.write(made.read(perturbation=perturbation))
        return made

    def test_that_was_warm_explains_what_no_plain_pass_asks_for(self) -> None:
        found = told(self.writer(Perturbation(hydration_ms=2.0, warm=100)), neighbours, "opposite")
        assert found.named is not None
        assert (found.named.name, found.named.closed_by) == ("cold-or-warm", (3139,))
        assert "late-commit-hole" in [one.name for one in found.also], "a hidden event would look the same"

    def test_that_was_cold_leaves_nothing_to_explain(self) -> None:
        found = told(self.writer(Perturbation()), neighbours, "opposite", failed=False)
        assert found.guilty is None
        assert found.named is None


class TestARunThatFailedOverASoundLog:
    def log(self) -> Overlap:
        log = opened().hook_created(0, "door").step_created(1, "work").step_started(1).wait_created(2)
        made = Overlap(buffered_claim, log.hook_received(0).wait_completed(2).step_completed(1), "nets")
        made.write(made.read())
        return made

    @pytest.mark.parametrize(
        ("generation", "name", "pull"),
        [("parked-idle", "buffered-claim-on-replay", 3406), ("turnstile", "late-claim-on-replay", 3879)],
    )
    def test_is_named_by_the_generation_that_cannot_follow_it(self, generation: str, name: str, pull: int) -> None:
        found = told(self.log(), buffered_claim, generation)
        assert found.answer is Answer.EXPLAINED
        assert found.named is not None
        assert (found.named.name, found.named.weight) == (name, "shown")
        assert pull in found.named.closed_by

    def test_is_open_where_nobody_says_which_engine_ran_it(self) -> None:
        found = told(self.log(), buffered_claim)
        assert found.answer is Answer.OPEN
        assert found.named is not None
        assert found.named.weight == "fits"

    def test_says_nothing_of_the_kind_while_the_run_lives(self) -> None:
        found = told(self.log(), buffered_claim, failed=False)
        assert found.named is None

    def test_of_an_older_generation_was_read_by_another(self) -> None:
        created = opened().hook_created(0, "door").wait_created(1).step_created(2, "work").step_started(2)
        made = Overlap(buffered_race, created.hook_received(0).wait_completed(1).step_completed(2), "parked-idle")
        made.write(made.read())
        found = told(made, buffered_race, "parked-idle")
        assert found.named is not None
        assert found.named.name == "other-generation"
        assert found.today is not None
        assert found.today.would == "no"
        alive = told(made, buffered_race, "parked-idle", failed=False)
        assert alive.named is None


class TestASessionThatWasKept:
    def log(self) -> LogBuilder:
        return late_claim_log().step_started(1).step_started(2).step_completed(1).step_completed(2)

    def test_reads_a_payload_too_late_where_every_cold_replay_is_sound(self) -> None:
        found = told(Overlap(late_claim, self.log()), late_claim, "turnstile")
        assert found.answer is Answer.EXPLAINED
        assert found.named is not None
        assert (found.named.name, found.named.closed_by) == ("late-claim-in-session", (3879,))
        assert "draws step:after the second under rank 3" in found.named.evidence[0]

    @pytest.mark.parametrize("generation", ["rearm", "registered"])
    def test_does_not_since_rearming(self, generation: str) -> None:
        found = told(Overlap(late_claim, self.log()), late_claim, generation)
        assert found.named is None
        assert found.answer is Answer.OPEN

    def test_is_not_looked_for_while_the_run_lives(self) -> None:
        found = told(Overlap(late_claim, self.log()), late_claim, "turnstile", failed=False)
        assert found.named is None


class TestARunThatStandsStill:
    def unread(self) -> LogBuilder:
        log = opened().hook_created(0, "poke").wait_created(1).wait_created(2, YEAR)
        return log.hook_received(0).hook_received(0).hook_received(0).wait_completed(1)

    def test_with_results_undelivered_suspended_too_early(self) -> None:
        found = told(Overlap(unread, self.unread()), unread, "dispenser-v1", failed=False)
        assert found.named is not None
        assert (found.named.name, found.answer) == ("early-suspension", Answer.EXPLAINED)

    def test_under_a_generation_that_delivers_them_did_not(self) -> None:
        found = told(Overlap(unread, self.unread()), unread, "dispenser", failed=False)
        assert found.named is None

    @pytest.mark.parametrize(("pokes", "named"), [(20, True), (3, False)])
    def test_behind_a_stream_of_payloads_starves(self, pokes: int, named: bool) -> None:
        log = opened().hook_created(0, "poke").step_created(1, "work").step_started(1).step_completed(1)
        for _ in range(pokes):
            log.hook_received(0)
        found = explain(log.capture(run=RunRow("running")))
        names = [one.name for one in (found.named, *found.also) if one is not None]
        assert ("starvation" in names) is named
        assert found.answer is Answer.NEEDS_WORKLOAD, "the log alone proves nothing"


class TestWhatTheLogAloneShows:
    def test_one_body_under_two_kinds_is_what_a_blocked_branch_leaves(self) -> None:
        found = explain(opened().step_created(9, "finalize").wait_created(9).capture())
        assert found.named is not None
        assert (found.named.name, found.named.weight) == ("two-kinds", "fits")
        twin = explain(opened().step_created(9, "finalize").wait_created(10).capture())
        assert twin.named is None

    def test_another_resume_time_at_the_end_of_a_wait(self) -> None:
        log = opened().wait_created(0)
        wrong = log.edited(lambda _events: None).wait_completed(0, resume_at=5, created_at=10**13)
        found = explain(wrong.capture())
        assert found.named is not None
        assert found.named.name == "reused-resume-time"
        assert explain(log.wait_completed(0).capture()).named is None

    def test_a_step_that_was_started_twice_and_lost(self) -> None:
        log = opened().step_created(0, "charge").step_started(0).step_started(0)
        found = explain(log.run_failed().capture())
        assert found.named is not None
        assert found.named.name == "inline-hang"
        ended = opened().step_created(0, "charge").step_started(0).step_started(0).step_completed(0)
        assert explain(ended.capture()).named is None
