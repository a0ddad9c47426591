from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from stormctl.report.facts import storm_facts
from stormctl.report.facts_json import report_json
from stormctl.report.grid_text import grid_markdown
from stormctl.report.grids import grids
from stormctl.report.html import html_text
from stormctl.report.lane import Lane
from stormctl.report.load import Artefact, load_artefact
from stormctl.report.printed import printed
from stormctl.report.step_summary import report_markdown, step_summary
from stormctl.report.storm import render_storm
from stormctl.report.summary import summary_text, write_summary
from stormctl.storm.outcome import Outcome
from tests.report.synthetic import build
from tests.report.with_logs import build_with_logs


@pytest.fixture
def artefact(tmp_path: Path) -> Artefact:
    return load_artefact(build(tmp_path))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_verdict_comes_first(artefact: Artefact) -> None:
    first = summary_text(artefact).splitlines()[0]
    assert first.startswith("**old: main + nets corrupted 10/15")


def test_it_is_written_beside_the_attempts(artefact: Artefact) -> None:
    path = write_summary(artefact)
    assert path == artefact.folder / "summary.md"
    assert path.read_text() == summary_text(artefact)


def test_every_table_has_as_many_cells_in_each_line(artefact: Artefact) -> None:
    tables = [block.splitlines() for block in summary_text(artefact).split("\n\n") if block.startswith("|")]
    assert len(tables) == 9
    for table in tables:
        assert len({len(cells(line)) for line in table}) == 1


def test_the_outcome_table_says_what_the_terminal_says(artefact: Artefact) -> None:
    assert "| step-storm | main + nets | 8 | 1 | 6/8 (75 %, 41 to 93) | 1 | 0 | 0 |" in summary_text(artefact)


def test_it_holds_every_table_of_the_report(tmp_path: Path, root: Path) -> None:
    """What ``run`` leaves beside the attempts is what ``report --format md`` says later: one text from one place."""
    artefact = load_artefact(build_with_logs(tmp_path / "storm", root))
    worked = [replace(one, work={**one.work, "divergences": 2, "restarts": 3}) for one in artefact.attempts]
    artefact = replace(artefact, attempts=tuple(worked))
    facts = storm_facts(artefact)
    text = summary_text(artefact)
    shown = [grid for grid in (*printed(artefact, facts), *grids(facts)) if grid.rows]
    assert {
        "outcomes", "comparisons", "sweeps", "durations", "work", "findings-by-outcome", "signatures",
        "divergence-warnings", "stuck", "quantities", "latencies",
    } <= {grid.key for grid in shown}  # fmt: skip
    for grid in shown:
        assert grid_markdown(grid) in text
    lane = Lane("local", artefact)
    assert report_markdown(lane, facts) == text
    assert step_summary([(lane, facts)]) == text
    page = html_text(artefact, facts, seconds=0)
    for grid in shown:
        assert f'id="table-{grid.key}"' in page


def test_the_conclusion_of_a_sequential_test_is_told_in_every_form(artefact: Artefact) -> None:
    said = "resolved: main + nets corrupts more after 7 of 24 pairs"
    (artefact.folder / "until.json").write_text(json.dumps({"schema": "stormctl.until/1", "conclusion": said}))
    facts = storm_facts(artefact)
    assert said in summary_text(artefact)
    assert said in html_text(artefact, facts, seconds=0)
    assert report_json(Lane("local", artefact), facts)["until"] == said
    console = Console(file=io.StringIO(), width=80)
    render_storm(artefact, console)
    assert console.file.getvalue().splitlines()[-1] == said  # type: ignore[attr-defined]


@pytest.mark.parametrize("damaged", ["", "{}", '{"conclusion": 3}', "[]", "\x00"])
def test_a_damaged_conclusion_is_none(artefact: Artefact, damaged: str) -> None:
    before = summary_text(artefact)
    (artefact.folder / "until.json").write_text(damaged)
    assert summary_text(artefact) == before


def test_the_configuration_is_folded_away(artefact: Artefact) -> None:
    text = summary_text(artefact)
    assert text.rstrip().endswith("</details>")
    assert "schema: stormctl.plan/1" in text[text.index("<details>") :]


def test_at_most_ten_gating_attempts_and_three_of_infra_are_listed(artefact: Artefact) -> None:
    bad = [replace(artefact.attempts[0], outcome=Outcome.INFRA)] * 9 + [artefact.attempts[0]] * 30
    text = summary_text(replace(artefact, attempts=tuple(bad)))
    assert "Attempts that did not complete (13 of 39):" in text
    lines = [line for line in text[text.index("Attempts that did not") :].splitlines() if "wrun_" in line]
    assert ["corrupted"] * 10 + ["infra"] * 3 == [cells(line)[3] for line in lines]


def test_a_message_cannot_break_the_table_or_become_markup(artefact: Artefact) -> None:
    nasty = "a | b\n# big <script> `x` [link](y) **loud**" + "!" * 500
    text = summary_text(replace(artefact, attempts=(replace(artefact.attempts[0], error_message=nasty),)))
    line = next(line for line in text.splitlines() if "wrun_" in line)
    assert "a \\| b # big \\<script\\> \\`x\\` \\[link\\](y) \\*\\*loud\\*\\*" in line
    assert len(line) < 400


def test_a_storm_without_failures_lists_none(artefact: Artefact) -> None:
    good = tuple(one for one in artefact.attempts if one.outcome is Outcome.COMPLETED)
    assert "did not complete" not in summary_text(replace(artefact, attempts=good))
