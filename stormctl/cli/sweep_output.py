"""What ``stormctl sweep`` gathers, prints and exits with. Reports are printed as they come, and not kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stormctl.cli.exit_code import combine
from stormctl.cli.options import SweepFormat
from stormctl.cli.output import emit, width
from stormctl.errors import EXIT_CLEAN, EXIT_INTERNAL, EXIT_UNKNOWN, EXIT_VIOLATIONS, UsageError
from stormctl.readers import Unreadable
from stormctl.sweeps import LogReport, SweepPlan, Verdict, sweep_paths

#: So many logs and unreadable files are shown in full; of more there is a summary.
FEW = 20
_CODES = {Verdict.CLEAN: EXIT_CLEAN, Verdict.VIOLATED: EXIT_VIOLATIONS, Verdict.UNKNOWN: EXIT_UNKNOWN}


@dataclass(slots=True)
class Swept:
    """What is left when everything is printed: the codes that held, and the logs where pictures are to be drawn."""

    codes: set[int] = field(default_factory=set)
    logs: list[LogReport] = field(default_factory=list)

    def exit_code(self, *, report_only: bool) -> int:
        """The command's exit code; an unreadable file outranks a violation, because it may hide one."""
        return combine(self.codes, report_only=report_only)


def collect(
    paths: Sequence[Path | str], plan: SweepPlan, *, jobs: int | None = None, dask: str | None = None
) -> Iterator[LogReport | Unreadable]:
    """Sweep everything at the paths. Replays are spread over processes, for they are what takes time, and everything is
    where ``jobs`` or ``dask`` says so."""
    if dask is not None:
        if jobs is not None:
            raise UsageError("--jobs and --dask are two ways to share the work", remedy="Give one of them.")
        from stormctl.sweeps.dask import Dask

        return sweep_paths(paths, plan, spread=Dask(dask))
    processes = jobs or ((os.cpu_count() or 1) if plan.engines else 1)
    return sweep_paths(paths, plan, processes=processes)


def show(items: Iterable[LogReport | Unreadable], format: SweepFormat, *, keep: bool = False) -> Swept:
    """Print the reports as they come. ``keep`` keeps the logs for pictures."""
    swept = Swept()
    _PRINTERS[format](_counted(items, swept, keep=keep))
    return swept


def say_pictures(written: Sequence[Path], format: SweepFormat) -> None:
    """Name the pictures that were drawn, below a report that people read."""
    if format is SweepFormat.TABLE:
        lines = [f"picture  {path}" for path in written] or ["picture  nothing was replayed"]
        emit("\n".join(["", *lines]))


def _counted(items: Iterable[LogReport | Unreadable], swept: Swept, *, keep: bool) -> Iterator[LogReport | Unreadable]:
    for item in items:
        if isinstance(item, Unreadable):
            swept.codes.add(EXIT_INTERNAL)
        else:
            swept.codes.add(_CODES[item.verdict])
            if keep:
                swept.logs.append(item)
        yield item


def _table(items: Iterator[LogReport | Unreadable]) -> None:
    from stormctl.report.sweep_table import sweep_text

    first: list[LogReport | Unreadable] = []
    for item in items:
        first.append(item)
        if len(first) > FEW:
            from stormctl.report.sweep_summary import summary_text
            from stormctl.report.sweep_tally import Tally

            tally = Tally()
            while first:
                tally.take(first.pop(0))
            for one in items:
                tally.take(one)
            emit(summary_text(tally, width=width(), color=sys.stdout.isatty()))
            return
    logs = [item for item in first if isinstance(item, LogReport)]
    unreadable = [item for item in first if isinstance(item, Unreadable)]
    emit(sweep_text(logs, unreadable, width=width(), color=sys.stdout.isatty()))


def _json(items: Iterator[LogReport | Unreadable]) -> None:
    from stormctl.report.sweep_json import JsonDocument

    document = JsonDocument()
    for item in items:
        for part in document.take(item):
            emit(part)
    for part in document.end():
        emit(part)


def _ndjson(items: Iterator[LogReport | Unreadable]) -> None:
    from stormctl.report.sweep_json import line_of

    for item in items:
        emit(line_of(item))


def _markdown(items: Iterator[LogReport | Unreadable]) -> None:
    from stormctl.report.sweep_markdown import sweep_markdown
    from stormctl.report.sweep_tally import Tally

    tally = Tally()
    for item in items:
        tally.take(item)
    emit(sweep_markdown(tally))


def _junit(items: Iterator[LogReport | Unreadable]) -> None:
    from stormctl.report.sweep_junit import Junit

    with Junit() as junit:
        for item in items:
            junit.take(item)
        for part in junit.text():
            emit(part)


_PRINTERS = {
    SweepFormat.TABLE: _table,
    SweepFormat.JSON: _json,
    SweepFormat.NDJSON: _ndjson,
    SweepFormat.MD: _markdown,
    SweepFormat.JUNIT: _junit,
}
