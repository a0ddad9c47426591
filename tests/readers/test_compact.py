"""Compact rows become a log with exact ranks, and the evidence says what they do not hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stormctl.history import Capture, Facet
from stormctl.readers import Unreadable, open_captures

ROWS = [
    {"s": 3, "t": "hook_created", "k": "hook", "r": 0, "n": ""},
    {"s": 4, "t": "step_created", "k": "step", "r": 5, "n": "settleStep"},
    {"s": 5, "t": "attr_set", "k": "run", "r": -1, "n": ""},
]


def write(folder: Path, rows: Any, name: str = "wrun-41KZYJ92TP-storm-log.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(rows))
    return path


def read(path: Path) -> Capture:
    (capture,) = open_captures([path])
    assert isinstance(capture, Capture), capture
    return capture


def test_rows_become_events_with_their_positions_names_and_ranks(tmp_path: Path) -> None:
    log = read(write(tmp_path, ROWS)).log
    assert [event.position for event in log] == [3, 4, 5]
    assert [log.rank(event) for event in log] == [0, 5, None]
    assert [event.name for event in log] == [None, "settleStep", None]
    assert log.run_id == "wrun_41KZYJ92TP"


def test_an_attribute_without_rank_was_written_by_a_step_body(tmp_path: Path) -> None:
    event = read(write(tmp_path, ROWS)).log[2]
    assert event.correlation_id is None
    assert event.data == {"writer": {"type": "step"}}


def test_ranks_are_exact_even_where_the_first_draw_is_lost(tmp_path: Path) -> None:
    log = read(write(tmp_path, ROWS[1:])).log
    assert log.rank(log[0]) == 5


def test_the_evidence_names_what_the_format_leaves_out(tmp_path: Path) -> None:
    evidence = read(write(tmp_path, ROWS)).evidence
    assert evidence.omitted == (1, 2, 6)
    assert {Facet.EVENT_IDS, Facet.TIMES, Facet.INPUTS, Facet.RESULT, Facet.RUN_BOUNDS} <= evidence.missing
    assert Facet.POSITIONS not in evidence.missing


def test_only_the_opening_events_are_declared_left_out(tmp_path: Path) -> None:
    assert read(write(tmp_path, [{**ROWS[0], "s": 9}])).evidence.omitted == (1, 2, 10)


def test_the_file_is_known_by_its_rows_and_not_by_its_name(tmp_path: Path) -> None:
    assert len(read(write(tmp_path, ROWS, "anything.txt")).log) == 3


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{**ROWS[0], "r": 1 << 40}], "row 1 of .* has the rank 1099511627776, which no run reaches"),
        ([{**ROWS[0], "s": -3}], "row 1 of .* has a position below 0"),
        ([ROWS[0], {**ROWS[1], "t": 5}], "row 2 of .* has 5 in 't', which takes text"),
        ([ROWS[0], "x"], "row 2 of .* is 'x', not an object"),
        ([ROWS[0], {"s": 4, "t": "noop", "k": "run"}], "row 2 of .* lacks 'r'"),
    ],
)
def test_a_row_that_means_nothing_is_named(tmp_path: Path, rows: Any, said: str) -> None:
    (found,) = open_captures([write(tmp_path, rows)])
    assert isinstance(found, Unreadable)
    assert re.search(said, found.error), found.error


def test_a_large_array_is_read_row_by_row(tmp_path: Path) -> None:
    rows = [{"s": place, "t": "step_created", "k": "step", "r": place, "n": "x" * 50} for place in range(3, 5003)]
    assert len(read(write(tmp_path, rows)).log) == 5000
