"""The golden table: waves and counters of each published situation. It is the proof that the model is right."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stormctl.cli.app import app
from stormctl.drain.knobs import G1, G2, G4
from stormctl.drain.table import ROWS, Row, agrees, measure

STORED = Path(__file__).parent / "table.txt"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_what_is_published(row: Row) -> None:
    found = measure(row)
    assert agrees(row, found), found


@pytest.mark.parametrize("row", [row for row in ROWS if row.knobs in (G1, G2)], ids=lambda row: row.name)
def test_the_other_generation_does_not_pass_for_it(row: Row) -> None:
    other = replace(row, knobs=G2 if row.knobs == G1 else G1)
    assert not agrees(row, measure(other))


def test_the_last_generation_agrees_where_the_second_does() -> None:
    for name in ("G2 fixed", "G2 + flush failure", "G2 + pull failure", "shadowed A, absent"):
        row = next(row for row in ROWS if row.name == name)
        assert agrees(row, measure(replace(row, knobs=G4)))


def test_the_command_prints_what_is_stored_and_nothing_is_red() -> None:
    told = CliRunner().invoke(app, ["drain", "table"], env={"COLUMNS": "80"})
    if os.environ.get("STORMCTL_UPDATE"):
        STORED.write_text(told.stdout)
    assert told.exit_code == 0
    assert told.stdout == STORED.read_text()
    assert "23 rows, 0 red" in told.stdout


def test_a_wrong_cell_is_red_and_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(ROWS[0], before="(3,[A,B],[])")
    monkeypatch.setattr("stormctl.drain.table.ROWS", (wrong, *ROWS[1:2]))
    told = CliRunner().invoke(app, ["drain", "table"])
    assert told.exit_code == 1
    assert "RED G1 baseline" in told.stdout
    assert "2 rows, 1 red" in told.stdout
    assert CliRunner().invoke(app, ["drain", "table", "--report-only"]).exit_code == 0
