"""What ``stormctl report`` reads, writes and exits with."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from stormctl.cli.exit_code import combine
from stormctl.cli.output import emit, width
from stormctl.errors import EXIT_INTERNAL, StoreFailure, StormctlError, UnreadableInput, UsageError
from stormctl.report.lane import Lane

if TYPE_CHECKING:
    from stormctl.report.facts import StormFacts

#: More lanes than a job has; a slip of a shell's star otherwise takes hours.
MOST_LANES = 32
_MOST_PREVIOUS = 400_000


@dataclass(frozen=True, slots=True)
class Posted:
    """What a CI's lane is given: where the summary and the comment go, the comment's last body, the job's address."""

    out: Path | None
    comment: Path
    previous: Path | None
    run_url: str | None
    annotations: bool = False


def opened(named: Sequence[str]) -> list[Lane]:
    """The lanes by name; the newest storm when none is named.

    A lane that left no results, or unreadable ones, is a lane without an artefact and is told on standard error. When
    it is the only one, the error is raised.
    """
    from stormctl.report.history import lane_name
    from stormctl.report.load import newest
    from stormctl.report.results import load_any

    if len(named) > MOST_LANES:
        raise UsageError(f"{len(named)} lanes are too many for a report", remedy=f"Name {MOST_LANES} at most.")
    lanes: list[Lane] = []
    for name, path in map(_named, named) if named else [("", newest())]:
        try:
            artefact = load_any(path, name)
            told = name or artefact.name
        except StormctlError as bad:
            sys.stderr.write(f"stormctl: {bad}. {bad.remedy}\n")
            artefact, told = None, name or path.name
        lanes.append(Lane(_fresh(lane_name(told), lanes), artefact))
    return lanes


def _named(text: str) -> tuple[str, Path]:
    """``NAME=PATH`` or a path; a path that exists is one, whatever it holds."""
    name, sign, path = text.partition("=")
    if not sign or Path(text).exists():
        return "", Path(text)
    if not name or not path:
        raise UsageError(f"{text!r} is no lane", remedy="Write NAME=DIR.")
    return name, Path(path)


def _fresh(name: str, lanes: Sequence[Lane]) -> str:
    taken = {lane.name for lane in lanes}
    return next(one for one in (name, *(f"{name} ({count})" for count in range(2, MOST_LANES + 2))) if one not in taken)


def _facts(lane: Lane) -> StormFacts | None:
    from stormctl.report.facts import storm_facts

    return None if lane.artefact is None else storm_facts(lane.artefact)


def as_table(lanes: Sequence[Lane], out: Path | None) -> None:
    """Every table for a terminal, lane by lane."""
    from stormctl.report.grid_text import grid_parts
    from stormctl.report.grids import grids
    from stormctl.report.histogram import EVENTS, terminal_histogram
    from stormctl.report.storm import render_storm

    room = io.StringIO()
    wide = width() if out is None else 80
    terminal = out is None and sys.stdout.isatty()
    console = Console(file=room, width=wide, highlight=False, force_terminal=terminal or None)
    for lane in lanes:
        facts = _facts(lane)
        if lane.artefact is None or facts is None:
            continue
        sizes = terminal_histogram(lane.artefact.attempts, wide, EVENTS)
        render_storm(lane.artefact, console, [sizes, "", *(part for grid in grids(facts) for part in grid_parts(grid))])
        for note in facts.notes[:20]:
            console.print(f"note: {note}", markup=False, soft_wrap=True)
    _give(room.getvalue(), out)


def as_markdown(lanes: Sequence[Lane], out: Path | None) -> None:
    """Every table in markdown."""
    from stormctl.report.step_summary import step_summary

    _give(step_summary([(lane, _facts(lane)) for lane in lanes]), out)


