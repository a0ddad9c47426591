"""What a delivery has read: reading on, merging what came with an answer, and what it tells of itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import Event
from stormctl.runtime.view import View, watermark
from stormctl.worlds.base import Page
from tests.runtime.driving import RUN
from tests.runtime.eventful import START, plain, seqs, slots


def view_of(*events: Event, cursor: str | None = "c1", in_band: int | None = None) -> View:
    return View.of(RUN, Page(events, cursor, in_band))


def positions(view: View) -> list[int | None]:
    return [event.position for event in view.events]


class TestTheWatermark:
    def test_is_the_latest_id_and_not_the_last(self) -> None:
        snapshot = view_of(plain(5), plain(9), plain(7)).snapshot("wrt")
        assert (snapshot.watermark, snapshot.count) == (START + 9, 3)

    def test_moves_with_what_is_read_and_merged(self) -> None:
        view = view_of(plain(5)).plus(Page((plain(8),), "c2"))
        assert view.watermark == START + 8
        assert view.merged([plain(6)]).watermark == START + 8
        assert view.merged([plain(11)]).watermark == START + 11

    def test_is_not_told_by_slots_nor_by_ids_that_are_no_ulid(self) -> None:
        assert view_of(*slots(1, 2)).snapshot("wrt").watermark is None
        assert watermark([replace(plain(1), event_id="evnt_7"), replace(plain(1), event_id=None)]) is None
        assert watermark([replace(plain(9), event_id="nonsense"), plain(4)]) == START + 4

    def test_is_none_for_nothing_read(self) -> None:
        assert View.of(RUN, Page((), None)).snapshot("wrt").watermark is None


class TestASnapshot:
    def test_of_slots_counts_to_the_highest_one_held(self) -> None:
        assert view_of(*slots(2, 3, 4)).snapshot("wrt").count == 4

    def test_names_cursor_writer_and_the_in_band_count_that_it_is_given(self) -> None:
        snapshot = view_of(plain(1), cursor="c7", in_band=3).snapshot("wrt", 5)
        assert (snapshot.cursor, snapshot.writer, snapshot.in_band) == ("c7", "wrt", 5)


class TestReadingOn:
    def test_appends_what_is_new_and_never_sorts_it(self) -> None:
        view = view_of(plain(1), plain(5)).plus(Page((plain(3), plain(5)), "c2"))
        assert [event.event_id for event in view.events] == [plain(at).event_id for at in (1, 5, 3)]

    def test_keeps_a_log_of_slots_in_the_order_of_its_slots(self) -> None:
        assert positions(view_of(*slots(1, 2, 4)).plus(Page(slots(3, 5), "c2"))) == [1, 2, 3, 4, 5]

    def test_keeps_the_old_cursor_on_an_empty_page(self) -> None:
        assert view_of(plain(1)).plus(Page((), None)).cursor == "c1"
        assert view_of(plain(1)).plus(Page((plain(2),), "c2")).cursor == "c2"

    def test_takes_the_in_band_count_of_the_last_page(self) -> None:
        assert view_of(plain(1), in_band=1).plus(Page((), "c1", 4)).in_band == 4


class TestMerging:
    def test_puts_events_where_their_ids_belong(self) -> None:
        merged = view_of(plain(1), plain(5)).merged([plain(3), plain(7)])
        assert [event.event_id for event in merged.events] == [plain(at).event_id for at in (1, 3, 5, 7)]

    def test_puts_seqs_behind_the_prefix_that_has_none(self) -> None:
        view = view_of(*seqs(None, None, 3, 5))
        assert positions(view.merged([plain(99, position=4)])) == [None, None, 3, 4, 5]

    def test_takes_an_event_once_however_often_it_is_told(self) -> None:
        assert positions(view_of(*slots(1, 2)).merged([*slots(3), *slots(4), *slots(3)])) == [1, 2, 3, 4]

    def test_keeps_the_cursor_unless_one_is_given(self) -> None:
        assert view_of(plain(1)).merged([plain(2)]).cursor == "c1"
        assert view_of(plain(1)).merged([plain(2)], "c9").cursor == "c9"

    @given(st.sets(st.integers(1, 30), min_size=1), st.data())
    def test_and_reading_on_come_to_the_same_log_of_slots(self, held: set[int], data: st.DataObject) -> None:
        told = data.draw(st.sets(st.sampled_from(sorted(held))))
        first = data.draw(st.sets(st.sampled_from(sorted(held)), min_size=1))
        rest = Page(slots(*sorted(held - first)), "c2")
        view = view_of(*slots(*sorted(first))).merged(slots(*told)).plus(rest)
        assert positions(view) == sorted(held)


class TestAPageThatNoSoundStoreServes:
    @pytest.mark.parametrize(
        ("page", "why"),
        [
            (Page((plain(2),), "c1"), "repeats the cursor"),
            (Page((plain(2), plain(2)), "c2"), "one event twice"),
            (Page((replace(plain(2), run_id="wrun_other"),), "c2"), "another run"),
        ],
    )
    def test_is_remembered(self, page: Page, why: str) -> None:
        view = view_of(plain(1)).plus(page)
        assert view.fault is not None
        assert why in view.fault
        assert view.plus(Page((plain(3),), "c3")).fault == view.fault

    def test_has_events_and_no_cursor(self) -> None:
        fault = view_of(plain(1), cursor=None).fault
        assert fault is not None
        assert "no cursor" in fault

    @pytest.mark.parametrize(
        "page",
        [
            Page((plain(2),), "c2"),
            Page((), "c1"),
            Page((), None),
            pytest.param(Page((plain(0), plain(1)), "c1"), id="a strong read that tells a late event"),
        ],
    )
    def test_has_twins_that_are_sound(self, page: Page) -> None:
        assert view_of(plain(1)).plus(page).fault is None
