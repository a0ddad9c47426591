from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from stormctl.report import tally
from stormctl.report.load import Artefact, load_artefact
from stormctl.report.storm import render_storm
from stormctl.storm.outcome import Outcome
from tests.report.synthetic import build


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    return load_artefact(build(tmp_path_factory.mktemp("storm")))


def shown(artefact: Artefact, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    render_storm(artefact, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def line_with(text: str, *words: str) -> str:
    return next(line for line in text.splitlines() if all(word in line for word in words))


def test_the_answer_is_on_the_first_two_lines(artefact: Artefact) -> None:
    first, second = shown(artefact).splitlines()[:2]
    assert first == "made-up, seed 7: 32 of 32 attempts landed"
    assert second.startswith("old: main + nets corrupted 10/15 (67 %")
    assert "new: seq-final + dispenser corrupted 0/16 (0 %, 0 to 19)" in second


@pytest.mark.parametrize(("reason", "said"), [("budget", "the launch budget ran out"), ("interrupted", "interrupted")])
def test_a_storm_that_ended_early_says_why(artefact: Artefact, reason: str, said: str) -> None:
    early = replace(artefact, attempts=artefact.attempts[:20], reason=reason)
    assert shown(early).splitlines()[0] == f"made-up, seed 7: 20 of 32 attempts landed, {said}"


def test_each_cell_has_its_outcomes_and_the_wilson_interval(artefact: Artefact) -> None:
    text = shown(artefact)
    words = line_with(text, "main + nets", "6/8").split()
    assert words == "main + nets 8 1 6/8 (75 %, 41 to 93) 1 0 0".split()
    hook = line_with(text, "main + nets", "4/7").split()
    assert hook == "main + nets 7 3 4/7 (57 %, 25 to 84) 0 0 1".split()  # infra is not among the n


def test_old_is_compared_with_new_per_scenario(artefact: Artefact) -> None:
    line = line_with(shown(artefact), "step-storm", "points")
    assert line.split() == "step-storm 6/8 0/8 +75 points (31 to 93) old corrupts more".split()


def test_stuck_is_one_number_whose_split_is_told(artefact: Artefact) -> None:
    assert "stuck: 1 slow (still making progress at the cap), 1 dormant (not)" in shown(artefact)


def test_findings_are_counted_per_sweep_and_missing_evidence_is_not_clean(artefact: Artefact) -> None:
    text = shown(artefact)
    assert "20 in 10 of 15 logs" in line_with(text, "roles")
    assert "20 in 10 of 15 logs" in line_with(text, "rebinding")  # a flip and a divergence each
    assert "unknown in 15 logs" in line_with(text, "dense")
    assert "none in 15 logs" in line_with(text, "id-order")  # its findings are inert


def test_the_histogram_and_the_folder_close_it(artefact: Artefact) -> None:
    text = shown(artefact)
    assert "▓▓▓▓" in text
    assert text.rstrip().endswith(f"artefact: {artefact.folder}")


def test_nothing_is_wider_than_eighty_columns_or_coloured(artefact: Artefact) -> None:
    text = shown(replace(artefact, folder=Path("/short")))
    lines = [line for line in text.splitlines() if not line.startswith(("old:", "note:"))]
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in text


def test_words_in_square_brackets_are_not_taken_for_markup(artefact: Artefact) -> None:
    assert "note: [bold]odd[/] name" in shown(replace(artefact, notes=("[bold]odd[/] name",)))


def test_an_empty_storm_says_that_nothing_was_judged(artefact: Artefact) -> None:
    text = shown(replace(artefact, attempts=(), logs=()))
    assert "Nothing was judged" in text
    assert "no attempt has landed" in text
    assert "0/0 (not measured)" in text


def test_a_storm_of_one_arm_compares_nothing(artefact: Artefact) -> None:
    assert artefact.plan is not None
    alone = replace(
        artefact,
        plan=replace(artefact.plan, pairs=artefact.plan.pairs[:1]),
        attempts=tuple(one for one in artefact.attempts if one.cell.condition == "main"),
    )
    assert tally.comparisons(tally.outcome_rows(alone)) == []
    assert "points" not in shown(alone)


def test_more_arms_than_fit_side_by_side_are_listed_below_each_other(artefact: Artefact) -> None:
    third = [
        replace(one, cell=replace(one.cell, condition="third"), run_id=f"third-{one.run_id}", outcome=Outcome.OTHER)
        for one in artefact.attempts[:8]
    ]
    text = shown(replace(artefact, attempts=(*artefact.attempts, *third)))
    assert line_with(text, "dense", "main + nets")
    assert line_with(text, "third + nets", "no logs")
    assert max(len(line) for line in text.splitlines() if not line.startswith(("old:", "artefact:"))) <= 80


def test_two_worlds_are_told_apart(artefact: Artefact) -> None:
    elsewhere = [replace(one, cell=replace(one.cell, world="postgres")) for one in artefact.attempts]
    both = replace(artefact, attempts=(*artefact.attempts, *elsewhere))
    assert both.arms[0] == "local/main + nets"
    assert {one.scenario for one in tally.comparisons(tally.outcome_rows(both))} == {
        "step-storm (local)",
        "step-storm (postgres)",
        "hook-storm (local)",
        "hook-storm (postgres)",
    }
