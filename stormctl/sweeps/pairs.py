"""Two captures of one run, judged by the sweep that is about both: the earlier is the beginning of the later."""

from __future__ import annotations

from stormctl.history import Capture
from stormctl.sweeps.base import SWEEPS
from stormctl.sweeps.finding import SweepResult
from stormctl.sweeps.profiles import AUTO
from stormctl.sweeps.reading import reading_of
from stormctl.sweeps.registered import in_order

NAME = "append-only"


def judge_pair(later: Capture, profile: str = AUTO) -> SweepResult:
    """What ``append-only`` says of a capture that has its earlier one beside it. UsageError for a profile that there is
    not."""
    in_order()  # registers the sweeps
    return SWEEPS[NAME].judge(later, None, reading_of(later, profile).profile)
