"""What a delivery believes of a refusal, and what it makes of what it then reads: the pure part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.history import Event, Inline, ids, kinds
from stormctl.runtime import notes
from stormctl.runtime.precondition import (
    MAX_DELTA,
    Change,
    Counts,
    Site,
    Source,
    Stale,
    Stall,
    accepted_counts,
    accepted_delta,
    held_at_or_below,
    judge,
    may_use_delta,
)
from stormctl.runtime.restart import Restarts
from stormctl.runtime.rules import Rules
from stormctl.runtime.view import View
from stormctl.worlds.base import Page
from stormctl.worlds.wire import event_to_wire, refusal_body
from tests.runtime.driving import RUN
from tests.runtime.eventful import START, plain, seqs, slots

STEP = "step_01KE0000000000000000000001"
CREATED = Event(
    kinds.STEP_CREATED,
    RUN,
    f"evnt_{ids.compose(START + 5, 1)}",
    STEP,
    3,
    START + 5,
    "work",
    payload=Inline([1]),
)
TOLD = refusal_body(Page((plain(1), CREATED), "c2"), None)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
    | st.sampled_from([RUN, "step_created", "2026-11-30T12:00:00.000Z", "Uint8Array", "ZGV2bFs0Ml0="]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=4)
            | st.sampled_from(
                [
                    "runId",
                    "eventId",
                    "eventType",
                    "createdAt",
                    "eventData",
                    "input",
                    "__type",
                    "data",
                    "seq",
                    "stormctl",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
bodies = st.dictionaries(
    st.sampled_from(["events", "cursor", "recordedAtOrBelow", "stateUpdatedAt", "message"]), json_values, max_size=5
)


class TestADelta:
    def test_of_sound_events_is_accepted_with_its_cursor(self) -> None:
        assert accepted_delta(TOLD, RUN) == ((plain(1), CREATED), "c2")

    def test_may_be_empty_and_without_a_cursor(self) -> None:
        assert accepted_delta({"events": []}, RUN) == ((), None)

    @pytest.mark.parametrize(
        "body",
        [
            {},
            None,
            [],
            {"cursor": "c2"},
            {"events": {}},
            {"events": "[]"},
            {"events": [7]},
            {"events": [None]},
            {**TOLD, "cursor": 7},
        ],
    )
    def test_that_is_none_is_not(self, body: object) -> None:
        assert accepted_delta(body, RUN) is None

    @pytest.mark.parametrize("at", [0, 1])
    def test_is_refused_whole_for_one_foreign_event(self, at: int) -> None:
        events = [event_to_wire(plain(1)), event_to_wire(CREATED)]
        events[at]["runId"] = "wrun_other"
        assert accepted_delta({"events": events, "cursor": "c2"}, RUN) is None

    def test_longer_than_a_run_may_grow_is_refused(self) -> None:
        one = event_to_wire(plain(1))
        assert accepted_delta({"events": [one] * (MAX_DELTA + 1)}, RUN) is None


class TestCounts:
    def test_are_taken_as_a_pair(self) -> None:
        assert accepted_counts({"recordedAtOrBelow": 0, "stateUpdatedAt": 0}) == Counts(0, 0)
        assert accepted_counts({"recordedAtOrBelow": 7, "stateUpdatedAt": START}) == Counts(7, START)

    @pytest.mark.parametrize("bad", [None, -1, 1.0, 1.5, "7", True, [7], {}])
    @pytest.mark.parametrize("key", ["recordedAtOrBelow", "stateUpdatedAt"])
    def test_are_unchecked_unless_both_are_whole_numbers(self, key: str, bad: Any) -> None:
        assert accepted_counts({"recordedAtOrBelow": 7, "stateUpdatedAt": 7, key: bad}) is None

    @pytest.mark.parametrize("body", [{"recordedAtOrBelow": 7}, {"stateUpdatedAt": 7}, {}, None, "7"])
    def test_are_unchecked_when_one_of_the_two_is_missing(self, body: object) -> None:
        assert accepted_counts(body) is None

    def test_do_not_depend_on_the_delta(self) -> None:
        body = {"events": "damaged", "recordedAtOrBelow": 7, "stateUpdatedAt": 8}
        assert (accepted_delta(body, RUN), accepted_counts(body)) == (None, Counts(7, 8))


class TestWhatTheLogHolds:
    def test_counts_up_to_the_time_inclusive(self) -> None:
        events = (plain(1), plain(2), plain(3))
        assert [held_at_or_below(events, START + at) for at in (0, 1, 2, 9)] == [0, 1, 2, 3]

    def test_does_not_count_ids_that_tell_no_time(self) -> None:
        assert held_at_or_below((*slots(1, 2), replace(plain(1), event_id="evnt_x")), START + 99) == 0


class TestTheJudgement:
    OLD, NEW = seqs(1, 2), seqs(1, 2, 3)

    def test_names_what_changed(self) -> None:
        assert judge(self.OLD, self.NEW, Source.FULL_RELOAD, None).change is Change.GREW
        assert judge(self.NEW, self.NEW, Source.FULL_RELOAD, None).change is Change.UNCHANGED
        shrank = judge(self.NEW, (*self.OLD, plain(77)), Source.FULL_RELOAD, None)
        assert (shrank.change, shrank.added, shrank.dropped) == (Change.SHRANK, 1, 1)

    def test_does_not_see_another_order(self) -> None:
        judged = judge(self.NEW, self.NEW[::-1], Source.FULL_RELOAD, Counts(3, START + 99))
        assert (judged.change, judged.satisfied) == (Change.UNCHANGED, True)

    @pytest.mark.parametrize(
        ("after", "recorded", "satisfied", "stalled"),
        [
            (NEW, 3, True, None),
            (NEW, 2, True, None),
            (NEW, 4, False, Stall.SHORT),
            (OLD, 2, True, Stall.UNCHANGED),
            (OLD, 4, False, Stall.UNCHANGED),
        ],
    )
    def test_of_a_full_read(
        self, after: tuple[Event, ...], recorded: int, satisfied: bool, stalled: Stall | None
    ) -> None:
        judged = judge(self.OLD, after, Source.FULL_RELOAD, Counts(recorded, START + 99))
        assert (judged.satisfied, judged.stalled) == (satisfied, stalled)

    def test_is_unchecked_without_counts_or_without_a_full_read(self) -> None:
        assert judge(self.OLD, self.NEW, Source.FULL_RELOAD, None).satisfied is None
        judged = judge(self.OLD, self.OLD, Source.INLINE_DELTA, Counts(9, START))
        assert (judged.satisfied, judged.stalled) == (None, None)

    @given(st.sets(st.integers(1, 12)), st.sets(st.integers(1, 12)), st.integers(0, 14), st.integers(0, 14))
    def test_stalls_exactly_when_another_restart_cannot_help(
        self, before: set[int], after: set[int], recorded: int, at: int
    ) -> None:
        old, new = [plain(ms) for ms in sorted(before)], [plain(ms) for ms in sorted(after)]
        judged = judge(old, new, Source.FULL_RELOAD, Counts(recorded, START + at))
        held = sum(ms <= at for ms in after)
        assert (judged.added, judged.dropped) == (len(after - before), len(before - after))
        assert judged.satisfied == (held >= recorded)
        assert judged.stalled is (Stall.UNCHANGED if before == after else Stall.SHORT if held < recorded else None)


class TestWhetherADeltaMayBeUsed:
    @pytest.mark.parametrize("site", list(Site))
    @pytest.mark.parametrize("claimed", [True, False])
    @pytest.mark.parametrize("restart", [1, 2, 3])
    @pytest.mark.parametrize("cached", [True, False])
    def test_is_decided_by_all_four(self, site: Site, claimed: bool, restart: int, cached: bool) -> None:
        stale = Stale(site, ("step_started",), {}, sibling_claimed=claimed)
        blocked = site is Site.INLINE_CLAIM and claimed
        assert may_use_delta(stale, restart, cached=cached) is (restart == 1 and cached and not blocked)


class TestAnyBodyAtAll:
    @settings(max_examples=300)
    @given(json_values)
    def test_raises_nothing(self, body: object) -> None:
        delta = accepted_delta(body, RUN)
        assert delta is None or all(event.run_id == RUN for event in delta[0])
        accepted_counts(body)

    @settings(max_examples=300)
    @given(bodies, st.sampled_from(list(Site)), st.integers(0, 4))
    def test_leaves_a_view_with_this_runs_events_only(self, body: Mapping[str, Any], site: Site, made: int) -> None:
        restarts = Restarts(Rules())
        restarts.made = made
        view = View.of(RUN, Page((plain(1), plain(2)), "c1"))
        requests = restarts.view_after(view, Stale(site, ("step_created",), body))
        newer = _answered(requests, Page((plain(1), plain(2), plain(3)), "c2"))
        assert newer is None or {event.run_id for event in newer.events} == {RUN}
        assert (newer is None) or len(newer.events) >= 2

    @settings(max_examples=200)
    @given(st.data())
    def test_that_was_sound_but_for_one_field_is_never_half_believed(self, data: st.DataObject) -> None:
        events = [event_to_wire(plain(1)), event_to_wire(CREATED)]
        spoilt = data.draw(st.sampled_from(events))
        place = data.draw(st.sampled_from([spoilt, spoilt["eventData"]] if "eventData" in spoilt else [spoilt]))
        key = data.draw(st.sampled_from(sorted(place)))
        value = data.draw(json_values)
        place[key] = value
        accepted = accepted_delta({"events": events}, RUN)
        assert accepted is None or (len(accepted[0]) == 2 and all(event.run_id == RUN for event in accepted[0]))


def _answered(requests: Any, page: Page) -> View | None:
    reply: Any = None
    while True:
        try:
            op = requests.send(reply)
        except StopIteration as returned:
            return returned.value  # type: ignore[no-any-return]
        reply = None if type(op).__name__ == "Note" else page


class TestTheNotes:
    def test_of_a_restart_are_summed_by_what_they_say(self) -> None:
        stale = Stale(Site.REPLAY_WRITE, ("wait_completed", "wait_completed"), {})
        judged = judge(seqs(1), seqs(1), Source.FULL_RELOAD, None)
        note = notes.restart(1, stale, Source.FULL_RELOAD, judged, None, "none")
        assert notes.tally(note.what, note.data) == {
            "restart": 1,
            "restart.unchanged": 1,
            "restart.full-reload": 1,
            "restart.delta.none": 1,
            "restart.useless": 2,
            "stalled": 1,
            "stalled.reload-unchanged": 1,
        }

    def test_of_refusals_by_type_and_by_whether_they_were_facts(self) -> None:
        note = notes.behind(Stale(Site.REPLAY_WRITE, ("wait_completed", "run_completed"), {}))
        assert notes.tally(note.what, note.data) == {
            "behind": 1,
            "behind.writes": 2,
            "behind.facts": 1,
            "behind.type.wait_completed": 1,
            "behind.type.run_completed": 1,
        }

    @pytest.mark.parametrize(
        ("note", "counted"),
        [
            (notes.passed(3, "suspended"), {"pass": 1}),
            (notes.divergence(1, "evnt_1", "x"), {"divergence": 1}),
            (notes.reinvocation(1, "budget"), {"reinvocation": 1, "reinvocation.budget": 1}),
            (notes.exhausted(6, "budget"), {"exhausted": 1}),
            (notes.reread(1, "1 followed by 3", closed=True), {"reread": 1, "reread.closed": 1}),
            (notes.reread(1, "1 followed by 3", closed=False), {"reread": 1}),
            (notes.conflict("same", STEP), {"conflict": 1, "conflict.same": 1}),
            (notes.report(2, truncated=True), {"report": 1, "report.truncated": 1}),
        ],
    )
    def test_of_everything_else(self, note: Any, counted: dict[str, int]) -> None:
        assert notes.tally(note.what, note.data) == counted
