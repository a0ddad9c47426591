"""Whole pictures: of the real runtime and of the small model, as a person sees them, as a page and as data."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from stormctl.sim.book import ENTRIES, play_entry
from stormctl.sim.explore import Budget, explore
from stormctl.sim.kernel import Model, Run, TapeChooser, play
from stormctl.sim.models.fork import Fork
from stormctl.sim.show import Picture, lines_of, picture
from stormctl.sim.show.page import SCHEMA, schedule_data, schedule_json, schedule_page
from stormctl.sim.show.trace import lane_of, later, trace_of
from stormctl.sim.shrink import shrink
from stormctl.sim.token import Token

RED = [
    ("mint-ulid", "stale-read-step-count-fork"),
    ("mint-ulid", "stale-read-equal-step-counts"),
    ("mint-ulid", "step-vs-step-fork"),
    ("mint-ulid", "step-vs-step-fork-fenced"),
    ("mint-ulid", "in-flight-before-decision"),
    ("mint-ulid", "in-flight-after-decision"),
    ("mint-slot", "in-flight-before-decision"),
    ("mint-slot", "in-flight-before-decision-counted"),
    ("mint-slot", "in-flight-after-decision"),
]


def played(world: str, name: str) -> tuple[Model, Run]:
    entry = ENTRIES[name]
    return entry.system(world, expected=False), play_entry(entry, world, expected=False).run


def in_flight() -> Picture:
    return picture(*played("mint-ulid", "in-flight-before-decision"))


def test_the_hole_of_the_small_model_is_drawn_with_the_pair_that_raced_and_the_story() -> None:
    model = Fork("mint")
    first = explore(model, "bounded", budget=Budget(runs=300), stop_at_first=True).first
    assert first is not None
    small = shrink(model, first.tape)
    shown = picture(model, play(model, TapeChooser(small.tape)), proof=str(small.certificate))
    assert lines_of(shown) == [
        "fork-mint: cold-replay: settle where the log decides approve",
        "   #   H                O1",
        "   .   mints 1",
        "   .                    reads nothing",
        "   2                    wait_completed",
        "   .                    [reads ( ) 2]",
        "   3                    step_created settle",
        "   4                    step_completed",
        "   .                    reads ( ) 2-4",
        "   5                    step_created archive",
        "   6                    step_completed",
        "   .                    reads ( ) 2-6",
        "   7                    run_completed",
        "   .                    reads ( ) 2-7",
        "   1 < [hook_received]",
        "",
        "O1 reads ( ) 2: without 1 (hook_received), which H has not published yet. Then H",
        "publishes hook_received as 1, in front of wait_completed at 2. However, step 0",
        "in the log is settle; a replay of the same log calls approve there. With these",
        "two the other way round it goes well.",
        "",
        "2 preemptions, 19 turns; minimal: no failing schedule with <= 1 preemption (18",
        "checked)",
        f"replay: stormctl sim replay {shown.token}",
    ]


def test_on_the_real_runtime_it_shows_what_was_read_what_was_decided_and_what_landed_in_front() -> None:
    shown = in_flight()
    lines = lines_of(shown)
    assert "   .                    [reads 1-3 ( ) 5]" in lines
    assert "   4 < [hook_received]" in lines
    story = " ".join(shown.story)
    assert story.startswith("O2 reads 1-3 ( ) 5: without 4 (hook_received), which H has not published yet.")
    assert "Then H publishes hook_received as 4, in front of wait_created at 5. However, the log" in story
    assert "evnt_" not in story


@pytest.mark.parametrize(("world", "name"), RED)
def test_every_red_one_of_the_book_takes_25_lines_of_80_characters_at_most(world: str, name: str) -> None:
    lines = lines_of(picture(*played(world, name)))
    assert len(lines) <= 25
    assert max(map(len, lines[:-1])) <= 80
    assert sum("[" in line for line in lines[:20]) >= 1
    assert any("( )" in line for line in lines)
    assert any("However, " in line for line in lines)
    assert lines[-1].startswith("replay: stormctl sim replay sw1-")


def test_one_that_goes_well_has_no_story_and_still_its_line_to_paste() -> None:
    shown = picture(*played("append-only", "in-flight-before-decision"))
    assert (shown.story, shown.problems, shown.race, shown.passing) == ((), (), None, None)
    assert lines_of(shown)[0].endswith(": goes well")


def test_what_it_says_to_paste_is_the_same_run() -> None:
    model, run = played("mint-ulid", "in-flight-before-decision")
    again = play(model, TapeChooser(Token.parse(picture(model, run).token).tape))
    assert [turn.actor for turn in again.turns] == [turn.actor for turn in run.turns]


def test_on_a_wide_screen_the_schedule_that_goes_well_stands_beside_it() -> None:
    lines = lines_of(in_flight(), width=160)
    assert len(lines) <= 25
    assert lines[0].partition(" | ")[2] == "the nearest schedule that goes well"
    assert all(" | " in line or not line for line in lines[:14])


def test_a_lost_message_and_a_hidden_event_are_told() -> None:
    model = ENTRIES["long-sleep"].search("append-only[drops]")
    found = explore(model, "bounded:1", budget=Budget(runs=400))
    lost = next(one for one in found.violations.values() if one.faults and one.signature.startswith("end/"))
    lines = lines_of(picture(model, play(model, TapeChooser(lost.tape)), signature=lost.signature))
    assert any("queue: lost" in line for line in lines)
    hidden = trace_of(played("mint-ulid", "stale-read-step-count-fork")[1])
    assert any(step.missed for step in hidden)


def test_a_hole_is_only_what_had_its_place_and_was_not_returned() -> None:
    for world in ("append-only", "mint-ulid"):
        for entry in ENTRIES.values():
            if entry.stale or entry.id.startswith("in-flight"):
                continue
            run = play_entry(entry, world, expected=False).run
            assert not any(step.missed for step in trace_of(run)), (entry.id, world)


@pytest.mark.parametrize(
    ("ms", "text"),
    [(25, "+25 ms"), (1_500, "+1.5 s"), (60_000, "+1 min"), (3_600_000, "+1 h"), (30 * 86_400_000, "+30 d")],
)
def test_times_are_said_as_a_person_says_them(ms: int, text: str) -> None:
    assert later(ms) == text


def test_what_a_delivery_does_side_by_side_is_in_its_own_lane() -> None:
    assert [lane_of(name) for name in ("O1", "O12.3", "S:settle", "S:settle#2", "H")] == [
        "O1",
        "O12",
        "S:settle",
        "S:settle#2",
        "H",
    ]


class Page(HTMLParser):
    """What a page is made of: tables with their captions and cells, and whatever it asks the network for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[int] = []
        self.heads = 0
        self.asked: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        given = dict(attrs)
        self.asked += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag == "tr":
            self.rows.append(0)
        elif tag in ("td", "th"):
            self.rows[-1] += 1
            self.heads += given.get("scope") in ("row", "col")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_tables_needs_no_network_and_shows_both_schedules() -> None:
    shown = in_flight()
    text = schedule_page(shown)
    page = Page(text)
    assert page.open == []
    assert page.asked == []
    assert "default-src 'none'" in text
    assert text.count("<caption>") == 2
    assert shown.passing is not None
    widths = [1 + len(shown.lanes.names), 1 + len(shown.passing.names)]
    assert set(page.rows) == set(widths)
    assert page.heads == len(page.rows) - 2 + sum(widths)
    assert text.count('class="raced"') == 4
    assert '<span class="hole" title="not seen">4</span>' in text
    assert "prefers-color-scheme: dark" in text


def test_nothing_that_a_model_says_becomes_markup() -> None:
    from dataclasses import replace

    bad = replace(in_flight(), title="<script>alert(1)</script>", story=("<b>",), replay="a & b", script="H: <i>")
    text = schedule_page([bad, bad], "<u>")
    assert not re.search(r"<(script|b|i|u)>", text)
    assert Page(text).open == []


def test_the_data_say_what_the_picture_shows() -> None:
    shown = in_flight()
    data = json.loads(schedule_json(shown))
    assert data == json.loads(json.dumps(schedule_data(shown)))
    assert data["schema"] == SCHEMA
    assert (data["verdict"], data["token"]) == ("violation", shown.token)
    late = [row for row in data["lanes"]["rows"] if row["overtaken"]]
    assert [(row["lane"], row["text"], row["position"]) for row in late] == [("H", "hook_received", 4)]
    assert [row["missed"] for row in data["lanes"]["rows"] if row["missed"]] == [[4], [4]]
    assert data["passing"]["names"]
