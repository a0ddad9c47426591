"""Every class of storage order and of concurrent writers: a log that must be named it, and a twin that must not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stormctl.engine.door import Create
from stormctl.explain import Answer, Explanation, explain
from stormctl.explain.batches import Batch
from stormctl.explain.concurrency import CLASSES
from stormctl.explain.conflicts import Clash, Conflict, Side
from stormctl.explain.creates import Created
from stormctl.explain.facts import Facts, Guilty
from stormctl.explain.hidden import View
from stormctl.explain.known import KnownWriter
from stormctl.explain.ranges import Ranges
from stormctl.history import AuditRecord, Event, ids, kinds
from stormctl.sweeps.plan import SweepPlan
from stormctl.sweeps.run import sweep_log
from stormctl.testing import START_MS, LogBuilder
from tests.explain.overlap import Overlap, plan


def opened(**fields: Any) -> LogBuilder:
    return LogBuilder(**fields).run_created("small").run_started()


def name_of(found: Explanation) -> str | None:
    return None if found.named is None else found.named.name


# -- a view with a hole ------------------------------------------------------------------------------------------------


async def race(wf: Any, _input: Any) -> None:
    """Two steps side by side; what follows is named by who came first."""

    async def branch(name: str) -> None:
        await wf.step(name)
        await wf.step(f"after {name}")

    await wf.all([branch("left"), branch("right")])


def side_by_side(*, hidden: tuple[int, ...] = ()) -> Overlap:
    """Both steps have ended, and a writer decides; ``hidden`` events it has not seen."""
    log = opened().step_created(0, "left").step_started(0).step_created(1, "right").step_started(1)
    made = Overlap(race, log.step_completed(0).step_completed(1), "registered")
    made.write(made.read(hidden=hidden), ranks=[2], hidden=hidden)
    return made


class TestAnEventThatItsWriterDidNotSee:
    def test_is_found_by_leaving_it_out(self) -> None:
        found = explain(side_by_side(hidden=(6,)).capture(), plan(race))
        assert (name_of(found), found.answer) == ("late-commit-hole", Answer.EXPLAINED)
        assert found.guilty is not None
        assert (found.guilty.position, found.guilty.label) == (9, "step:after right")
        assert found.guilty.writer is not None
        assert (found.guilty.writer.hidden, found.guilty.found_by) == ((7,), "hidden event")
        assert found.today is not None
        assert found.today.would == "yes", "no engine mends a view with a hole"
        assert "not 7 step_completed rank 0 step:left" in found.story[0].text

    def test_is_nobody_where_the_writer_saw_everything(self) -> None:
        found = explain(side_by_side().capture(failed=False), plan(race))
        assert (name_of(found), found.guilty) == (None, None)

    def test_shares_its_millisecond_with_the_one_before(self) -> None:
        made = side_by_side(hidden=(6,))
        log = made.builder
        ms = ids.ulid_ms(log.events[5].event_id or "")
        assert ms is not None
        at = log.changed(7, event_id=f"evnt_{ids.compose(ms, 700)}")
        made.builder = at
        assert name_of(explain(made.capture(), plan(race))) == "equal-ms-hole"

    async def hook_or_wait(self, wf: Any, _input: Any) -> None:
        hook = wf.hook("door")
        winner = await wf.race(hook.next().then(lambda _: "hook"), wf.sleep(1000).then(lambda _: "wait"))
        await wf.step(f"won by {winner}")

    @pytest.mark.parametrize(("hidden", "name"), [((4,), "insertion-before-used"), ((), None)])
    def test_is_a_payload_in_front_of_a_wait_that_was_used(self, hidden: tuple[int, ...], name: str | None) -> None:
        log = opened().hook_created(0, "door").wait_created(1).hook_received(0).wait_completed(1)
        made = Overlap(self.hook_or_wait, log, "registered")
        made.write(made.read(hidden=hidden), hidden=hidden)
        found = explain(made.capture(failed=bool(hidden)), plan(self.hook_or_wait))
        assert name_of(found) == name

    def test_is_told_by_the_audit_where_there_is_one(self) -> None:
        made = side_by_side(hidden=(6,))
        published = {record.event_id: record for record in made.audit}
        times = (*made.builder.published(1, 2, 3, 4, 5, 6, 8, 9, 7),)
        audit = [
            replace(record, writer="alice", snapshot=7) if record.event_id in published else record for record in times
        ]
        found = explain(made.builder.capture(audit=audit, run=made.capture().run), plan(race))
        assert name_of(found) == "late-commit-hole"
        assert found.guilty is not None
        assert found.guilty.writer is not None
        assert (found.guilty.found_by, found.guilty.writer.hidden) == ("audit", (7,))
        assert (found.guilty.writer.audit, found.guilty.writer.snapshot) == ("alice", 7)


# -- the log itself ----------------------------------------------------------------------------------------------------


def repeated_position() -> LogBuilder:
    return opened().step(0, "charge").changed(5, position=4)


def sealed(after_ms: int) -> LogBuilder:
    log = opened().step_created(0, "charge")
    return log.event(kinds.NOOP, created_at=(log.events[-1].created_at or 0) + after_ms)


def resumed_twice(*, same: bool) -> LogBuilder:
    log = opened().hook_created(0)
    return log.hook_received(0, resumeId="r1").hook_received(0, resumeId="r1" if same else "r2")


LOGS: list[tuple[str, LogBuilder, LogBuilder]] = [
    ("duplicate-positions", repeated_position(), opened().step(0, "charge")),
    ("staging-hole", opened().hook_created(0).hook_received(0).hook_received(0).without(4), opened().hook_created(0)),
    ("lost-position", opened().step(0, "charge").step(1, "ship").without(5), opened().step(0, "charge")),
    (
        "id-collision",
        opened(slots=True).step(0, "charge").changed(2, event_id=f"evnt_{ids.compose(START_MS, 2)}"),
        opened(slots=True).step(0, "charge"),
    ),
    (
        "lifecycle-inversion",
        opened().step(0, "charge").step_started(0),
        opened().step_created(0, "charge").step_started(0).step_started(0).step_completed(0),
    ),
    (
        "resume-after-dispose",
        opened().hook_created(0).hook_disposed(0).hook_received(0),
        opened().hook_created(0).hook_received(0).hook_disposed(0),
    ),
    ("duplicate-resume", resumed_twice(same=True), resumed_twice(same=False)),
    ("write-before-fence", opened().step_completed(0), opened().step(0, "charge")),
    ("created-twice", opened().step_created(0, "charge").repeated(3), opened().step_created(0, "charge")),
    (
        "two-names",
        opened().step_created(0, "charge").event(kinds.STEP_CREATED, 0, name="refund"),
        opened().step_created(0, "charge").step_created(1, "refund"),
    ),
]


class TestTheLogItself:
    @pytest.mark.parametrize(("name", "log", "twin"), LOGS, ids=[name for name, _, _ in LOGS])
    def test_is_named_and_its_twin_is_not(self, name: str, log: LogBuilder, twin: LogBuilder) -> None:
        found = explain(log.capture())
        named = {one.name for one in (found.named, *found.also) if one is not None}
        assert name in named
        assert found.answer is Answer.EXPLAINED
        sound = explain(twin.capture())
        assert name not in {one.name for one in (sound.named, *sound.also) if one is not None}
        assert sound.answer is Answer.NEEDS_WORKLOAD

    @pytest.mark.parametrize(("after_ms", "named"), [(1_500, True), (10, False)])
    def test_a_place_sealed_late(self, after_ms: int, named: bool) -> None:
        found = explain(sealed(after_ms).capture())
        assert (name_of(found) == "unsealed-slot") is named

    def test_late_publication_without_a_victim_is_told_as_that(self) -> None:
        log = opened().hook_created(0).hook_received(0).hook_disposed(0).run_completed()
        late = explain(log.capture(audit=log.published(1, 2, 4, 3, 5, 6)))
        assert late.named is not None
        assert (late.named.name, late.named.weight) == ("late-publication", "fits")
        assert name_of(explain(log.capture(audit=log.published()))) is None


# -- the audit's word --------------------------------------------------------------------------------------------------


def facts_of(made: Overlap, **fields: Any) -> Facts:
    capture = made.capture(audited=True)
    return replace(Facts(capture, sweep_log(capture, SweepPlan())), **fields)


def create_at(index: int, rank: int = 0, name: str = "charge") -> Created:
    return Created(index, index + 1, f"step_{rank}", rank, "step", name, Create.EAGER)


def signature(name: str) -> Any:
    return next(row.signature for row in CLASSES if row.name == name)


def conflict(one: Created, other: Created | None, lengths: tuple[int, int] = (4, 8)) -> Conflict:
    sides = [
        Side(f"writer {number}", length, 0, label, None, create)
        for number, length, label, create in (
            (1, lengths[0], "step:charge", one),
            (2, lengths[1], "step:refund", other),
        )
    ]
    return Conflict(Clash.RANK, *sides)


class TestTheAudit:
    def made(self) -> Overlap:
        log = opened().step_created(0, "a").step_started(0).step_created(1, "b").step_started(1).step_created(2, "c")
        return Overlap(race, log.step_created(3, "d").step_created(4, "e").step_created(5, "f"), "registered")

    def guilty(self, snapshot: int = 4) -> Guilty:
        create = create_at(7)
        return Guilty(create, View(4, ()), None, KnownWriter(create, "alice", snapshot, 4, ()), "prefix")

    @pytest.mark.parametrize(("snapshot", "holds"), [(4, True), (5, False)])
    def test_two_decisions_on_one_snapshot(self, snapshot: int, holds: bool) -> None:
        one, other = create_at(7), create_at(8)
        known = {7: KnownWriter(one, "alice", 4, 4, ()), 8: KnownWriter(other, "bob", snapshot, 4, ())}
        facts = facts_of(self.made(), conflicts=(conflict(one, other),), known=known)
        assert (signature("two-decisions-one-snapshot")(facts) is not None) is holds

    @pytest.mark.parametrize(("writer", "holds"), [("alice", True), ("bob", False)])
    def test_a_write_posted_again_after_a_refusal(self, writer: str, holds: bool) -> None:
        made = self.made()
        made.refused(7, "precondition: stale", writer=writer, snapshot=4)
        create = replace(create_at(7), correlation_id=made.builder.events[7].correlation_id or "")
        guilty = replace(self.guilty(), create=create)
        assert (signature("re-post")(facts_of(made, guilty=guilty)) is not None) is holds

    @pytest.mark.parametrize(("snapshot", "holds"), [(4, True), (6, False)])
    def test_the_sibling_of_a_refused_write(self, snapshot: int, holds: bool) -> None:
        made = self.made()
        made.refused(8, "precondition: stale", writer="alice", snapshot=snapshot)
        assert (signature("sibling-escape")(facts_of(made, guilty=self.guilty())) is not None) is holds

    @pytest.mark.parametrize(("count", "holds"), [(25, True), (3, False)])
    def test_receipts_that_were_fenced(self, count: int, holds: bool) -> None:
        made = self.made()
        for _ in range(count):
            made.refused(3, "precondition: stale", writer="w", snapshot=2, type=kinds.STEP_COMPLETED)
        assert (signature("facts-fenced")(facts_of(made)) is not None) is holds

    def test_a_decision_that_was_refused_is_no_fenced_receipt(self) -> None:
        made = self.made()
        for _ in range(25):
            made.refused(7, "precondition: stale", writer="w", snapshot=2)
        assert signature("facts-fenced")(facts_of(made)) is None


class TestWithoutAnEngineToBlame:
    def test_a_stale_writer_behind_foreign_decisions(self) -> None:
        made = TestTheAudit().made()
        stale, other = create_at(9), create_at(8)
        batches = (Batch("writer 1", (stale,), Ranges.of([4])),)
        facts = facts_of(made, conflicts=(conflict(stale, other),), batches=batches)
        match = signature("stale-complete-prefix")(facts)
        assert match is not None
        assert match.at == (4, 9)

    def test_a_fresh_writer_is_none(self) -> None:
        made = TestTheAudit().made()
        fresh, other = create_at(9), create_at(8)
        batches = (Batch("writer 1", (fresh,), Ranges.of([9])),)
        facts = facts_of(made, conflicts=(conflict(fresh, other, (9, 12)),), batches=batches)
        assert signature("stale-complete-prefix")(facts) is None


class TestInputs:
    async def body(self, wf: Any, _input: Any) -> None:
        await wf.all([wf.step("charge", index) for index in range(5)])

    def log(self, wrong: int) -> LogBuilder:
        return opened().step_created(3, "charge", 3).step_created(4, "charge", wrong)

    def test_a_step_recorded_with_another_input_than_every_replay_has(self) -> None:
        found = explain(self.log(7).capture(), plan(self.body))
        assert found.guilty is not None
        assert found.guilty.position == 4
        assert found.named is not None
        assert (found.named.name, found.named.weight) == ("swallowed-conflict", "fits")
        assert explain(self.log(4).capture(), plan(self.body)).guilty is None

    @pytest.mark.parametrize(("clash", "holds"), [(Clash.INPUT, True), (Clash.RANK, False)])
    def test_two_writers_and_two_inputs_are_a_swallowed_conflict(self, clash: Clash, holds: bool) -> None:
        made = TestTheAudit().made()
        one = replace(conflict(create_at(7), None), clash=clash)
        assert (signature("swallowed-conflict")(facts_of(made, conflicts=(one,))) is not None) is holds


def test_an_audit_record_of_another_run_is_not_a_writer_of_this_one() -> None:
    made = side_by_side()
    stranger = AuditRecord("wrun_x", "w", "step_created", "step_x", True, "", None, "evnt_x", 3, 1, 1, 1, 1)
    found = explain(made.builder.capture(audit=[stranger], run=made.capture(failed=False).run), plan(race))
    assert found.guilty is None


def test_an_event_without_an_id_of_the_runs_sequence_is_no_create() -> None:
    log = opened().attr_set(settle="1")
    log.events.append(Event(type=kinds.STEP_CREATED, run_id=log.run_id, position=4))
    assert explain(log.capture()).generations == ()
