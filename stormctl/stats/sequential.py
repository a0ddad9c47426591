"""A test that may be looked at after every pair of attempts, for ``run --until-resolved``.

Attempts are taken in pairs, one of each arm, in an order that is fixed before the storm. A pair in which both or
neither hit says nothing of which arm hits more. In one that differs, when the arms are equal, either is as likely to
be the one that hit: the lead is a fair coin's walk, whatever the rate is, and also when it differs from scenario to
scenario or drifts while the storm runs (Wald, Sequential Analysis 1947, chapter 6; at one look, McNemar's exact test).

How far the walk may go before the arms are called different is chosen at each pair so that the chance of having gone
that far, which is computed exactly, stays below an error that is spent as the storm goes on: Lan and DeMets (Biometrika
1983, 70:659-663) with their spending function of Pocock's kind, alpha ln(1 + (e - 1) t), at the share t of the pairs
planned. Which pairs differ is ancillary, so the error rate holds given any pattern of them, and thus overall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the test stands. ``first_only`` pairs had a hit in the first arm alone, ``second_only`` in the second.

    ``sign`` is 1 when the first arm hits more, -1 when the second does, 0 while they are not told apart.
    ``lead_needed`` is the lead that tells them apart now; None while too few pairs differed for any.
    """

    pairs: int
    planned: int
    first_only: int
    second_only: int
    lead_needed: int | None
    sign: int

    @property
    def lead(self) -> int:
        """By how many pairs the first arm is ahead."""
        return self.first_only - self.second_only


class PairTest:
    """The test for up to ``planned`` pairs at a two-sided error rate ``alpha``: each side gets half of it."""

    def __init__(self, planned: int, alpha: float = ALPHA) -> None:
        if planned < 1 or not 0 < alpha < 1:
            raise ValueError(f"a test of {planned} pairs at alpha {alpha} cannot be made")
        self._planned, self._alpha = planned, alpha
        self._pairs = self._first = self._second = 0
        self._sign = 0
        #: of equal arms: the chance of each lead from -reach to reach, every second one, without a decision before
        self._chances = [1.0]
        self._reach = 0
        self._spent = 0.0

    @property
    def standing(self) -> Standing:
        needed = self._reach + 2
        within = needed <= self._first + self._second
        return Standing(self._pairs, self._planned, self._first, self._second, needed if within else None, self._sign)

    @property
    def spent(self) -> float:
        """The chance that equal arms would have been called different by now, given which pairs differed."""
        return self._spent

    def add(self, first: bool, second: bool) -> int:  # noqa: FBT001 - the pair's two outcomes
        """Take in the next pair; the sign as of :class:`Standing`. After the end, or a decision, nothing changes."""
        if self._sign or self._pairs >= self._planned:
            return self._sign
        self._pairs += 1
        if first != second:
            self._first += first
            self._second += second
            self._step()
        self._trim()
        lead = self._first - self._second
        if abs(lead) > self._reach:
            self._sign = 1 if lead > 0 else -1
        return self._sign

    def _step(self) -> None:
        halves = [chance / 2 for chance in self._chances]
        self._chances = [up + down for up, down in zip([*halves, 0.0], [0.0, *halves], strict=True)]
        self._reach += 1

    def _trim(self) -> None:
        """Call as many of the outermost leads different as the error that may be spent by now allows."""
        allowed = self._alpha * math.log1p((math.e - 1) * self._pairs / self._planned)
        while self._reach > 0 and self._spent + 2 * self._chances[0] <= allowed:
            self._spent += 2 * self._chances[0]
            self._chances = self._chances[1:-1]
            self._reach -= 2


@dataclass(frozen=True, slots=True)
class Expected:
    """What simulated storms came to: the share that told the arms apart, and the pairs that they took on average."""

    storms: int
    resolved: float
    wrong: float
    pairs: float


def expected(p1: float, p2: float, planned: int, alpha: float = ALPHA, *, storms: int = 400, seed: int = 1) -> Expected:
    """Simulate storms whose arms hit at rates p1 and p2. ``wrong`` is the share that named the smaller one larger, or
    either one where they are equal."""
    draw = Random(f"{seed} {p1} {p2} {planned} {alpha}")
    meant = (p1 > p2) - (p1 < p2)
    resolved = wrong = pairs = 0
    for _ in range(storms):
        test = PairTest(planned, alpha)
        sign = 0
        while not sign and test.standing.pairs < planned:
            sign = test.add(draw.random() < p1, draw.random() < p2)
        resolved += sign != 0
        wrong += sign not in (0, meant)
        pairs += test.standing.pairs
    return Expected(storms, resolved / storms, wrong / storms, pairs / storms)
