"""Statistics that a storm needs: rates with intervals, two rates compared, how many attempts that takes, durations.

Pure functions of numbers. What is used where, and why, is in docs/statistics.md.
"""

from stormctl.stats.compare import Difference, difference
from stormctl.stats.drift import Halves, halves
from stormctl.stats.durations import Percentiles, percentiles
from stormctl.stats.exact import boschloo, holm, stratified
from stormctl.stats.power import Needed, attempts_needed, power_of
from stormctl.stats.rates import Rate, wilson
from stormctl.stats.sequential import Expected, PairTest, Standing, expected
from stormctl.stats.strata import stratified_difference

__all__ = [
    "Difference",
    "Expected",
    "Halves",
    "Needed",
    "PairTest",
    "Percentiles",
    "Rate",
    "Standing",
    "attempts_needed",
    "boschloo",
    "difference",
    "expected",
    "halves",
    "holm",
    "percentiles",
    "power_of",
    "stratified",
    "stratified_difference",
    "wilson",
]
