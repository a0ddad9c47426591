"""The log: what must hold of any log and of the rows beside it, asked by the sweeps that captured logs are put to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stormctl.sim.kernel import Problem, Run
from stormctl.sim.real.machine import Machine
from stormctl.sweeps import Finding, Severity, SweepPlan, sweep_log
from stormctl.sweeps.entity_rows import ROWS

#: the sweeps that no world excuses
ALWAYS = ("lifecycle", "one-body", "ranks", "hook-conflicts", "attributes", "rows")
#: and those of one whose order is that of the commits
DENSE = ("dense",)
PLAN = SweepPlan(profile="auto", only=ALWAYS)


def kind_of(finding: Finding) -> str:
    """A finding's sweep and kind, without whose it is."""
    return "/".join(finding.key.split("/")[:2])


def log(machine: Machine, run: Run) -> Iterator[Problem]:
    """Does the log, and do the rows, keep the rules?"""
    capture = machine.capture()
    rows = {row.id: {"status": row.status, "attempt": row.attempt} for row in machine.store.entities.values()}
    only = ALWAYS + (DENSE if machine.world.condition.dense and machine.ended else ())
    report = sweep_log(replace(capture, data={**capture.data, ROWS: rows}), replace(PLAN, only=only))
    for finding in report.findings:
        if finding.severity is Severity.FATAL:
            yield Problem(f"log.{finding.sweep}", kind_of(finding), finding.message, finding.positions)
