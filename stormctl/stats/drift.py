"""Whether a rate held still while it was measured.

A storm's rates move with the machine, the deployment and the hour: three storms of one condition had 323, 210 and 167
corrupted of 600 (vercel/workflow #3198). An interval knows only of chance. So each condition's attempts are cut in two
halves by their start, and halves that disagree are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stormctl.stats.exact import boschloo
from stormctl.stats.rates import Rate

#: fewer attempts than this cannot disagree at all: 4 of 4 against 0 of 4 has p 0.008, 2 of 2 against 0 of 2 has 0.13
FEWEST = 6


@dataclass(frozen=True, slots=True)
class Halves:
    """The earlier and the later attempts of one condition, and the two-sided p that their rates are equal."""

    earlier: Rate
    later: Rate
    p: float


def halves(hits: Sequence[bool]) -> Halves | None:
    """The halves of the attempts in the order of their start; the middle one of an odd number is a later one.

    None with too few to say anything.
    """
    if len(hits) < FEWEST:
        return None
    middle = len(hits) // 2
    earlier, later = Rate(sum(hits[:middle]), middle), Rate(sum(hits[middle:]), len(hits) - middle)
    p = boschloo(earlier, later)
    return None if p is None else Halves(earlier, later, p)
