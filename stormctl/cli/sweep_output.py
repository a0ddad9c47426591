"""What ``stormctl sweep`` gathers, prints and exits with."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stormctl.cli.exit_code import combine
from stormctl.cli.options import Format
from stormctl.cli.output import emit, width
from stormctl.errors import EXIT_CLEAN, EXIT_INTERNAL, EXIT_UNKNOWN, EXIT_VIOLATIONS
from stormctl.readers import Unreadable
from stormctl.sweeps import LogReport, SweepPlan, Verdict, sweep_paths, sweep_report

_CODES = {Verdict.CLEAN: EXIT_CLEAN, Verdict.VIOLATED: EXIT_VIOLATIONS, Verdict.UNKNOWN: EXIT_UNKNOWN}


@dataclass(frozen=True, slots=True)
class Swept:
    """The reports of every log that could be read, and what could not."""

    logs: tuple[LogReport, ...]
    unreadable: tuple[Unreadable, ...]

    def exit_code(self, *, report_only: bool) -> int:
        """The command's exit code; an unreadable file outranks a violation, because it may hide one."""
        codes = [_CODES[log.verdict] for log in self.logs]
        if self.unreadable:
            codes.append(EXIT_INTERNAL)
        return combine(codes, report_only=report_only)


def collect(paths: Sequence[Path], plan: SweepPlan) -> Swept:
    """Sweep everything at the paths. Replays are spread over processes, for they are what takes time."""
    processes = (os.cpu_count() or 1) if plan.engines else 1
    items = list(sweep_paths(paths, plan, processes=processes))
    return Swept(
        logs=tuple(item for item in items if isinstance(item, LogReport)),
        unreadable=tuple(item for item in items if isinstance(item, Unreadable)),
    )


def show(swept: Swept, format: Format) -> None:
    """Print the reports."""
    if format is Format.JSON:
        emit(json.dumps(sweep_report(swept.logs, swept.unreadable), indent=2, allow_nan=False))
        return
    from stormctl.report.sweep_table import sweep_text

    emit(sweep_text(swept.logs, swept.unreadable, width=width(), color=sys.stdout.isatty()))


def say_pictures(written: Sequence[Path], format: Format) -> None:
    """Name the pictures that were drawn, below a report that people read."""
    if format is Format.TABLE:
        lines = [f"picture  {path}" for path in written] or ["picture  nothing was replayed"]
        emit("\n".join(["", *lines]))
