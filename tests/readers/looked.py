"""Reading a file that may be broken in any way, and sweeping what is in it: what must hold of every one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from stormctl.history import Capture
from stormctl.readers import BY_CONTENT, Reading, Unreadable, open_captures
from stormctl.readers.unreadable import UNFORESEEN
from stormctl.sweeps import LogReport, SweepPlan, sweep_log

#: How long a log may take to read and to sweep, in CPU seconds.
SECONDS = 2.0
#: By which profile and workload the captures are swept: what the log asks for, and every check of a scenario.
PLANS = (SweepPlan(profile="auto"), SweepPlan(profile="workflow@5", workload="step-storm"))


def look(path: Path, reading: Reading = BY_CONTENT, plans: Sequence[SweepPlan] = PLANS) -> None:
    """Read a file and sweep what is in it: captures or one printable line, no check that fails, and soon."""
    began = time.process_time()
    for found in open_captures([path], reading):
        if isinstance(found, Unreadable):
            assert found.text.isprintable(), found.text
            assert len(found.error) < 1000, found.error
            assert found.remedy.endswith((".", "?")), found
            assert UNFORESEEN not in found.error, found.error
        else:
            swept(found, plans)
    took = time.process_time() - began
    assert took < SECONDS * max(1, len(plans)), took


def swept(capture: Capture, plans: Sequence[SweepPlan] = PLANS) -> list[LogReport]:
    """The reports of a capture, in none of which a check has failed."""
    for event in capture.log:
        assert isinstance(event.type, str)
        assert event.payload is None or isinstance(event.payload.digest, str)
    reports = [sweep_log(capture, plan) for plan in plans]
    for report in reports:
        failed = [one.missing for one in report.sweeps if "the check itself failed" in str(one.missing)]
        assert not failed, failed
    return reports
