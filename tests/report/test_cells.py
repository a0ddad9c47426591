"""The matrix as a heat map."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stormctl.report.cells import cells_figure, grid
from stormctl.report.load import Artefact, load_artefact
from stormctl.report.pictures import pictures
from stormctl.report.style import label, save
from stormctl.storm.outcome import Outcome
from tests.report.synthetic import attempts, build


def words(artefact: Artefact) -> list[str]:
    return [text.get_text() for text in cells_figure(artefact).axes[0].texts]


def test_each_cell_says_how_often_it_was_corrupted_and_how_sure_that_is(tmp_path: Path) -> None:
    said = words(load_artefact(build(tmp_path)))
    assert said == ["6/8", "41 to 93 %", "4/7", "25 to 84 %", "0/8", "0 to 32 %", "0/8", "0 to 32 %"]


def test_rows_are_arms_and_columns_are_scenarios_with_the_world_where_there_are_several(tmp_path: Path) -> None:
    artefact = load_artefact(build(tmp_path))
    down, across, _ = grid(artefact)
    assert (down, across) == (["main + nets", "seq-final + dispenser"], ["step-storm", "hook-storm"])
    elsewhere = [replace(one, cell=replace(one.cell, world="postgres")) for one in attempts()[:8]]
    down, across, found = grid(replace(artefact, attempts=(*artefact.attempts, *elsewhere)))
    assert across == ["step-storm\nlocal", "hook-storm\nlocal", "step-storm\npostgres"]
    assert len(found) == 5
    assert "not planned" in words(replace(artefact, attempts=(*artefact.attempts, *elsewhere)))


def test_a_cell_of_which_nothing_says_anything_has_no_shade(tmp_path: Path) -> None:
    artefact = load_artefact(build(tmp_path))
    infra = tuple(replace(one, outcome=Outcome.INFRA) for one in artefact.attempts)
    assert set(words(replace(artefact, attempts=infra))) == {"nothing judged"}


def test_black_and_white_are_chosen_by_contrast(tmp_path: Path) -> None:
    artefact = load_artefact(build(tmp_path))
    panel = cells_figure(artefact).axes[0]
    inks = {text.get_text(): text.get_color() for text in panel.texts}
    assert inks["0/8"] == "black"
    assert inks["6/8"] == "white"


def test_an_empty_storm_still_draws(tmp_path: Path) -> None:
    assert cells_figure(replace(load_artefact(build(tmp_path)), attempts=(), plan=None)).axes


@pytest.mark.parametrize(
    "name", ["$\\frac{$", "main[" + ",".join(f"knob_{index}=value_{index}" for index in range(30)) + "]"]
)
def test_a_name_that_is_a_formula_or_has_no_room_is_still_drawn(tmp_path: Path, name: str) -> None:
    artefact = load_artefact(build(tmp_path / "storm"))
    made = tuple(replace(one, cell=replace(one.cell, scenario=name, condition=name)) for one in artefact.attempts)
    artefact = replace(artefact, attempts=made, plan=None)
    for one in pictures(artefact):
        for path in save(one.figure, tmp_path / one.name):
            assert path.stat().st_size > 5_000


def test_what_is_left_out_of_a_long_name_is_its_middle() -> None:
    assert label("main") == "main"
    assert label("seq-final[a=1,b=2,c=3,d=4]\nx", 20) == "seq-fina...,c=3,d=4]\nx"
    assert len(label("x" * 400, 30)) == 30
