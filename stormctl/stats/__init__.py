"""Statistics that a storm needs: rates with intervals, the difference of two, durations. Pure functions of numbers."""

from stormctl.stats.compare import Difference, difference
from stormctl.stats.durations import Percentiles, percentiles
from stormctl.stats.rates import Rate, wilson

__all__ = ["Difference", "Percentiles", "Rate", "difference", "percentiles", "wilson"]