def as_json(lanes: Sequence[Lane], out: Path | None) -> None:
    """The data of the tables: an object for one lane, for several one that has them by name."""
    from stormctl.report.facts_json import SCHEMA, report_json, report_text

    made = {lane.name: report_json(lane, facts) for lane in lanes if (facts := _facts(lane)) is not None}
    alone = len(lanes) == 1 and made
    _give(report_text(next(iter(made.values())) if alone else {"schema": SCHEMA, "lanes": made}), out)


def as_junit(lanes: Sequence[Lane], out: Path | None) -> None:
    """The JUnit file, in the artefact folder of a single lane unless ``out`` says where; ``-`` is standard output."""
    from stormctl.report.junit import junit_text

    _write(out or _beside(lanes, "junit.xml"), junit_text(lanes))


def as_html(lanes: Sequence[Lane], out: Path | None) -> None:
    """The report as one page."""
    from stormctl.report.html import write_html

    if len(lanes) > 1:
        raise UsageError("a page holds one storm", remedy="Name one folder.")
    (lane,) = lanes
    facts = _facts(lane)
    if lane.artefact is None or facts is None:
        return
    path = out or _beside(lanes, "report.html")
    try:
        write_html(lane.artefact, facts, path)
    except OSError as bad:
        raise _unwritten(path, bad) from None
    emit(f"report: {path}")


def as_github(lanes: Sequence[Lane], posted: Posted, environ: Mapping[str, str] = os.environ) -> None:
    """The step's summary, the comment's body and, when asked for, the annotations."""
    from stormctl.report.comment import comment_text
    from stormctl.report.history import RunEntry, parse_previous, run_url
    from stormctl.report.step_summary import annotation_lines, step_summary

    summary = step_summary([(lane, _facts(lane)) for lane in lanes])
    named = environ.get("GITHUB_STEP_SUMMARY")
    if posted.out is not None or not named:
        _give(summary, posted.out)
    else:
        _append(Path(named), summary)
    attempt = environ.get("GITHUB_RUN_ATTEMPT", "1")
    run = RunEntry(
        timestamp=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        attempt=int(attempt) if attempt.isdecimal() and len(attempt) < 6 else 1,
        url=run_url(posted.run_url or _address(environ)),
        lanes={lane.name: lane.counts for lane in lanes},
    )
    earlier = parse_previous(_previous(posted.previous))
    _write(posted.comment, comment_text(lanes, run, earlier))
    if posted.annotations:
        emit("\n".join(annotation_lines(lanes)))


def exit_code(lanes: Sequence[Lane], *, report_only: bool) -> int:
    """That of the storms; a lane without results fails whatever is asked."""
    from stormctl.cli.run_output import codes

    found = [code for lane in lanes if lane.artefact is not None for code in codes(lane.artefact)]
    found += [EXIT_INTERNAL for lane in lanes if lane.artefact is None]
    return combine(found, report_only=report_only)


def _address(environ: Mapping[str, str]) -> str | None:
    parts = [environ.get(name) for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")]
    return f"{parts[0]}/{parts[1]}/actions/runs/{parts[2]}" if all(parts) else None


def _previous(path: Path | None) -> str:
    """The comment's last body; nothing when there is none yet."""
    if path is None or not path.exists():
        return ""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_PREVIOUS).decode("utf-8", "replace")
    except OSError as bad:
        raise UnreadableInput(f"{path} cannot be read: {bad.strerror}", remedy="Leave --previous out.") from None


def _beside(lanes: Sequence[Lane], name: str) -> Path:
    found = lanes[0].artefact if len(lanes) == 1 else None
    return Path(name) if found is None else found.folder / name


def _give(text: str, out: Path | None) -> None:
    if out is None:
        emit(text)
    else:
        _write(out, text)


def _write(path: Path, text: str) -> None:
    if str(path) == "-":
        emit(text)
        return
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as bad:
        raise _unwritten(path, bad) from None


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as bad:
        raise _unwritten(path, bad) from None


def _unwritten(path: Path, bad: OSError) -> StormctlError:
    return StoreFailure(f"{path} cannot be written: {bad.strerror}", remedy="Name another file, or make room.")
