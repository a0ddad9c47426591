"""Order: where results race, the first in the log wins.

The replay itself tells what raced (``Workload.races``, or for a body without them the record that the engine keeps); a
branch that went the other way contradicts its own log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stormctl.sim.kernel import Problem, Run
from stormctl.sim.oracles.log import kind_of
from stormctl.sim.real.machine import Machine
from stormctl.sweeps import Severity, SweepPlan, Verdict, sweep_log
from stormctl.workloads.user_races import races_of

PLAN = SweepPlan(only=("log-order",))


def order(machine: Machine, run: Run) -> Iterator[Problem]:
    """Does each branch go the way that the log's order says?"""
    workload = machine.scenario.workload
    if not machine.ended:
        return
    known = replace(workload, races=workload.races or races_of(workload))
    plan = replace(PLAN, workload=workload.name, find=lambda _name: known)
    report = sweep_log(machine.capture(), plan)
    for result in report.sweeps:
        if result.verdict is Verdict.VIOLATED:
            for finding in result.findings:
                if finding.severity is Severity.FATAL:
                    yield Problem("order", kind_of(finding), finding.message, finding.positions)
