from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from stormctl.report.histogram import EVENTS, bin_edges, counts, histogram_figure, terminal_histogram
from stormctl.report.load import load_artefact
from stormctl.report.pictures import write_plots
from stormctl.report.style import LOOKS, look
from stormctl.storm.outcome import Outcome
from tests.report.synthetic import attempts, build

seconds = st.lists(st.floats(0, 1e5, allow_nan=False), min_size=1, max_size=80)


def test_edges_are_round_numbers() -> None:
    assert bin_edges([1.7, 24.1], 10) == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26]
    assert bin_edges([0.12, 0.31], 10) == pytest.approx([0.12 + 0.02 * step for step in range(11)])


@given(seconds, st.integers(2, 30))
def test_every_value_lies_in_one_bin_and_bins_are_evenly_spaced(values: list[float], wanted: int) -> None:
    edges = bin_edges(values, wanted)
    assert edges[0] <= min(values)
    assert max(values) <= edges[-1]
    assert sum(counts(values, edges)) == len(values)
    assert len(edges) <= 2 * wanted + 2
    widths = [after - before for before, after in pairwise(edges)]
    assert widths == pytest.approx([widths[0]] * len(widths), rel=1e-3)


def test_no_values_have_no_bins() -> None:
    assert bin_edges([], 10) == []


def test_outcomes_share_their_bins_and_every_attempt_is_in_one() -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(terminal_histogram(attempts()))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[0].split() == ["seconds", "completed", "corrupted", "stuck", "infra"]
    drawn = sum(line.count(one.block) for line in lines[2:] for one in LOOKS)
    assert drawn == len(attempts())


def test_events_have_bins_of_whole_events() -> None:
    console = Console(file=io.StringIO(), width=80)
    few = [replace(one, events=number) for number, one in enumerate(attempts()[:4])]
    console.print(terminal_histogram(few, measure=EVENTS))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[0].split()[0] == "events"
    assert [line.split("  ")[0].strip() for line in lines[2:]] == ["0 to 1", "1 to 2", "2 to 3", "3 to 4"]


def test_a_long_bar_is_shortened_but_a_single_attempt_stays_visible() -> None:
    one = attempts()[0]
    many = [replace(one, duration_ms=1000.0)] * 500 + [replace(one, duration_ms=9000.0)]
    console = Console(file=io.StringIO(), width=80)
    console.print(terminal_histogram(many))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 80
    assert " 500" in text
    assert "▓ 1\n" in "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_look(outcome: Outcome) -> None:
    assert look(outcome) in LOOKS
    assert (look(outcome).word == "stuck") == outcome.stuck


class TestPictures:
    def test_a_panel_per_scenario_and_arm_holds_every_attempt(self, tmp_path: Path) -> None:
        axes = histogram_figure(load_artefact(build(tmp_path))).axes
        assert [panel.get_title(loc="left") for panel in axes] == [
            f"{scenario}\n{arm}"
            for scenario in ("step-storm", "hook-storm")
            for arm in ("main + nets", "seq-final + dispenser")
        ]
        assert sum(bar.get_height() for panel in axes for bar in panel.patches) == 32  # type: ignore[attr-defined]

    def test_png_and_svg_are_written_and_are_the_same_again(self, tmp_path: Path) -> None:
        artefact = load_artefact(build(tmp_path))
        written = write_plots(artefact)
        names = ("outcomes", "cells", "durations", "events")
        assert [path.name for path in written] == [f"{name}.{kind}" for name in names for kind in ("png", "svg")]
        before = [path.read_bytes() for path in written]
        assert before[0].startswith(b"\x89PNG")
        assert b"<svg" in before[1]
        assert b"corrupted" in before[1]  # text stays text: it can be searched and read aloud
        assert [path.read_bytes() for path in write_plots(artefact)] == before

    def test_events_per_run_leave_out_what_never_became_a_run(self, tmp_path: Path) -> None:
        axes = histogram_figure(load_artefact(build(tmp_path)), EVENTS).axes
        assert sum(bar.get_height() for panel in axes for bar in panel.patches) == 31  # type: ignore[attr-defined]
        assert axes[-1].get_xlabel() == "events in the run's log"

    def test_an_empty_storm_still_draws(self, tmp_path: Path) -> None:
        artefact = replace(load_artefact(build(tmp_path)), attempts=(), plan=None)
        assert len(write_plots(artefact)) == 8
