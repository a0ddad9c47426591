"""Each generation shows its own fault on the smallest log that has it, and the next one does not."""

from __future__ import annotations

from typing import Any

import pytest

from stormctl.engine.door import Outcome, Perturbation
from stormctl.engine.generations import GENERATIONS, generation
from stormctl.engine.strategies import KNOBS, Clock, Generation, Ids, Retires
from stormctl.errors import UsageError
from tests.engine import known_faults
from tests.engine.known_faults import FAULTS
from tests.engine.writing import engine, labels, opened, replay

NAMES = tuple(GENERATIONS)


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        pytest.param(fault, name, id=f"{fault.name} {name}")
        for fault in FAULTS
        for name in (*NAMES, *sorted(set(fault.wrong) - set(NAMES)))
    ],
)
def test_a_known_fault_is_shown_by_the_generations_that_had_it_and_by_no_other(fault, name):
    one = replay(fault.body, fault.log(), name, perturbation=fault.perturbation)
    assert labels(one) == fault.wrong.get(name, fault.right)
    for fact, value in fault.facts.get(name, {}).items():
        assert getattr(one, fact) == value
    if name not in fault.wrong:
        assert (one.undelivered, one.stalled) == (0, name == "queue" and "cannot be read" in fault.name)


class TestAnUnreadHookStarvesAPass:
    """Traffic to a hook that nobody reads keeps payloads being read, and an idle turn away (#3196)."""

    @pytest.mark.parametrize("name", NAMES[1:])
    @pytest.mark.parametrize("pokes", [20, 228])
    def test_for_as_long_as_it_lasts_but_for_the_deadline(self, name, pokes):
        went_on: list[float] = []

        async def body(wf, _input):
            wf.hook("poke")
            await wf.sleep(1000)
            went_on.append(wf._context.loop.now)
            await wf.step("next")

        built = opened().hook_created(0, "poke").wait_created(1).hook_received(0).wait_completed(1)
        for _ in range(pokes):
            built.hook_received(0)
        replay(body, built, name, perturbation=Perturbation(hydration_ms=5.0))
        if name == "unarmed":
            assert went_on[0] < 50
        else:
            assert went_on[0] > 5 * pokes


class TestABlockedBranch:
    """The last event is the launch of the third branch; without it, that branch draws nothing (#3696)."""

    @staticmethod
    def flips(name: str) -> list[tuple[int, str, str]]:
        log = known_faults.blocked_branch_log().log()
        shorter, longer = engine(known_faults.blocked_branch, name).passes(log, [len(log) - 1, len(log)])
        return [
            (was.rank, was.label, now.label)
            for was, now in zip(shorter.draws, longer.draws, strict=False)
            if was.label != now.label
        ]

    @pytest.mark.parametrize("name", ["parked-idle", "nets", "dispenser-v1", "dispenser"])
    def test_takes_the_rank_of_its_sibling(self, name):
        assert self.flips(name) == [(9, "step:finalize", "wait")]

    @pytest.mark.parametrize("name", ["turnstile", "rearm", "registered"])
    def test_does_not_since_the_turnstile(self, name):
        assert self.flips(name) == []

    @pytest.mark.parametrize("ids", ["per-kind", "call-site"])
    def test_does_no_harm_when_an_id_is_no_ordinal_of_the_run(self, ids):
        log = known_faults.blocked_branch_log().log()
        small = engine(known_faults.blocked_branch, "nets")
        renamed = engine(known_faults.blocked_branch, f"nets[ids={ids}]")
        written = self.renamed_log(log, small, renamed)
        shorter, longer = renamed.passes(written, [len(written) - 1, len(written)])
        called = {draw.id: draw.label for draw in shorter.draws}
        assert all(called.get(draw.id, draw.label) == draw.label for draw in longer.draws)

    @staticmethod
    def renamed_log(log: Any, small: Any, renamed: Any) -> Any:
        """The same log with the ids of the other scheme."""
        from dataclasses import replace

        from stormctl.history import EventLog

        empty = EventLog((), log.run_id)
        (old,), (new,) = small.passes(empty, [0]), renamed.passes(empty, [0])
        ids = {was.id: now.id for was, now in zip(old.draws, new.draws, strict=True)}
        events = [replace(event, correlation_id=ids.get(event.correlation_id)) for event in log]
        return EventLog(events, log.run_id)


