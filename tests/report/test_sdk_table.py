"""The table of published versions: what it counts, and how it gets into its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stormctl.errors import UnreadableInput
from stormctl.report.load import Artefact, SweepResult, SweptLog
from stormctl.report.sdk_table import BEGIN, END, contradictions, put_into, table_text
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.outcome import Outcome

OLD = Cell("step-storm", "local", "workflow 4.8.9", "as published")
NEW = Cell("step-storm", "postgres x2", "workflow 5.0.0-beta.55", "WORKFLOW_LOG_ORDER_DRAWS=0")


def swept(run_id: str, verdict: str, fatal: int = 0) -> SweptLog:
    result = SweepResult("log-order", verdict, {"fatal": fatal} if fatal else {})
    return SweptLog(run_id, verdict, 100, (), (result,))


@pytest.fixture
def artefact(tmp_path: Path) -> Artefact:
    attempts = [
        Attempt(OLD, 1, "a", Outcome.COMPLETED),
        Attempt(OLD, 2, "b", Outcome.COMPLETED),
        Attempt(OLD, 3, "c", Outcome.COMPLETED),
        Attempt(OLD, 4, "d", Outcome.CORRUPTED),
        Attempt(OLD, 5, "e", Outcome.CORRUPTED),
        Attempt(OLD, 6, "f", Outcome.SLOW),
        Attempt(OLD, 7, "g", Outcome.INFRA),
        Attempt(NEW, 1, "h", Outcome.COMPLETED),
    ]
    logs = [
        swept("a", "violated", 2),
        swept("b", "clean"),
        swept("c", "unknown"),  # could not be judged: counted on neither side
        swept("d", "violated", 1),  # corrupted: no silent one
        swept("h", "clean"),
    ]
    rows = [{"run_id": "d", "predicted": True}, {"run_id": "e", "predicted": False}]
    (tmp_path / "predictions.json").write_text(json.dumps({"logs": rows}))
    env = {"platform": "Linux", "cores": 2, "load": [0.5, 1, 1], "python": "3.11.7", "started_at": "2026-12-01"}
    return Artefact(tmp_path, tuple(attempts), logs=tuple(logs), env=env, reason="done")


def test_counts_what_the_sdk_says_and_what_the_logs_say(artefact: Artefact) -> None:
    text = table_text(artefact, "make sdk-table")
    row = next(line for line in text.splitlines() if "4.8.9" in line)
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "4.8.9",
        "local",
        "step-storm",
        "6",
        "3",
        "2/6 (33 %, 10 to 70)",
        "1",
        "0 and 1 infra",
        "1 of 2",
        "1 of 2",
    ]


def test_names_switches_the_command_the_date_and_the_machine(artefact: Artefact) -> None:
    text = table_text(artefact, "make sdk-table")
    assert "| 5.0.0-beta.55, `WORKFLOW_LOG_ORDER_DRAWS=0` | postgres x2 |" in text
    assert "`make sdk-table`" in text
    assert "begun 2026-12-01" in text
    assert "Linux with 2 cores, load 0.5" in text
    assert "did not end by itself" not in text


def test_only_completed_runs_can_be_silently_wrong(artefact: Artefact) -> None:
    assert (contradictions(artefact, OLD).k, contradictions(artefact, OLD).n) == (1, 2)
    assert (contradictions(artefact, NEW).k, contradictions(artefact, NEW).n) == (0, 1)


def test_replaces_the_table_in_its_page_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "sdk.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    put_into(page, "new")
    put_into(page, "newer")
    assert page.read_text() == f"before\n{BEGIN}\n\nnewer\n\n{END}\nafter\n"


def test_a_page_without_a_place_for_it_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "sdk.md"
    page.write_text("nothing here\n")
    with pytest.raises(UnreadableInput, match="no place for the table"):
        put_into(page, "new")
    assert page.read_text() == "nothing here\n"


def test_the_page_that_ships_has_a_place_for_it(root: Path) -> None:
    text = (root / "docs" / "sdk.md").read_text()
    assert text.index(BEGIN) < text.index(END)
