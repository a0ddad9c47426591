"""After a storm: every captured log is swept as its target says, and replayed at every prefix by its engines."""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

from stormctl.readers import Unreadable
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.embedded import Embedded
from stormctl.storm.events import LogSwept, StormNoted
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan
from stormctl.storm.subject import Target
from stormctl.sweeps import LogReport, Severity, SweepPlan, Verdict, sweep_paths, sweep_report


def sweep_storm(
    plan: Plan, folder: StormFolder, attempts: list[Attempt], target: Target | None = None
) -> Generator[LogSwept | StormNoted, None, None]:
    """Sweep the log of every landed attempt, write ``sweeps.json``, and yield what was found, log by log, and then what
    the target has to say of them.

    ``target`` is what ran them; none stands for our own runtime. The processes of the storm are gone by now, so all
    cores are used.
    """
    target = target if target is not None else Embedded()
    reports: list[LogReport] = []
    unreadable: list[Unreadable] = []
    by_cell: dict[Cell, list[Path]] = {}
    for attempt in attempts:
        path = folder.path / "logs" / f"{attempt.run_id}.ndjson"
        if path.exists():
            by_cell.setdefault(attempt.cell, []).append(path)
    for cell, paths in by_cell.items():
        for item in sweep_paths(paths, _sweeping(target, cell, plan), processes=os.cpu_count() or 1):
            if isinstance(item, Unreadable):
                unreadable.append(item)
                continue
            reports.append(replace(item, source=f"logs/{Path(item.source).name}"))  # wherever the folder will lie
            yield swept(cell, item)
    folder.write_json("sweeps.json", sweep_report(reports, unreadable))
    for text in target.account(folder, attempts):
        yield StormNoted(text)


def _sweeping(target: Target, cell: Cell, plan: Plan) -> SweepPlan:
    """How the logs of a cell are swept: as its target says, and replayed by the generations that the plan asks for."""
    found = target.sweeps(cell)
    return replace(found, engines=tuple(dict.fromkeys((*found.engines, *plan.generations))))


def swept(cell: Cell, report: LogReport) -> LogSwept:
    """The event that tells of one log's report."""
    fatal = {
        result.sweep: sum(1 for finding in result.findings if finding.severity is Severity.FATAL)
        for result in report.sweeps
    }
    return LogSwept(
        cell=cell,
        run_id=report.run_id,
        verdict=str(report.verdict),
        findings={sweep: count for sweep, count in fatal.items() if count},
        unknown=tuple(result.sweep for result in report.sweeps if result.verdict is Verdict.UNKNOWN),
    )
