"""Listings of ``workflow inspect``: put into the store's order, marked where they may be cut, joined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import Capture, Facet
from stormctl.readers import Reading, Unreadable, open_captures, reader_for
from tests.readers.samples import OTHER, RUN, a_run, dumped, event, page, run_row

WRITTEN = {"indent": 2}


def listed(path: Path, value: Any, reading: str | None = None) -> Capture:
    path.write_bytes(dumped(value, **WRITTEN))
    (found,) = open_captures([path], Reading(reader=reading))
    assert isinstance(found, Capture), found
    return found


def long_run(length: int) -> list[dict[str, Any]]:
    return [
        event(1, "run_created", workflowName="w"),
        *(event(n, "hook_received", "hook_1") for n in range(2, length + 1)),
    ]


def ulid(body: dict[str, Any], at: int) -> dict[str, Any]:
    """The same event in a store of ULIDs."""
    return {**body, "eventId": f"evnt_01KE00000000000000000000{at:02d}"}


class TestOrder:
    def test_newest_first_becomes_the_stores_order(self, tmp_path: Path) -> None:
        found = listed(tmp_path / "events.json", list(reversed(a_run())))
        assert [one.position for one in found.log] == [1, 2, 3, 4, 5, 6]
        assert not found.evidence.truncated
        assert found.evidence.origin == "a listing of workflow inspect"
        assert any("newest first" in note for note in found.evidence.notes)

    def test_ulids_are_ordered_by_time_and_then_id(self, tmp_path: Path) -> None:
        events = [ulid(body, 9 - at) for at, body in enumerate(a_run())]
        found = listed(tmp_path / "events.json", list(reversed(events)), "workflow-inspect")
        assert [one.event_id for one in found.log] == [body["eventId"] for body in events]

    def test_a_capture_that_somebody_made_backwards_is_seen_as_such(self, tmp_path: Path) -> None:
        found = listed(tmp_path / "capture.json", {"run": run_row(), "events": list(reversed(a_run()))})
        assert [one.position for one in found.log] == [1, 2, 3, 4, 5, 6]

    def test_a_capture_whose_order_is_wrong_somewhere_is_left_as_it_is(self, tmp_path: Path) -> None:
        events = a_run()
        events[2], events[3] = events[3], events[2]
        found = listed(tmp_path / "capture.json", events)
        assert [one.position for one in found.log] == [1, 2, 4, 3, 5, 6]

    @given(st.permutations(a_run()))
    def test_named_as_a_listing_any_order_becomes_the_stores(
        self, tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]]
    ) -> None:
        found = listed(tmp_path_factory.mktemp("any") / "a.json", events, "workflow-inspect")
        assert [one.position for one in found.log] == [1, 2, 3, 4, 5, 6]


class TestWhetherItIsAll:
    def test_the_newest_twenty_do_not_begin_the_run(self, tmp_path: Path) -> None:
        found = listed(tmp_path / "events.json", list(reversed(long_run(50)))[:20])
        assert found.evidence.truncated
        assert any("does not begin with the run's first event" in note for note in found.evidence.notes)

    def test_the_oldest_twenty_have_no_end(self, tmp_path: Path) -> None:
        found = listed(tmp_path / "events.json", long_run(50)[:20])
        assert found.evidence.truncated
        assert any("shows 20 unless --limit" in note for note in found.evidence.notes)

    def test_twenty_one_are_more_than_it_shows(self, tmp_path: Path) -> None:
        assert not listed(tmp_path / "events.json", long_run(21)).evidence.truncated

    def test_a_page_that_says_that_there_is_more(self, tmp_path: Path) -> None:
        found = listed(tmp_path / "events.json", page(a_run()[:4], more=True))
        assert found.evidence.truncated
        assert not listed(tmp_path / "events.json", page(a_run())).evidence.truncated

    def test_pages_one_after_the_other_are_all_where_the_last_says_so(self, tmp_path: Path) -> None:
        path = tmp_path / "pages.json"
        path.write_bytes(dumped(page(a_run()[:3], more=True), **WRITTEN) + b"\n" + dumped(page(a_run()[3:]), **WRITTEN))
        (found,) = open_captures([path])
        assert isinstance(found, Capture)
        assert len(found.log) == 6
        assert not found.evidence.truncated

    def test_pages_that_overlap_hold_one_event_once(self, tmp_path: Path) -> None:
        path = tmp_path / "pages.json"
        path.write_bytes(dumped([page(a_run()[:4]), page(a_run()[2:])]))
        path.write_bytes(dumped(page(a_run()[:4], more=True)) + dumped(page(a_run()[2:])))
        (found,) = open_captures([path])
        assert isinstance(found, Capture)
        assert [one.position for one in found.log] == [1, 2, 3, 4, 5, 6]
        assert any("2 events stand on two pages" in note for note in found.evidence.notes)

    def test_an_event_twice_on_one_page_is_twice_in_the_log(self, tmp_path: Path) -> None:
        found = listed(tmp_path / "capture.json", [*a_run(), a_run()[-1]])
        assert [one.position for one in found.log] == [1, 2, 3, 4, 5, 6, 6]

    def test_an_event_twice_among_lines_is_twice_in_the_log(self, tmp_path: Path) -> None:
        path = tmp_path / "a.ndjson"
        path.write_bytes(b"\n".join(dumped(body) for body in [*a_run(), a_run()[-1]]))
        (found,) = open_captures([path])
        assert isinstance(found, Capture)
        assert [one.position for one in found.log] == [1, 2, 3, 4, 5, 6, 6]

    def test_an_array_of_pages_as_jq_makes_it(self, tmp_path: Path) -> None:
        found = listed(tmp_path / "capture.json", [page(a_run()[:3], more=True), page(a_run()[3:])])
        assert len(found.log) == 6
        assert not found.evidence.truncated


class TestBeside:
    def test_runs_and_steps_that_lie_beside_the_events_belong_to_them(self, tmp_path: Path) -> None:
        step = {"runId": RUN, "stepId": "step_1", "stepName": "s", "status": "completed", "attempt": 1, "input": "x"}
        (tmp_path / "runs.json").write_bytes(dumped(page([run_row(), run_row(OTHER)]), **WRITTEN))
        (tmp_path / "steps.json").write_bytes(dumped([step], **WRITTEN))
        (tmp_path / "hooks.json").write_bytes(dumped(page([]), **WRITTEN))
        found = listed(tmp_path / "events.json", list(reversed(a_run())))
        assert found.run is not None
        assert Facet.ROWS not in found.evidence.missing
        assert found.data["rows"]["step_1"] == {"stepName": "s", "status": "completed", "attempt": 1}
        opened = list(open_captures([tmp_path]))
        assert [one.log.run_id for one in opened if isinstance(one, Capture)] == [RUN]
        assert len(opened) == 1

    def test_alone_they_are_captures_without_events_that_nothing_calls_clean(self, tmp_path: Path) -> None:
        (tmp_path / "runs.json").write_bytes(dumped(page([run_row(), run_row(OTHER, "failed")]), **WRITTEN))
        found = list(open_captures([tmp_path / "runs.json"]))
        assert [(one.log.run_id, one.run and one.run.status) for one in found if isinstance(one, Capture)] == [
            (RUN, "completed"), (OTHER, "failed"),
        ]  # fmt: skip
        for one in found:
            assert isinstance(one, Capture)
            assert one.evidence.truncated
            assert Facet.EVENT_IDS in one.evidence.missing
            assert Facet.ROWS not in one.evidence.missing

    @pytest.mark.parametrize("content", [page([]), [], {"events": []}])
    def test_an_empty_list_shows_nothing_and_is_no_clean_log(self, tmp_path: Path, content: Any) -> None:
        found = listed(tmp_path / "hooks.json", content)
        assert len(found.log) == 0
        assert found.evidence.truncated
        assert "empty list" in found.evidence.notes[0]

    def test_links_beside_the_events_are_not_followed(self, tmp_path: Path) -> None:
        secret = tmp_path / "elsewhere" / "secret.json"
        secret.parent.mkdir()
        secret.write_bytes(dumped(page([run_row(status="failed")])))
        (tmp_path / "runs.json").symlink_to(secret)
        assert Facet.ROWS in listed(tmp_path / "events.json", list(reversed(a_run()))).evidence.missing


def test_lines_that_the_command_printed_before_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    path.write_bytes(b"Workflow CLI 4.3.13\n[debug] backend local\n" + dumped(list(reversed(a_run())), **WRITTEN))
    assert reader_for(path).name == "workflow-inspect"
    (found,) = open_captures([path])
    assert isinstance(found, Capture)
    assert len(found.log) == 6


def test_values_that_the_command_hides_are_sealed(tmp_path: Path) -> None:
    events = [event(1, "run_created", workflowName="w"), event(2, "run_completed", output="\N{LOCK} Encrypted (1 kB)")]
    found = listed(tmp_path / "events.json", list(reversed(events)))
    assert Facet.RESULT in found.evidence.missing


def test_a_broken_event_makes_its_run_partial_and_leaves_the_others(tmp_path: Path) -> None:
    other = [{**body, "runId": OTHER} for body in a_run()]
    other[2]["createdAt"] = "yesterday"
    path = tmp_path / "capture.json"
    path.write_text(json.dumps([*a_run(), *other, {"nothing": "known"}]))
    found = list(open_captures([path]))
    captures = [one for one in found if isinstance(one, Capture)]
    assert [(len(one.log), one.evidence.truncated) for one in captures] == [(6, False), (5, True)]
    told = [one.error for one in found if isinstance(one, Unreadable)]
    assert len(told) == 2
    assert "row 13 of capture.json is no event" in told[0]
    assert "row 9 of capture.json has no time in 'createdAt'" in told[1]


def test_thousands_of_broken_events_are_told_of_in_a_few_lines(tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    path.write_text(json.dumps([*a_run(), *([7] * 3000)]))
    found = list(open_captures([path]))
    assert len(found) == 22
    assert isinstance(found[-1], Unreadable)
    assert "2980 more rows" in found[-1].error
