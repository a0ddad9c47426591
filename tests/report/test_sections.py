"""Tables under headings: a heading has the whole width, columns of numbers stand below each other in all sections."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console
from rich.text import Text

from stormctl.report.sections import Sections
from stormctl.report.tables import outcome_table, sweep_table
from stormctl.report.tally import OutcomeRow, SweepCell, SweepRow
from stormctl.storm.attempt import Cell


def shown(made: object, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(made)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def row(heading: str | None, name: str, numbers: Sequence[str]) -> tuple[Text | None, Text, list[Text]]:
    return None if heading is None else Text(heading), Text(name), [Text(one) for one in numbers]


def test_a_heading_has_the_whole_width_and_numbers_stand_below_each_other() -> None:
    heading = "a scenario with a long name, its world"
    made = Sections(
        ("name", "n", "rate"),
        [
            row(heading, "a name too long for its column", ("1", "x" * 9)),
            row(None, "b", ("12", "y")),
            row("another", "c", ("123", "z")),
        ],
    )
    assert shown(made, 40) == [
        "name                        n       rate",
        "─" * 40,
        heading,
        "  a name too long for       1  xxxxxxxxx",
        "  its column",
        "  b                        12          y",
        "another",
        "  c                       123          z",
    ]


def test_columns_move_together_where_that_leaves_a_name_whole() -> None:
    made = Sections(("name", "n", "rate"), [row("all", "seq-final + dispenser", ("1", "x" * 9))])
    assert shown(made, 37)[3:] == ["  seq-final + dispenser  1  xxxxxxxxx"]
    assert shown(made, 35)[3:] == ["  seq-final + dispenser 1 xxxxxxxxx"]
    assert shown(made, 34)[3:] == ["  seq-final +         1  xxxxxxxxx", "  dispenser"]


@pytest.mark.parametrize("width", [80, 72, 100])
def test_long_names_of_the_real_sdk_leave_every_number_whole(width: int) -> None:
    rows = [
        OutcomeRow(
            cell=Cell(scenario, world, f"workflow 5.0.0-beta.{number}", "as published"),
            arm="",
            landed=12,
            completed=1,
            corrupted=11,
            slow=0,
            dormant=0,
            other=0,
            infra=0,
            vacuous=1,
        )
        for scenario in ("capture-step-storm", "capture-hook-storm")
        for world in ("local", "postgres")
        for number in (35, 55)
    ]
    lines = shown(outcome_table(rows), width)
    assert max(map(len, lines)) <= width
    assert sum("11/12 (92 %, 65 to 99)" in line for line in lines) == 8
    assert [line for line in lines if line.startswith("capture")] == [
        "capture-step-storm, local", "capture-step-storm, postgres",
        "capture-hook-storm, local", "capture-hook-storm, postgres",
    ]  # fmt: skip
    assert "infra" not in lines[0]  # nothing was, and names need the room


def test_of_many_arms_those_without_findings_stand_together() -> None:
    quiet, found, blind = SweepCell(logs=9), SweepCell(logs=9, violated=2, findings=3), SweepCell(logs=9, unknown=9)
    arms = [f"arm {letter}" for letter in "abcd"]
    lines = shown(
        sweep_table(
            [
                SweepRow("roles", (quiet, found, quiet, blind)),
                SweepRow("dense", (blind, blind, quiet, quiet)),
                SweepRow("ledger", (quiet,) * 4),
            ],
            arms,
        )
    )
    said = [" ".join(line.split()) for line in lines[2:]]
    assert said == [
        "roles arm b 3 in 2 of 9 logs",
        "2 others none",
        "arm d unknown",
        "dense 2 arms unknown",
        "2 others none",
        "ledger all none",
    ]
