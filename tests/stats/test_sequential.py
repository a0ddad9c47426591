"""The test that may be looked at after every pair: its false alarms, summed and simulated, and what it costs."""

from __future__ import annotations

import math
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.stats import PairTest, expected

ALPHA = 0.05


def play(pairs: list[tuple[bool, bool]], planned: int, alpha: float = ALPHA) -> PairTest:
    test = PairTest(planned, alpha)
    for first, second in pairs:
        if test.add(first, second):
            break
    return test


def with_signs(differs: list[bool], signs: tuple[bool, ...]) -> list[tuple[bool, bool]]:
    """Pairs that differ where they are said to, the first arm hit where the sign is set."""
    left = iter(signs)
    return [(sign, not sign) if one and (sign := next(left)) in (True, False) else (False, False) for one in differs]


class TestFalseAlarms:
    @pytest.mark.parametrize(
        "differs",
        [
            [True] * 13,
            [True, False] * 9,
            [False] * 6 + [True] * 11,
            [True] * 8 + [False] * 12,
            [True, True, False] * 6,
        ],
    )
    def test_summed_over_every_way_that_equal_arms_can_go_are_what_the_test_says_it_spent(
        self, differs: list[bool]
    ) -> None:
        """Given which pairs differ, every way is equally likely: no simulation, no assumption about the rate."""
        ways = list(product((False, True), repeat=sum(differs)))
        alarms = [play(with_signs(differs, way), len(differs)).standing.sign for way in ways]
        share = sum(sign != 0 for sign in alarms) / len(ways)
        assert share == pytest.approx(_spent_undecided(differs), abs=1e-12)
        assert 0 < share <= ALPHA
        assert alarms.count(1) == alarms.count(-1)

    @given(st.lists(st.booleans(), min_size=1, max_size=60), st.sampled_from([0.01, 0.05, 0.2]))
    @settings(max_examples=60)
    def test_never_spend_more_than_the_stated_rate_whichever_pairs_differ(
        self, differs: list[bool], alpha: float
    ) -> None:
        assert _spent_undecided(differs, alpha) <= alpha + 1e-12

    def test_a_plan_of_ten_thousand_pairs_spends_nearly_all_and_no_more(self) -> None:
        assert 0.98 * ALPHA <= _spent_undecided([True] * 10_000) <= ALPHA

    @pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9])
    def test_simulated_are_at_most_the_stated_rate(self, share: float) -> None:
        found = expected(share, share, 24, storms=10_000, seed=8)
        assert found.wrong == found.resolved <= ALPHA

    def test_stay_so_when_the_rate_drifts_and_differs_by_scenario(self) -> None:
        """What single storms cannot compare: the rate falls from 80 to 10 percent, every second pair is of a scenario
        that hardly ever is corrupted."""
        draw, alarms, storms = Random(8), 0, 2000
        for _ in range(storms):
            shares = [(0.8 - 0.7 * index / 39) * (0.1 if index % 2 else 1) for index in range(40)]
            alarms += play([(draw.random() < p, draw.random() < p) for p in shares], 40).standing.sign != 0
        assert alarms / storms <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / storms)

    def test_a_test_that_looks_at_every_pair_without_allowing_for_it_would_have_twice_as_many(self) -> None:
        """The twin: the sign test at 5 percent, repeated after each pair."""
        draw = np.random.default_rng(8)
        walks = np.cumsum(draw.choice((-1, 1), size=(4000, 24)), axis=1)
        bounds = []
        for n in range(1, 25):
            tails = [sum(math.comb(n, k) for k in range(high, n + 1)) * 2 / 2**n for high in range(n + 1)]
            first = next((high for high in range(n // 2 + 1, n + 1) if tails[high] <= ALPHA), None)
            bounds.append(math.inf if first is None else 2 * first - n)
        assert (np.abs(walks) >= np.array(bounds)).any(axis=1).mean() > 2 * ALPHA


class TestWhatItCosts:
    def test_arms_that_are_far_apart_are_told_in_half_of_the_storm(self) -> None:
        found = expected(0.8, 0.2, 24, storms=1000, seed=8)
        assert found.resolved > 0.97
        assert found.wrong == 0
        assert found.pairs == pytest.approx(12.1, abs=0.8)

    def test_a_longer_plan_costs_a_clear_difference_little(self) -> None:
        found = expected(0.8, 0.2, 200, storms=300, seed=8)
        assert found.resolved == 1.0
        assert found.pairs == pytest.approx(16.6, abs=1.5)

    def test_a_small_difference_takes_most_of_the_plan(self) -> None:
        found = expected(0.5, 0.4, 60, storms=200, seed=8)
        assert found.resolved < 0.4
        assert found.pairs > 45

    @given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=50))
    @settings(max_examples=60)
    def test_swapping_the_arms_mirrors_what_it_says(self, pairs: list[tuple[bool, bool]]) -> None:
        there = play(pairs, 50).standing
        back = play([(second, first) for first, second in pairs], 50).standing
        assert (back.sign, back.pairs, back.lead) == (-there.sign, there.pairs, -there.lead)

    def test_the_fewest_pairs_that_decide_anything_are_six(self) -> None:
        """Six of six has p 0.031, and five of five 0.0625: no test at 5 percent decides sooner."""
        assert play([(True, False)] * 5, 5).standing.sign == 0
        assert play([(True, False)] * 6, 6).standing.sign == 1


class TestWhereItStands:
    def test_counts_pairs_and_says_which_lead_would_decide(self) -> None:
        test = play([(True, False)] * 4 + [(True, True)] * 2 + [(False, True)] + [(True, False)] * 2, 24)
        now = test.standing
        assert (now.pairs, now.planned, now.first_only, now.second_only, now.lead) == (9, 24, 6, 1, 5)
        assert now.lead_needed == 7
        assert now.sign == 0
        assert test.add(True, False) == test.add(True, False) == 0  # a lead of 6 of 8, of 7 of 9
        assert test.add(True, False) == 1  # and of 8 of 10
        assert (test.standing.lead, test.standing.lead_needed) == (8, 8)

    def test_nothing_changes_after_a_decision_or_the_end(self) -> None:
        decided = play([(True, False)] * 20, 24)
        before = decided.standing
        assert before.sign == 1
        assert decided.add(False, True) == 1
        assert decided.standing == before
        ended = play([(True, True)] * 3, 3)
        assert ended.add(True, False) == 0
        assert ended.standing.pairs == 3

    def test_the_same_pairs_say_the_same(self) -> None:
        assert expected(0.6, 0.3, 30, storms=50) == expected(0.6, 0.3, 30, storms=50)

    @pytest.mark.parametrize(("planned", "alpha"), [(0, 0.05), (10, 0.0), (10, 1.0)])
    def test_what_is_no_test_is_refused(self, planned: int, alpha: float) -> None:
        with pytest.raises(ValueError, match="cannot be made"):
            PairTest(planned, alpha)


def _spent_undecided(differs: list[bool], alpha: float = ALPHA) -> float:
    """The error that a storm with this pattern may spend to its end: read off a walk that goes to and fro."""
    test = PairTest(len(differs), alpha)
    ahead = False
    for one in differs:
        ahead = ahead != one
        test.add(one and ahead, one and not ahead)
    return test.spent
