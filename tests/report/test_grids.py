"""The tables themselves: at 80 columns without colour, and in markdown."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from stormctl.report.facts import storm_facts
from stormctl.report.grid_text import grid_markdown, grid_parts
from stormctl.report.grids import Grid, grids, number
from stormctl.report.histogram_of import EDGES, histogram
from stormctl.report.load import load_artefact
from tests.report.logs import SEQUENTIAL, lay_log, tried
from tests.report.synthetic import build

RUN = "wrun_step-storm-seq-final-01"


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Grid]:
    folder = build(tmp_path)
    refused = tried(RUN, 6, "w1", reason="conflict: there already")
    lay_log(folder, RUN, SEQUENTIAL, audit=[tried(RUN, 5, "w1", "step_completed"), tried(RUN, 7, "w1"), refused])
    path = folder / "attempts.ndjson"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[8]["work"]["divergences"] = 3
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {one.key: one for one in grids(storm_facts(load_artefact(folder)))}


def shown(grid: Grid, width: int = 80) -> str:
    room = io.StringIO()
    console = Console(file=room, width=width, highlight=False)
    for part in grid_parts(grid):
        console.print(part)
    return room.getvalue()


def test_every_table_has_its_place(tables: dict[str, Grid]) -> None:
    assert list(tables) == [
        "findings-by-outcome", "signatures", "divergence-warnings", "divergences-by-run", "stuck", "quantities",
        "refusals", "latencies",
    ]  # fmt: skip


def test_every_row_has_a_cell_for_each_column(tables: dict[str, Grid]) -> None:
    for grid in tables.values():
        assert {len(cells) for _, cells in grid.rows} == {len(grid.head)}


def test_no_line_is_wider_than_the_terminal(tables: dict[str, Grid]) -> None:
    for grid in tables.values():
        assert all(len(line) <= 80 for line in shown(grid).splitlines()), grid.key
        assert "…" not in shown(grid), grid.key


def test_a_signature_is_counted_and_shown_with_a_run(tables: dict[str, Grid]) -> None:
    text = shown(tables["signatures"])
    assert "step_created: log has releaseStep, workflow calls finalizeStep" in text
    assert "such as wrun_step-storm-main-01" in text
    assert "position 132" in text


def test_latencies_have_a_strip_of_their_histogram(tables: dict[str, Grid]) -> None:
    text = shown(tables["latencies"])
    assert "█" in text
    assert "step to step, inline" in text


def test_markdown_has_as_many_cells_in_each_line(tables: dict[str, Grid]) -> None:
    for grid in tables.values():
        lines = [line for line in grid_markdown(grid).splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) == 1


def test_a_hostile_row_is_harmless_in_both() -> None:
    nasty = "x | <b> @octocat ::set-output name=a::b \x1b[2J\n# y"
    grid = Grid("k", nasty, (nasty, "n"), 1, ((nasty, (nasty, "1")),), about=nasty, more=nasty)
    text = shown(grid)
    assert "\x1b" not in text
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    markdown = grid_markdown(grid)
    assert "\x1b" not in markdown
    assert "@octocat" not in markdown
    assert "<b>" not in markdown.replace("\\<b\\>", "")


def test_numbers_say_what_can_be_read_of_them() -> None:
    assert [number(value) for value in (0, 3, 3.44, 17.6, 1204.3)] == ["0", "3", "3.4", "18", "1204"]


def test_a_histogram_counts_every_value_once() -> None:
    found = histogram([0.0, 0.999, 1.0, 1.5, 2.0, 499_999.0, 500_000.0, 9e9, -3.0])
    assert sum(found.counts) == 9
    assert found.counts[:3] == (3, 2, 1)
    assert found.counts[-1] == 2
    assert len(found.counts) == len(EDGES) + 1
    assert len(found.strip) == len(found.counts)
    assert histogram([]).strip == ""