class TestALateClaimOnARetainedSession:
    """The payload's barrier was retired when the session suspended; the read that claims it comes later (#3879)."""

    @staticmethod
    def draws(name: str) -> tuple[list[str], list[str]]:
        """What a session drew that was kept, and what a cold replay of the same log draws."""
        begun = known_faults.late_claim_log()
        whole = known_faults.late_claim_log().step_completed(1).step_completed(2)
        session = engine(known_faults.late_claim, name).open(begun.log())
        kept = session.extend(whole.events[len(begun.events) :])
        session.close()
        return labels(kept)[3:], labels(replay(known_faults.late_claim, whole, name))[3:]

    def test_is_overtaken_under_the_turnstile(self):
        kept, cold = self.draws("turnstile")
        assert cold == ["step:after the hook", "step:after the second"]
        assert kept == ["step:after the second"]

    @pytest.mark.parametrize("name", ["nets", "dispenser", "rearm", "registered"])
    def test_is_in_order_before_it_and_since_rearming(self, name):
        kept, cold = self.draws(name)
        assert kept == cold == ["step:after the hook", "step:after the second"]


def later() -> Any:
    """A log whose events are later than the time of its run id, where the clock begins."""
    return opened(step_ms=10_000_000)


class TestTheClock:
    """A wait drawn in the cascade of one result must not be due by the time of a later one (#4213)."""

    @staticmethod
    async def body(wf, _input):
        async def waiting():
            await wf.step("first")
            wf.sleep(1000)

        async def working():
            await wf.step("second")

        await wf.all([waiting(), working()])
        await wf.step("end")

    def due(self, name: str, results: int) -> int:
        built = later().step_created(0, "first").step_created(1, "second").step_completed(0)
        if results > 1:
            built.step_completed(1)
        one = replay(self.body, built, name)
        due = next(item.resume_at for item in one.pending if item.kind == "wait")
        assert due is not None
        return due

    def test_runs_ahead_of_what_was_delivered_when_consumption_moves_it(self):
        assert self.due("rearm", 2) > self.due("rearm", 1)

    @pytest.mark.parametrize("name", ["rearm[clock=delivered]", "4213", "registered", "nets[clock=delivered]"])
    def test_is_the_same_in_every_longer_log_when_delivery_moves_it(self, name):
        assert self.due(name, 2) == self.due(name, 1)

    def test_is_not_moved_by_a_create_when_delivery_moves_it(self):
        async def body(wf, _input):
            await wf.step("first")
            return wf.now()

        built = later().step_created(0, "first").step_started(0).step_completed(0)
        completed = built.events[-1].created_at
        built.attr_set()
        assert replay(body, built, "rearm[clock=delivered]").value == completed


class TestIds:
    @staticmethod
    async def body(wf, more):
        if more:
            wf.sleep(5)
        wf.hook("door")
        await wf.all([wf.step("a", 1), wf.step("a", 1), wf.step("b", 2), wf.sleep(9)])

    def ids(self, scheme: str, *, more: bool) -> list[str | None]:
        one = replay(self.body, opened(), f"dispenser[ids={scheme}]", input=more)
        return [draw.id for draw in one.draws[1 if more else 0 :]]

    def test_one_draw_more_renames_all_that_follow_when_ids_are_ordinals(self):
        few, many = self.ids("ordinal", more=False), self.ids("ordinal", more=True)
        assert all(one != other for one, other in zip(few, many, strict=True))

    def test_a_wait_more_renames_waits_only_when_each_kind_is_counted(self):
        few, many = self.ids("per-kind", more=False), self.ids("per-kind", more=True)
        assert few[:4] == many[:4]
        assert few[4] == f"wait_{1:026d}"
        assert many[4] == f"wait_{2:026d}"
        assert few[1:4] == [f"step_{count:026d}" for count in (1, 2, 3)]

    def test_nothing_is_renamed_when_an_id_says_where_it_was_called(self):
        few = self.ids("call-site", more=False)
        assert few == self.ids("call-site", more=True)
        assert len(set(few)) == len(few)

    @pytest.mark.parametrize("scheme", list(Ids))
    def test_a_log_is_read_back_by_the_scheme_that_wrote_it(self, scheme):
        from dataclasses import replace

        async def body(wf, _input):
            value = await wf.step("work", 1)
            await wf.sleep(1000)
            return value

        name = f"rearm[ids={scheme}]"
        first, second = (draw.id for draw in replay_draws(body, name))
        built = opened().step(0, "work", 1).wait_created(1).wait_completed(1)
        built.events[2:5] = [replace(event, correlation_id=first) for event in built.events[2:5]]
        built.events[5:] = [replace(event, correlation_id=second) for event in built.events[5:]]
        assert replay(body, built, name).outcome is Outcome.COMPLETED
        other = "per-kind" if scheme is not Ids.PER_KIND else "ordinal"
        assert replay(body, built, f"rearm[ids={other}]").outcome is Outcome.DIVERGED


