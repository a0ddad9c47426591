"""Rows of many runs come back run by run, in their order, from memory as from disk."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import StoreFailure
from stormctl.readers import by_run
from stormctl.readers.by_run import ByRun

ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "\N{SNOWMAN}"]), st.integers() | st.text()), max_size=60)


@given(ROWS, st.sampled_from([0, 5, 1 << 20]))
def test_every_run_has_its_rows_in_their_order(rows: list[tuple[str, Any]], in_memory: int) -> None:
    expected: dict[str, list[Any]] = {}
    for run_id, row in rows:
        expected.setdefault(run_id, []).append([row])
    with ByRun(in_memory=in_memory) as held:
        for run_id, row in rows:
            held.add(run_id, [row], 1)
        assert list(held.runs()) == list(expected.items())
        assert held.left_out == {}


@pytest.mark.parametrize("in_memory", [0, 1 << 20])
def test_rows_beyond_a_limit_are_counted(monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    monkeypatch.setattr(by_run, "MAX_RUN_BYTES", 100)
    monkeypatch.setattr(by_run, "MAX_RUNS", 2)
    with ByRun(in_memory=in_memory, max_events=3) as held:
        for number in range(5):
            held.add("a", number, 1)
        held.add("b", "small", 60)
        held.add("b", "large", 60)
        held.add("c", "one run too many", 1)
        assert [run_id for run_id, _ in held.runs()] == ["a", "b"]
        assert held.left_out == {"a": 2, "b": 1, "": 1}


def test_a_full_disk_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with ByRun(in_memory=0) as held:
        held.add("a", 1, 1)
        assert held._disk is not None
        held._disk.execute("pragma max_page_count = 4")
        held.add("a", "x" * (3 << 20), 1)
        with pytest.raises(StoreFailure, match="could not be kept on disk"):
            held.add("a", "x" * (3 << 20), 1)


def test_what_was_kept_on_disk_is_gone_with_it() -> None:
    with ByRun(in_memory=0) as held:
        held.add("a", 1, 1)
        disk = held._disk
    assert disk is not None
    with pytest.raises(sqlite3.ProgrammingError):
        disk.execute("select 1")
