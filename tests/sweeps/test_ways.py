"""The ways of the perturbation sweep, and the smallest that still does something."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stormctl.engine.door import CALM, AttributeHandling, Perturbation
from stormctl.sweeps.smallest import MOST_TRIES, smallest
from stormctl.sweeps.ways import KNOBS, away, ways, words

PLAIN = [
    {"hydration_hops": 1},
    {"hydration_hops": 8},
    {"hydration_ms": 1.0},
    {"hydration_ms": 10.0},
    {"warm": 100},
    {"warm": 50},
    {"timer_ms": 16.0},
    {"attributes": "parked"},
    {"attributes": "dropped"},
]


class TestTheSequence:
    def test_begins_with_one_knob_at_a_time(self) -> None:
        found = ways(50, 0, 100)
        assert [away(way) for way in found[:9]] == PLAIN
        assert all(2 <= len(away(way)) <= len(KNOBS) for way in found[9:])
        assert all(one == CALM.seed for one in (way.seed for way in found[:9]))

    def test_is_the_same_for_one_seed_and_another_for_another(self) -> None:
        assert ways(50, 7, 100) == ways(50, 7, 100)
        assert ways(50, 7, 100)[9:] != ways(50, 8, 100)[9:]

    def test_of_a_smaller_number_is_its_beginning(self) -> None:
        assert ways(80, 7, 100)[:30] == ways(30, 7, 100)

    def test_turns_every_knob_somewhere(self) -> None:
        turned = {knob for way in ways(60, 0, 100)[9:] for knob in away(way)}
        assert turned == set(KNOBS)

    @given(st.integers(0, 60), st.integers(0, 2**31), st.integers(0, 5000))
    def test_has_as_many_as_were_asked_for_and_none_of_them_is_calm(self, count: int, seed: int, length: int) -> None:
        found = ways(count, seed, length)
        assert len(found) == count
        assert all(away(way) for way in found)
        assert all(0 <= way.warm <= max(1, length) for way in found)


@pytest.mark.parametrize(
    ("perturbation", "text"),
    [
        (CALM, "calm"),
        (Perturbation(hydration_ms=10.0, seed=3), "hydration_ms=10"),
        (Perturbation(jitter_hops=2, seed=3), "jitter_hops=2 seed=3"),
        (Perturbation(attributes=AttributeHandling.PARKED, warm=9), "warm=9 attributes=parked"),
    ],
)
def test_a_perturbation_is_told_by_what_was_turned(perturbation: Perturbation, text: str) -> None:
    assert words(perturbation) == text


def _far(hops: int) -> int:
    return abs(hops - CALM.hydration_hops)


ALL = Perturbation(8, 10.0, 20, 99, 5, 60, 16.0, AttributeHandling.DROPPED)


class TestTheSmallest:
    def test_has_the_one_knob_that_does_it_at_the_smallest_value(self) -> None:
        found, _ = smallest(lambda way: way.hydration_ms > 0, ALL)
        assert found == Perturbation(hydration_ms=1.0)

    @pytest.mark.parametrize("least", [1, 2, 4, 17, 33, 59, 60])
    def test_finds_a_threshold(self, least: int) -> None:
        found, tries = smallest(lambda way: way.warm >= least, ALL)
        assert found == Perturbation(warm=least)
        assert tries <= MOST_TRIES

    @pytest.mark.parametrize(("hops", "nearest"), [({1, 2}, 2), ({5, 8}, 5), ({7, 8}, 7), ({8}, 8), ({1, 8}, 1)])
    def test_costs_of_hops_come_as_near_to_calm_as_they_can(self, hops: set[int], nearest: int) -> None:
        found, _ = smallest(lambda way: way.hydration_hops in hops, replace(ALL, hydration_hops=max(hops, key=_far)))
        assert found == Perturbation(hydration_hops=nearest)

    def test_keeps_two_knobs_where_neither_does_it_alone(self) -> None:
        found, _ = smallest(lambda way: way.warm >= 10 and way.timer_ms > 1, ALL)
        assert found == Perturbation(warm=10, timer_ms=2.0)

    def test_takes_the_smallest_jitter_of_any_seed_and_a_small_seed_where_it_does_it_too(self) -> None:
        found, _ = smallest(lambda way: way.jitter_ms >= 1 and way.seed != 0, ALL)
        assert found == Perturbation(jitter_ms=1, seed=1)
        found, _ = smallest(lambda way: way.jitter_ms >= 1 and way.seed == 99, ALL)
        assert found == Perturbation(jitter_ms=1, seed=99)

    def test_is_the_start_where_nothing_smaller_does_it(self) -> None:
        start = Perturbation(timer_ms=2.0)
        assert smallest(lambda way: way == start, start)[0] == start

    def test_gives_up_in_time_with_the_best_so_far(self) -> None:
        asked = []

        def only_the_start(way: Perturbation) -> bool:
            asked.append(way)
            return way == ALL

        assert smallest(only_the_start, ALL, most=20) == (ALL, 20)
        assert len(asked) == 20

    @given(
        st.builds(
            Perturbation,
            st.integers(1, 8), st.integers(0, 12).map(float), st.integers(0, 30), st.integers(0, 99), st.integers(0, 8),
            st.integers(0, 90), st.sampled_from((1.0, 4.0, 16.0)), st.sampled_from(AttributeHandling),
        ),
        st.sets(st.sampled_from(KNOBS), min_size=1, max_size=3),
    )  # fmt: skip
    def test_still_does_it_and_has_no_knob_too_many(self, start: Perturbation, needed: set[str]) -> None:
        def does_it(way: Perturbation) -> bool:
            return needed <= away(way).keys()

        assume(does_it(start))
        found, tries = smallest(does_it, start)
        assert away(found).keys() == needed
        assert tries <= MOST_TRIES
        for knob in needed - {"attributes"}:
            assert not does_it(replace(found, **{knob: getattr(CALM, knob)}))
