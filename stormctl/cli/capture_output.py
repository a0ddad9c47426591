"""What ``stormctl capture`` opens, says while it works, prints at its end, and exits with."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stormctl.cli.exit_code import combine
from stormctl.cli.output import emit
from stormctl.errors import EXIT_CLEAN, EXIT_INTERNAL, EXIT_UNKNOWN, EXIT_VIOLATIONS, UsageError
from stormctl.history import Capture
from stormctl.readers import Unreadable, open_file
from stormctl.readers.live import (
    AGAIN,
    Asked,
    Begun,
    CaptureFolder,
    DatabaseSource,
    LocalSource,
    Source,
    Step,
    capture_runs,
    fresh,
    opened,
    parse_since,
)
from stormctl.report.sweep_tally import kind_of
from stormctl.sweeps import Finding, Severity, Verdict
from stormctl.sweeps.pairs import judge_pair
from stormctl.sweeps.witness import clean

DSN = "STORMCTL_DSN"
ROOT = Path(".stormctl")
TABLE = "logs.parquet"
#: How often a terminal, and how often a file, is told how far it is.
TERMINAL_S, FILE_S = 0.2, 10.0
#: What is listed of problems and of findings; the rest is counted.
MOST = 20
_CODES = {Verdict.CLEAN: EXIT_CLEAN, Verdict.VIOLATED: EXIT_VIOLATIONS, Verdict.UNKNOWN: EXIT_UNKNOWN}


@contextmanager
def source(dsn: str | None, folder: Path | None) -> Iterator[Source]:
    """The store that is named; UsageError when it is none, or two."""
    if dsn is not None and folder is not None:
        raise UsageError("--dsn and --folder name two stores", remedy="Give one of them.")
    if folder is not None:
        yield LocalSource(folder)
        return
    dsn = dsn or os.environ.get(DSN)
    if not dsn:
        raise UsageError("no store is named", remedy=f"Give --folder DIR, --dsn DSN, or set {DSN}.")
    with DatabaseSource(dsn) as database:
        yield database


def capture(
    source: Source,
    out: Path | None,
    *,
    runs: Sequence[str],
    since: str | None,
    with_payloads: bool,
    twice: bool,
    limit: int | None,
    parquet: bool,
    report_only: bool,
) -> int:
    """Capture, tell of it, and reply the exit code."""
    if runs and since is not None:
        raise UsageError("--run names runs and --since chooses among all", remedy="Give one of them.")
    after = None if since is None else parse_since(since, time.time_ns() // 1_000_000)
    path = out if out is not None else fresh(ROOT)
    told = _Told()
    with opened(path, Asked(source.shown, with_payloads, twice, after)) as folder:
        try:
            for item in capture_runs(source, folder, runs=runs, limit=limit):
                told.take(item)
        except BaseException:
            told.stopped(path)
            raise
        told.line("")
        judged = _Judged()
        if twice:
            judged.take(folder)
        table = _one_table(folder) if parquet else []
    emit("\n".join([*told.lines(path), *table, *judged.lines()]))
    return combine([*told.codes(), *judged.codes()], report_only=report_only)


def _one_table(folder: CaptureFolder) -> list[str]:
    """Write the captured logs into one Parquet file beside them; the line that says so."""
    from stormctl.readers.parquet import write_parquet

    path = folder.path / TABLE
    logs = (item for log in folder.logs() for item in open_file(log) if isinstance(item, Capture))
    count = write_parquet(logs, path, with_payloads=folder.asked.with_payloads)
    return [f"one table of {_runs(count)}: {clean(str(path))}"]


class _Told:
    """Counts what happens, and says on standard error how far it is."""

    def __init__(self) -> None:
        self._begun: list[Begun] = []
        self._done = 0
        self._landed: Counter[int] = Counter()
        self._broken: dict[tuple[str, str], Unreadable] = {}
        self._failed: set[str] = set()
        self._last = 0.0
        self._terminal = sys.stderr.isatty()

    def take(self, item: Begun | Step) -> None:
        """Something has happened."""
        if isinstance(item, Begun):
            self._begun.append(item)
            self._done = item.there
            self._note(item.broken)
            there = f", {item.there} of them there already" if item.there else ""
            word = "capturing again" if item.number == AGAIN else "capturing"
            self.line(f"{word}: {_runs(item.runs)}{there}", always=True)
            return
        self._done += 1
        self._note(item.broken)
        if item.landed is None:
            self._failed.add(item.run_id)
        else:
            self._landed[item.number] += 1
        self.line(f"{self._done} of {self._begun[-1].runs} runs")

    def line(self, text: str, *, always: bool = False) -> None:
        """A line of progress, unless one was just written. An empty one ends a line that was written over."""
        now = time.monotonic()
        if not self._terminal:
            if text and (always or now - self._last >= FILE_S):
                self._last = now
                sys.stderr.write(f"{text}\n")
            return
        if always or not text or now - self._last >= TERMINAL_S:
            self._last = now
            sys.stderr.write(f"\r\x1b[K{text}" + ("\n" if always else ""))
            sys.stderr.flush()

    def stopped(self, path: Path) -> None:
        """The capture ends before its end."""
        self.line("")
        if self._begun:
            sys.stderr.write(
                f"stopped with {self._done} of {self._begun[-1].runs} runs; "
                f"the same command with --out {clean(str(path))} goes on\n"
            )

    def lines(self, path: Path) -> list[str]:
        """The end of the report."""
        first, *again = self._begun
        parts = [f"captured {_runs(self._landed[first.number])}"]
        if again:
            parts.append(f"{self._landed[AGAIN]} again")
        if first.there:
            parts.append(f"{first.there} there already")
        if self._failed:
            parts.append(f"{len(self._failed)} could not be read")
        elif not first.runs:
            parts = ["no run to capture"]
        found = [f"{', '.join(parts)}: {clean(str(path))}"]
        problems = list(self._broken.values())
        found += [f"unreadable  {clean(one.source)}\n  {clean(one.text)}" for one in problems[:MOST]]
        if len(problems) > MOST:
            found.append(f"and {len(problems) - MOST} more that cannot be read")
        return found

    def codes(self) -> list[int]:
        """The exit codes of what happened."""
        return [EXIT_INTERNAL] if self._broken or self._failed else [EXIT_CLEAN]

    def _note(self, broken: Sequence[Unreadable]) -> None:
        for one in broken:
            self._broken.setdefault((one.source, one.error), one)


class _Judged:
    """What ``append-only`` says of the runs that were captured twice."""

    def __init__(self) -> None:
        self._verdicts: Counter[Verdict] = Counter()
        self._findings: list[Finding] = []
        self._more = 0
        self._lesser: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()
        self._unreadable: list[Unreadable] = []

    def take(self, folder: CaptureFolder) -> None:
        """Judge each pair, one after the other."""
        for run_id in folder.pairs():
            for item in open_file(folder.log(run_id)):
                if isinstance(item, Capture):
                    self._one(item)
                else:
                    self._unreadable.append(item)

    def lines(self) -> list[str]:
        """The verdict first, then what was found."""
        if not self._verdicts and not self._unreadable:
            return []
        counts = ", ".join(f"{self._verdicts[one]} {one}" for one in Verdict if self._verdicts[one])
        found = [f"append-only  {counts or 'nothing was judged'} of {_runs(self._verdicts.total())} captured twice"]
        for one in self._findings:
            found.append(f"{one.severity}  {clean(one.run)}: {one.message}")
            found += [f"  {line}" for line in one.witness]
        if self._more:
            found.append(f"and {self._more} more findings; `stormctl sweep` tells them all")
        found += [f"{what}  {count} time{'' if count == 1 else 's'}" for what, count in self._lesser.most_common()]
        found += [f"unknown  {count} times: lacks {what}" for what, count in self._missing.most_common(MOST)]
        found += [f"unreadable  {clean(one.source)}\n  {clean(one.text)}" for one in self._unreadable[:MOST]]
        return found

    def codes(self) -> list[int]:
        """The exit codes of the verdicts."""
        return [*(_CODES[verdict] for verdict in self._verdicts), *([EXIT_INTERNAL] if self._unreadable else [])]

    def _one(self, capture: Capture) -> None:
        result = judge_pair(capture)
        self._verdicts[result.verdict] += 1
        if result.verdict is Verdict.UNKNOWN:
            self._missing.update(clean(str(what)) for what in result.missing)
        for finding in result.findings:
            if finding.severity is Severity.FATAL and len(self._findings) < MOST:
                self._findings.append(finding)
            elif finding.severity is Severity.FATAL:
                self._more += 1
            else:
                self._lesser[f"{finding.severity}  {kind_of(finding.key)}"] += 1


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"
