"""What an input may count: it may come from a stranger's log, and a log is judged branch by branch."""

from __future__ import annotations

import time

import pytest

from stormctl.errors import PlanError
from stormctl.history import Capture, EventLog, Evidence, RunRow
from stormctl.sweeps import SweepPlan, sweep_log
from stormctl.workloads.base import MOST_CALLS
from stormctl.workloads.registry import WORKLOADS


@pytest.mark.parametrize("name", ["step-storm", "capture-hook-storm"])
@pytest.mark.parametrize(
    "given", [{"rounds": 2**63}, {"width": MOST_CALLS + 1}, {"rounds": 1000, "width": 1000}], ids=str
)
def test_a_run_beyond_all_measure_is_refused(name: str, given: dict[str, int]) -> None:
    with pytest.raises(PlanError, match=r"rounds|width"):
        WORKLOADS[name].parse_input(given)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_the_largest_that_is_allowed_is_judged_soon(name: str) -> None:
    code = WORKLOADS[name]
    names = code.input_type.__dataclass_fields__
    given = {key: most for key, most in {"rounds": MOST_CALLS, "width": 1}.items() if key in names}
    run = RunRow("completed", name, given)
    began = time.process_time()
    sweep_log(Capture("made", EventLog((), "wrun_1"), Evidence("made"), run), SweepPlan())
    assert time.process_time() - began < 2
