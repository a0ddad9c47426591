"""The sticky comment: its stored snapshot, its history, its bounds, and what a stranger may have written into it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.report.comment import LIMIT, comment_text
from stormctl.report.history import (
    MARKER,
    MOST_RUNS,
    RunEntry,
    embed,
    lane_name,
    newest,
    parse_previous,
    run_url,
)
from stormctl.report.lane import Lane, LaneCounts
from stormctl.report.load import Artefact, load_artefact
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.outcome import Outcome
from tests.report.folders import NEW, OLD, folder

SNAPSHOT = Path(__file__).parent / "snapshots" / "comment.md"
NASTY = (
    "x | --> <script> `a` [b](c) @octocat #1 ::set-output name=a::b \x1b[2J\u202e https://evil.example\n# h </details>"
)
#: How five runs of one pull request came out, on two lanes: letters of ``tests.report.folders.WORDS``.
RUNS = (
    ("cccc.cccd.", "cccccccc..", "i.........", ".........."),
    ("cccc.ccccc", "cccccc....", ".........c", ".........."),
    ("cccc.ccc..", "ccccci....", "...s......", ".........."),
    ("cccccccccc", "ccccccccdd", ".i........", None),
    ("ccccccccdc", "cccccccuii", "..........", "...iiii.c."),
)


def lane(path: Path, name: str, step: str, hook: str) -> Lane:
    cells = {("step-storm", OLD): step, ("hook-storm", OLD): hook}
    cells |= {("step-storm", NEW): "." * len(step), ("hook-storm", NEW): "." * len(hook)}
    found = load_artefact(folder(path, cells, world=name))
    told = [replace(one, error_message=said(one.outcome, one.number)) for one in found.attempts]
    return Lane(name, replace(found, attempts=tuple(told)))


def said(outcome: Outcome, number: int) -> str | None:
    if outcome is Outcome.CORRUPTED:
        return (
            "replay diverged 4 times after 3 recovery replays; the last divergence was at evnt_1: step_created at "
            f"position {60 + number} belongs to releaseStep, but with rank 30 the workflow calls finalizeStep"
        )
    words = {Outcome.DORMANT: "still running after 60000 ms", Outcome.INFRA: "fetch failed: ECONNREFUSED"}
    return words.get(outcome, "the user's own code threw" if outcome.gates else None)


def entry(number: int, lanes: list[Lane]) -> RunEntry:
    url = f"https://github.com/someone/some-engine/actions/runs/{1000 + number}"
    counts = {one.name: one.counts for one in lanes}
    return RunEntry(f"2026-12-0{number}T04:05:00Z", 1 + (number == 3), url, counts)


def test_five_runs_give_the_stored_comment(tmp_path: Path) -> None:
    body = ""
    for number, (old, new, hook, other) in enumerate(RUNS, start=1):
        lanes = [lane(tmp_path / f"{number}-local", "local", old, hook)]
        lanes.append(
            Lane("postgres", None) if other is None else lane(tmp_path / f"{number}-pg", "postgres", new, other)
        )
        body = comment_text(lanes, entry(number, lanes), parse_previous(body))
    if os.environ.get("STORMCTL_UPDATE"):
        SNAPSHOT.write_text(body)
    assert body == SNAPSHOT.read_text()


@pytest.fixture
def one(tmp_path: Path) -> Lane:
    return lane(tmp_path / "one", "local", "ccc.", "....")


def test_it_begins_with_the_hidden_marker_by_which_it_is_found(one: Lane) -> None:
    assert comment_text([one], entry(1, [one])).startswith(MARKER)


def test_the_newest_five_runs_stay_newest_first(one: Lane) -> None:
    body = ""
    for number in range(1, 9):
        body = comment_text([one], entry(number, [one]), parse_previous(body))
    runs = parse_previous(body)
    assert [run.timestamp[:10] for run in runs] == [f"2026-12-0{number}" for number in (8, 7, 6, 5, 4)]


def test_a_report_of_the_same_run_replaces_the_earlier_one(one: Lane) -> None:
    first = entry(2, [one])
    runs = newest(replace(first, lanes={"local": LaneCounts(total=1)}), [first, entry(1, [one])])
    assert len(runs) == 2
    assert runs[0].lanes["local"].total == 1
    assert len(newest(replace(first, attempt=9), [first])) == 2


def test_a_clean_lane_is_not_bold_and_lists_nothing(tmp_path: Path) -> None:
    clean = lane(tmp_path / "clean", "local", "....", "....")
    text = comment_text([clean], entry(1, [clean]))
    assert "- **local**: clean, 16 attempts" in text
    assert "did not complete" not in text


def test_at_most_ten_failing_rows_and_three_of_infra_a_lane(tmp_path: Path) -> None:
    many = lane(tmp_path / "many", "local", "c" * 30 + "i" * 9, "." * 39)
    text = comment_text([many], entry(1, [many]))
    rows = [line for line in text.splitlines() if "| wrun" in line]
    assert [("corrupted" in row, "infra" in row) for row in rows] == [(True, False)] * 10 + [(False, True)] * 3
    assert "local: 13 of 39 shown" in text


def test_a_lane_without_results_says_so_and_keeps_its_row(one: Lane) -> None:
    lanes = [one, Lane("postgres", None)]
    text = comment_text(lanes, entry(1, lanes))
    assert "**postgres**: **no results; see the job's log**" in text
    assert parse_previous(text)[0].lanes["postgres"].missing


def hostile(count: int, size: int) -> Artefact:
    cell = Cell(NASTY, NASTY, NASTY, NASTY)
    attempts = [
        Attempt(cell, number, (NASTY * size)[:4000], Outcome.CORRUPTED, error_message=NASTY * size)
        for number in range(count)
    ]
    return Artefact(Path("/nowhere"), tuple(attempts), called=NASTY * size, config={NASTY: "x", "note": NASTY * size})


@pytest.mark.parametrize("lanes", [1, 3, 40])
def test_it_stays_under_the_limit_whatever_comes(lanes: int) -> None:
    made = [Lane(lane_name(f"{index} {NASTY * 9}"), hostile(60, 400)) for index in range(lanes)]
    text = comment_text(made, entry(1, made), [entry(number, made) for number in range(2, 9)])
    assert len(text) < LIMIT
    assert len(text.encode()) < LIMIT


def test_it_tells_less_rather_than_too_much(tmp_path: Path) -> None:
    found = hostile(30, 1)
    config = {f"key{index}": "ü" * 300 for index in range(900)}
    made = [Lane(f"lane {index}", replace(found, config={"own": index} | config)) for index in range(12)]
    text = comment_text(made, entry(1, made))
    assert "Configuration of" not in text
    assert "did not complete" in text


def test_hostile_names_are_harmless() -> None:
    made = [Lane(lane_name(NASTY), hostile(3, 1))]
    text = comment_text(made, entry(1, made))
    before, code, after = text.split("```")
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "octocat" in code  # inside of a block of code nobody is mentioned
    assert "@octocat" not in before + after
    assert "&#64;" not in before + after  # GitHub reads a mention through it
    assert "https://evil.example" not in before + after
    assert "<script>" not in (before + after).replace("\\<script\\>", "")
    assert before.count("-->") == 2
    assert after.count("</details>") == 1
    assert not any(line.strip().startswith("::") for line in text.splitlines())


@pytest.mark.parametrize(
    "body",
    [
        "",
        "a comment of somebody else",
        MARKER,
        f"{MARKER}\n<!-- stormctl-history not json -->",
        f"{MARKER}\n<!-- stormctl-history {{}} -->",
        f"{MARKER}\n<!-- stormctl-history [1, 2] -->",
        f'{MARKER}\n<!-- stormctl-history {{"runs": [1, null, {{"timestamp": 5}}]}} -->',
        f'{MARKER}\n<!-- stormctl-history {{"runs": "' + "[" * 100_000 + '"}} -->',
        f"{MARKER}\n<!-- stormctl-history " + "[" * 100_000 + " -->",
        f"{MARKER}\n<!-- stormctl-history {{",
    ],
)
def test_a_previous_body_that_is_none_gives_no_runs(body: str) -> None:
    assert parse_previous(body) == []


def test_what_a_stranger_wrote_into_the_history_is_checked() -> None:
    row = {
        "timestamp": "2026-12-01T04:05:00Z",
        "attempt": -4,
        "url": "javascript:alert(1)",
        "lanes": {
            "local": {"completed": 10**30, "corrupted": True, "infra": 2, "planned": "x", "why": "<b>", "total": 99},
            "](x) @octocat": {"completed": 1},
            "other": 7,
        },
    }
    (run,) = parse_previous(f"{MARKER}\n<!-- stormctl-history {json.dumps({'runs': [row]})} -->")
    assert (run.attempt, run.url, list(run.lanes)) == (1, "", ["local"])
    assert run.lanes["local"] == LaneCounts(total=2, infra=2)


@pytest.mark.parametrize(
    "url",
    ["https://x.example/a)b", "http://x.example/", "https://x.example/a b", "https://x/\n", "https://x/@you", None],
)
def test_an_address_that_could_leave_its_link_is_none(url: str | None) -> None:
    assert run_url(url) == ""


COUNTS = st.builds(
    lambda numbers, **rest: LaneCounts(total=sum(numbers.values()), **numbers, **rest),
    st.fixed_dictionaries(
        {name: st.integers(0, 10_000) for name in ("completed", "corrupted", "slow", "dormant", "other", "infra")}
    ),
    planned=st.one_of(st.none(), st.integers(0, 10_000)),
    why=st.sampled_from(["", "done", "budget"]),
    missing=st.booleans(),
    suspect=st.booleans(),
)
RUN = st.builds(
    RunEntry,
    timestamp=st.datetimes().map(lambda when: f"{when:%Y}".zfill(4) + f"{when:-%m-%dT%H:%M:%SZ}"),
    attempt=st.integers(1, 99),
    url=st.sampled_from(["", "https://github.com/a/b/actions/runs/1"]),
    lanes=st.dictionaries(st.text(max_size=70).map(lane_name), COUNTS, min_size=1, max_size=4),
)


@given(st.lists(RUN, max_size=MOST_RUNS))
def test_the_history_comes_back_as_it_was_written(runs: list[RunEntry]) -> None:
    assert parse_previous(f"{MARKER}\n{embed(runs)}\nand so on") == runs


@given(st.text(max_size=400))
def test_no_previous_body_breaks_the_next_one(text: str) -> None:
    assert parse_previous(f"{MARKER}\n<!-- stormctl-history {text} -->") == []
