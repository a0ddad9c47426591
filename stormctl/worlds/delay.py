"""The injected delay between minting an event and publishing it.

On one machine a file is published within a fraction of a millisecond of its minting; in production the distance is what
corrupts logs. The default is the distribution that a review of production reported for vercel/workflow #3145: creates
31 ms in the median, two seconds at most, receipts 0.4 ms. ``scale`` (a plan's ``storage_scale``) multiplies it; 0
switches it off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

_Z99 = 2.3263478740408408  # the 99th percentile of the standard normal distribution


@dataclass(frozen=True, slots=True)
class DelayShape:
    """Milliseconds. Creates are lognormal by median and 99th percentile, cut at ``longest``; receipts are constant."""

    create_median: float = 31.0
    create_p99: float = 1000.0
    longest: float = 2000.0
    receipt: float = 0.4


PRODUCTION = DelayShape()


class PublishDelay:
    """A seeded sequence of delays. Each process draws its own, so that two do not move in step."""

    def __init__(self, *, seed: int | str = 0, scale: float = 1.0, shape: DelayShape = PRODUCTION) -> None:
        self._random = Random(f"publish delay {seed}")
        self._scale = scale
        self._shape = shape
        self._mu = math.log(shape.create_median)
        self._sigma = math.log(shape.create_p99 / shape.create_median) / _Z99

    def draw(self, *, create: bool) -> float:
        """The next delay in milliseconds, scaled. Draws one number for a create whatever the scale is."""
        if not create:
            return self._shape.receipt * self._scale
        drawn = self._random.lognormvariate(self._mu, self._sigma)
        return min(drawn, self._shape.longest) * self._scale


NO_DELAY = PublishDelay(scale=0)