def replay_draws(body: Any, name: str) -> list[Any]:
    """Both draws of a workflow that waits for the first before it makes the second."""

    async def both(wf, _input):
        wf.step("work", 1)
        wf.sleep(1000)
        await wf.step("end")

    return list(replay(both, opened(), name).draws[:2])


class TestNames:
    @pytest.mark.parametrize(
        ("number", "name"),
        [
            (2171, "opposite"),
            (2185, "opposite"),
            (3139, "transitive"),
            (3198, "parked-idle"),
            (3196, "unarmed"),
            (3406, "nets"),
            (3554, "dispenser"),
            (3700, "turnstile"),
            (3879, "rearm"),
            (4215, "registered"),
            (4213, "rearm[clock=delivered]"),
            (3301, "dispenser[ids=per-kind]"),
            (3179, "dispenser[ids=call-site]"),
        ],
    )
    def test_a_pull_request_stands_for_what_it_made(self, number, name):
        assert generation(str(number)).name == name
        assert generation(f"#{number}") is generation(str(number))

    def test_a_name_may_change_knobs_and_says_which(self):
        changed = generation("nets[ids=call-site, clock=delivered]")
        assert changed.name == "nets[clock=delivered,ids=call-site]"
        assert (changed.clock, changed.ids, changed.retires) == (Clock.DELIVERED, Ids.CALL_SITE, Retires.NETS)
        assert generation(changed.name) == changed

    def test_a_change_that_changes_nothing_is_none(self):
        assert generation("nets[clock=consumed]") is GENERATIONS["nets"]

    def test_a_pull_request_may_change_knobs_further(self):
        assert generation("4213[ids=per-kind]").name == "rearm[clock=delivered,ids=per-kind]"

    @pytest.mark.parametrize("name", NAMES)
    def test_every_generation_is_known_by_its_name(self, name):
        assert generation(name) is GENERATIONS[name]

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("turnstyle", "there is no generation 'turnstyle'. Did you mean 'turnstile'?"),
            ("9999", "no generation was made by pull request 9999. Known are 2171, 2185,"),
            ("nets[clok=delivered]", "'clok=delivered' changes no knob of a generation. Did you mean 'clock'?"),
            ("nets[clock]", "'clock' changes no knob of a generation."),
            ("nets[]", "'' changes no knob of a generation."),
            ("nets[clock=never]", "clock cannot be 'never'. It is one of consumed, delivered."),
            ("nets[lingers=maybe]", "lingers cannot be 'maybe'. It is one of yes, no."),
            ("nets[clock=delivered", "there is no generation 'nets[clock=delivered'."),
            ("", "there is no generation ''."),
        ],
    )
    def test_a_bad_name_is_answered_with_what_there_is(self, name, said):
        with pytest.raises(UsageError) as bad:
            generation(name)
        assert f"{bad.value}. {bad.value.remedy}".startswith(said)

    def test_every_knob_is_listed(self):
        for one in GENERATIONS.values():
            assert tuple(one.strategies()) == KNOBS
        assert GENERATIONS["unarmed"].strategies()["lingers"] == "yes"

    def test_a_generation_says_what_it_fixed_and_left(self):
        for one in GENERATIONS.values():
            assert isinstance(one, Generation)
            assert one.fixed
            assert one.leaves
            assert not one.fixed.endswith(".")
