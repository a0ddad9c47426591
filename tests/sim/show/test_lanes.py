"""Pictures of schedules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.sim.show.lanes import WIDTH, Lanes, Row, drawn, extent

HOLE = Lanes(
    "in-flight, in a world that numbers at mint",
    ("H", "O1"),
    (
        Row("O1", "run_started", 2),
        Row("H", "mint 4"),
        Row("O1", "wait_completed", 5, raced=True),
        Row("O1", "read", saw=(1, 2, 3, 5), missed=(4,)),
        Row("O1", "step_created release", 6),
        Row("H", "hook_received", 4, raced=True),
    ),
)


def test_a_hole_and_an_overtaking_are_seen() -> None:
    assert "\n".join(drawn(HOLE)) == (
        "in-flight, in a world that numbers at mint\n"
        "   #   H                O1\n"
        "   2                    run_started\n"
        "   .   mint 4\n"
        "   5                    [wait_completed]\n"
        "   .                    read 1-3 ( ) 5\n"
        "   6                    step_created release\n"
        "   4 < [hook_received]"
    )


@pytest.mark.parametrize(
    ("saw", "missed", "text"),
    [
        ((1, 2, 3), (), "1-3"),
        ((1, 2, 3, 5), (4,), "1-3 ( ) 5"),
        ((1, 4), (2, 3), "1 ( ) ( ) 4"),
        ((7,), (), "7"),
        ((), (1,), "( )"),
        ((1, 2, 9), (), "1-2 9"),
    ],
)
def test_what_a_read_saw_is_told_in_stretches(saw: tuple[int, ...], missed: tuple[int, ...], text: str) -> None:
    assert extent(saw, missed) == text


def test_what_is_in_the_middle_of_a_long_one_is_left_out_and_said() -> None:
    rows = tuple(Row("O1", f"event_{at}", at, raced=at in (50, 60)) for at in range(1, 101))
    lines = drawn(Lanes("", ("O1",), rows), most=12)
    assert len(lines) <= 13
    assert sum("[" in line for line in lines) == 2
    left_out = sum(int(line.split()[1]) for line in lines if "more" in line)
    assert left_out + sum("event_" in line for line in lines) == 100


NAMES = ["O1", "H", "S:settle", "clock"]
ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from(NAMES),
        st.text("abc_ ", min_size=1, max_size=60),
        st.one_of(st.none(), st.integers(1, 999)),
        st.lists(st.integers(1, 40), max_size=6, unique=True).map(tuple),
        raced=st.booleans(),
    ),
    max_size=60,
)


@given(ROWS, st.integers(5, 30))
def test_a_picture_keeps_to_its_size(rows: list[Row], most: int) -> None:
    lines = drawn(Lanes("title", tuple(NAMES), tuple(rows)), most=most)
    assert len(lines) <= most + 2
    assert all(len(line) <= WIDTH for line in lines)


def test_more_lanes_than_a_screen_has_room_for_are_folded_and_the_rows_say_whose_they_are() -> None:
    names = ("H", "O1", "O2", "O3", "S:charge", "S:settle")
    rows = tuple(Row(name, "some long thing", at) for at, name in enumerate(names, 1))
    lines = drawn(Lanes("", names, rows))
    assert lines[0].split() == ["#", "H", "O", "S"]
    assert [line.split(maxsplit=1)[1] for line in lines[3:5]] == [
        "O2: some long thing",
        "O3: some long thing",
    ]
    assert all("~" not in line for line in lines)
    wide = drawn(Lanes("", names, rows), width=200)
    assert wide[0].split() == ["#", *names]


def test_beside_what_matters_rows_are_kept_that_bring_no_lane_of_their_own() -> None:
    rows = tuple(Row("O1" if at % 2 else "S:x", f"event_{at}", at, raced=at in (31, 33)) for at in range(1, 61))
    lines = drawn(Lanes("", ("O1", "S:x"), rows), most=12)
    assert lines[0].split() == ["#", "O1"]
    assert len(lines) <= 13
