"""The heat map as a picture."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from stormctl.errors import UsageError
from stormctl.report.binding_map import (
    MOST_COLUMNS,
    MOST_ROWS,
    STEP_COLOURS,
    binding_figure,
    colours,
    image,
    write_picture,
)
from stormctl.sweeps.bindings import BindingMap, Span

STEPS = [f"step:{name}" for name in ("audit", "bill", "charge", "deliver", "estimate", "file", "greet", "hold", "item")]


def many(columns: int, ranks: int) -> BindingMap:
    """A staircase; the rank in the middle is another step for one prefix only."""
    rows = {}
    for rank in range(ranks):
        first = rank * columns // ranks
        rows[rank] = (Span(first, columns - 1, STEPS[rank % 3]),)
    middle = ranks // 2
    first = rows[middle][0].first
    at = (first + columns) // 2
    was = rows[middle][0].label
    rows[middle] = (Span(first, at - 1, was), Span(at, at, "step:odd"), Span(at + 1, columns - 1, was))
    return BindingMap("nets", "", tuple(range(3, columns + 3)), rows)


def storm() -> BindingMap:
    return BindingMap(
        "nets",
        "step-storm",
        tuple(range(600, 640)),
        {
            196: (Span(3, 39, "wait"),),
            197: (Span(5, 39, "step:releaseStep"),),
            198: (Span(6, 11, "step:finalizeStep"), Span(12, 39, "step:releaseStep")),
        },
        diverges=30,
        lost=198,
        expected="step:finalizeStep",
    )


def test_a_binding_of_a_single_prefix_is_not_thinned_out() -> None:
    found = many(10_000, 3_000)
    known = colours(found)
    cells, palette = image(found, known)
    assert cells.shape[0] <= MOST_ROWS
    assert cells.shape[1] <= MOST_COLUMNS
    assert (cells == palette.index(known["step:odd"][1])).sum() == 1


def test_a_small_map_has_a_cell_for_each_rank_and_prefix() -> None:
    found = many(30, 10)
    cells, palette = image(found, known := colours(found))
    assert cells.shape == (10, 30)
    for rank in range(10):
        for column in range(30):
            label = found.at(rank, column)
            wanted = "white" if label is None else known[label][1]
            assert palette[cells[rank, column]] == wanted


def test_every_step_has_a_colour_of_its_own_while_there_are_enough() -> None:
    rows = {rank: (Span(0, 1, label),) for rank, label in enumerate([*STEPS[:7], "wait", "hook"])}
    known = colours(BindingMap("nets", "", (1, 2), rows))
    assert [known[label][1] for label in STEPS[:7]] == list(STEP_COLOURS)
    assert len({colour for _, colour in known.values()}) == 9


def test_two_engines_give_a_step_the_same_colour_also_where_one_of_them_went_less_far() -> None:
    steps = tuple(STEPS[:3])
    one = BindingMap("nets", "", (1, 2), {0: (Span(0, 0, STEPS[2]), Span(1, 1, STEPS[1]))}, steps=steps)
    two = BindingMap("dispenser", "", (1, 2), {0: (Span(0, 1, STEPS[2]),)}, steps=steps)
    assert colours(one)[STEPS[2]] == colours(two)[STEPS[2]]
    assert list(colours(two)) == [STEPS[2]]


def test_with_more_steps_than_colours_those_that_flip_keep_theirs() -> None:
    rows = {rank: (Span(0, 1, label),) for rank, label in enumerate(STEPS * 3)}
    rows[99] = (Span(0, 0, "step:x"), Span(1, 1, "step:y"))
    known = colours(BindingMap("nets", "", (1, 2), rows))
    own = [label for label, (word, _) in known.items() if not word.startswith("other steps")]
    assert {"step:x", "step:y"} <= set(own)
    assert len(own) == len(STEP_COLOURS) - 1
    assert {word for word, _ in known.values() if word.startswith("other")} == {f"other steps ({11 - len(own)})"}


class TestFigure:
    def test_says_what_happened_and_marks_it_in_both_panels(self) -> None:
        made = binding_figure(storm(), "a.ndjson")
        assert made.get_suptitle().splitlines()[1] == "a.ndjson, 40 prefixes, 1 flip, diverges at 630"
        above, below = made.axes
        assert "diverges at 630" in [text.get_text().strip() for text in above.texts]
        words = [text.get_text() for text in below.texts]
        assert words == ["wait", "releaseStep", "finalizeStep", "releaseStep", "log: finalizeStep"]
        (legend,) = made.legends
        assert [text.get_text() for text in legend.texts] == [
            "finalizeStep", "releaseStep", "wait", "flip", "divergence",
        ]  # fmt: skip

    def test_of_a_quiet_log_is_the_overview_alone(self) -> None:
        quiet = BindingMap("nets", "", (1, 2, 3), {0: (Span(0, 2, "hook"),)})
        made = binding_figure(quiet)
        assert len(made.axes) == 1
        assert made.get_suptitle().endswith("3 prefixes, no flips")

    @pytest.mark.parametrize("prefixes", [(), (1,), (5, 900, 40_000)])
    def test_is_drawn_of_whatever_was_replayed(self, prefixes: tuple[int, ...], tmp_path: Path) -> None:
        rows = {0: (Span(0, len(prefixes) - 1, "hook"),)} if prefixes else {}
        assert write_picture(BindingMap("nets", "", prefixes, rows), tmp_path / "a.png").stat().st_size > 0


class TestFiles:
    def test_the_suffix_chooses_the_kind_and_the_width_is_800(self, tmp_path: Path) -> None:
        png = write_picture(storm(), tmp_path / "a.png").read_bytes()
        assert struct.unpack(">II", png[16:24])[0] == 800
        assert "<svg" in write_picture(storm(), tmp_path / "a.svg").read_text()

    def test_the_same_map_gives_the_same_bytes_over_what_lay_there(self, tmp_path: Path) -> None:
        for name in ("a.png", "a.svg"):
            first = write_picture(storm(), tmp_path / name).read_bytes()
            assert write_picture(storm(), tmp_path / name).read_bytes() == first

    def test_another_suffix_or_a_folder_that_is_not_there_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no kind of picture"):
            write_picture(storm(), tmp_path / "a.gif")
        with pytest.raises(UsageError, match="cannot be written"):
            write_picture(storm(), tmp_path / "none" / "a.png")
