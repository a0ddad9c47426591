"""Id order and commit order."""

from __future__ import annotations

from collections.abc import Callable

from stormctl.history import ids
from stormctl.sweeps import PROFILES, Severity, SweepPlan, SweepResult, Verdict, sweep_log
from stormctl.testing import START_MS, LogBuilder

Judge = Callable[..., SweepResult]


def log(**how: bool) -> LogBuilder:
    return LogBuilder(**how).run_created().run_started().hook_created(0).hook_received(0).hook_received(0)


class TestIdOrder:
    def test_ids_that_rise_with_positions_are_clean(self, judge: Judge) -> None:
        assert judge("id-order", log()).verdict is Verdict.CLEAN

    def test_an_id_minted_before_that_of_an_earlier_position_is_a_fault(self, judge: Judge) -> None:
        result = judge("id-order", log().swapped(3, 5))
        assert result.verdict is Verdict.VIOLATED
        (finding,) = result.findings
        assert "2 of 5 events" in finding.message
        assert "farthest by 20 ms" in finding.message
        assert finding.positions == (4, 5)
        assert finding.witness == ("3 hook_created rank 0 hook", "5 hook_received rank 0 hook")

    def test_the_key_does_not_depend_on_where_it_happened(self, judge: Judge) -> None:
        keys = {judge("id-order", log().swapped(*pair)).findings[0].key for pair in ((2, 3), (3, 5))}
        assert len(keys) == 1

    def test_without_positions_the_list_is_compared_and_the_rest_stays_open(self, judge: Judge) -> None:
        result = judge("id-order", log(positions=False))
        assert result.verdict is Verdict.UNKNOWN
        assert result.findings == ()
        assert result.missing == ("positions (whether an event was published late)",)

    def test_an_inversion_in_a_list_without_positions_is_allowed_and_told(self, judge: Judge) -> None:
        (finding,) = judge("id-order", log(positions=False).swapped(2, 3)).findings
        assert finding.severity is Severity.LEGAL

    def test_slot_ids_are_positions(self, judge: Judge) -> None:
        assert judge("id-order", log(slots=True)).verdict is Verdict.CLEAN
        (finding,) = judge("id-order", log(slots=True).changed(4, event_id=ids.slot_id(9))).findings
        assert finding.message == "the event at position 4 has the id of slot 9"

    def test_a_ulid_among_slots_is_a_mixture(self, judge: Judge) -> None:
        stray = f"evnt_{ids.compose(START_MS, 1)}"
        (finding,) = judge("id-order", log(slots=True).changed(2, event_id=stray)).findings
        assert finding.key.startswith("id-order/mixed-ids/")
        assert finding.message == "4 events have slot ids and 1 have others"

    def test_two_events_with_one_id_are_a_fault(self, judge: Judge) -> None:
        built = log()
        (finding,) = judge("id-order", built.changed(4, event_id=built.events[2].event_id)).findings
        assert finding.key.startswith("id-order/repeat-id/")

    def test_one_event_captured_twice_is_the_capture_and_not_the_store(self, judge: Judge) -> None:
        result = judge("id-order", log().edited(lambda events: events.append(events[-1])))
        assert result.verdict is Verdict.UNKNOWN
        assert "was captured twice" in str(result.missing[0])

    def test_a_list_by_neither_id_nor_time_was_mixed_up(self, judge: Judge) -> None:
        mixed = log(positions=False).edited(lambda events: events.insert(1, events.pop(3)))
        (finding,) = judge("id-order", mixed).findings
        assert finding.key.startswith("id-order/listed-out-of-order/")
        for profile in PROFILES:
            assert judge("id-order", mixed, profile=profile).verdict is Verdict.VIOLATED

    def test_postgres_lists_by_id_alone(self, judge: Judge) -> None:
        swapped = log(positions=False).swapped(2, 3)
        assert judge("id-order", swapped, profile="workflow@4.8-local").verdict is Verdict.UNKNOWN
        assert judge("id-order", swapped, profile="workflow@4.8-postgres").verdict is Verdict.VIOLATED

    def test_numbers_as_a_table_gives_them_are_compared_as_numbers(self, judge: Judge) -> None:
        numbered = log()
        for place in range(1, 6):
            numbered = numbered.changed(place, event_id=str(place + 6))
        assert judge("id-order", numbered).verdict is Verdict.CLEAN
        (finding,) = judge("id-order", numbered.swapped(3, 4)).findings
        assert finding.message == "1 of 5 events have a smaller id than one before them, by up to 1"

    def test_a_serial_number_that_falls_while_slots_rise_is_told(self, judge: Judge) -> None:
        """Serial 41 has slot 8 and serial 40 slot 9 (platformatic/platformatic-world #166)."""
        serial = log(slots=True).changed(3, data={"serial": 41}).changed(4, data={"serial": 40})
        (finding,) = judge("id-order", serial).findings
        assert finding.key.startswith("id-order/serial-behind/")
        rising = serial.changed(3, data={"serial": 39})
        assert judge("id-order", rising).verdict is Verdict.CLEAN

    def test_ids_of_an_unknown_scheme_are_not_judged(self, judge: Judge) -> None:
        result = judge("id-order", log().changed(2, event_id="41"))
        assert result.verdict is Verdict.UNKNOWN

    def test_a_log_without_ids_is_unknown(self, judge: Judge) -> None:
        bare = LogBuilder().event("run_created", event_id=None)
        assert judge("id-order", bare).missing == ("event ids",)


class TestCommitOrder:
    def test_it_is_left_out_where_there_is_no_audit(self) -> None:
        report = sweep_log(log().capture(), SweepPlan())
        assert "commit-order" not in [result.sweep for result in report.sweeps]

    def test_events_published_in_order_are_clean(self, judge: Judge) -> None:
        built = log()
        assert judge("commit-order", built, audit=built.published()).verdict is Verdict.CLEAN

    def test_an_event_published_after_those_that_follow_it_is_a_fault(self, judge: Judge) -> None:
        built = log()
        result = judge("commit-order", built, audit=built.published(1, 2, 4, 5, 3))
        (finding,) = result.findings
        assert finding.message == "1 of 5 events were published after one that follows them, by up to 2.0 ms"
        assert finding.positions == (3,)
        assert finding.witness == ("3 hook_created rank 0 hook", "4 hook_received rank 0 hook")

    def test_stores_without_positions_publish_late_by_design_on_4_x(self, judge: Judge) -> None:
        built = log(positions=False)
        audit = built.published(1, 2, 4, 5, 3)
        assert judge("commit-order", built, audit=audit).verdict is Verdict.VIOLATED
        assert judge("commit-order", built, audit=audit, profile="workflow@4.8").verdict is Verdict.CLEAN

    def test_an_event_without_a_record_is_noted_and_the_others_judged(self, judge: Judge) -> None:
        built = log()
        result = judge("commit-order", built, audit=built.published(1, 2, 4, 5))
        assert (result.verdict, result.missing) == (Verdict.CLEAN, ("audit records of 1 events",))

    def test_an_audit_of_another_run_judges_nothing(self, judge: Judge) -> None:
        assert judge("commit-order", log(), audit=()).verdict is Verdict.UNKNOWN
