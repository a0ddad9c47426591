"""One body: an id of the sequence stands for one entity."""

from __future__ import annotations

from collections.abc import Callable

from stormctl.history import Facet
from stormctl.sweeps import SweepResult, Verdict
from stormctl.testing import LogBuilder

Judge = Callable[..., SweepResult]


def test_entities_with_bodies_of_their_own_are_clean(judge: Judge) -> None:
    log = LogBuilder().hook_created(0).step(1, "settle").wait_created(2).attr_set(3).attr_set()
    assert judge("one-body", log).verdict is Verdict.CLEAN


def test_a_step_and_a_wait_with_one_body_are_two_draws_of_one_rank(judge: Judge) -> None:
    result = judge("one-body", LogBuilder().hook_created(0).step_created(9, "finalize").wait_created(9))
    (finding,) = result.findings
    assert result.verdict is Verdict.VIOLATED
    assert finding.message == "rank 9 is bound to 2 entities: step and wait"
    assert finding.witness == ("2 step_created rank 9 step:finalize", "3 wait_created rank 9 wait")


def test_a_step_with_two_names_is_told(judge: Judge) -> None:
    log = LogBuilder().hook_created(0).step(4, "step//./flows//release")
    (finding,) = judge("one-body", log.changed(3, name="step//./flows//recover")).findings
    assert finding.message == "rank 4 is bound to 2 names: release and recover"


def test_a_nameless_event_of_a_named_step_is_no_second_name(judge: Judge) -> None:
    log = LogBuilder().step(4, "release").changed(2, name=None)
    assert judge("one-body", log).verdict is Verdict.CLEAN


def test_an_event_that_speaks_of_another_kind_is_told(judge: Judge) -> None:
    log = LogBuilder().wait_created(2)
    (finding,) = judge("one-body", log.changed(1, type="step_created")).findings
    assert finding.key.startswith("one-body/wrong-kind/wait_")


def test_an_attribute_written_by_a_step_may_carry_the_id_of_its_run(judge: Judge) -> None:
    log = LogBuilder().event("attr_set", correlation_id="wrun_01KE0000000000000000000000")
    assert judge("one-body", log).verdict is Verdict.CLEAN


def test_ids_counted_per_kind_may_share_a_number(judge: Judge) -> None:
    first = "0" * 25 + "1"
    log = LogBuilder().event("step_created", correlation_id=f"step_{first}", name="a")
    log.event("wait_created", correlation_id=f"wait_{first}")
    assert judge("one-body", log).verdict is Verdict.CLEAN


def test_without_ids_it_is_unknown(judge: Judge) -> None:
    result = judge("one-body", LogBuilder().step(0, "a"), missing=[Facet.CORRELATION_IDS])
    assert result.missing == ("correlation ids",)
