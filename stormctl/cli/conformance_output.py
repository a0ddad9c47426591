"""What ``stormctl engines --conformance`` gathers, prints and exits with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from stormctl.cli.options import Format
from stormctl.cli.output import emit, width
from stormctl.errors import EXIT_CLEAN, EXIT_INTERNAL, EXIT_UNKNOWN, StormctlError, UsageError
from stormctl.readers import Unreadable
from stormctl.readers.open import open_captures
from stormctl.report.conformance_table import conformance_json, conformance_text
from stormctl.sweeps.plan import SweepPlan, own_engine
from stormctl.sweeps.run import scenario_of
from stormctl.targets.sdk.replay.conformance import Agreement, compare, table
from stormctl.targets.sdk.replay.opener import open_engine


def conformance(paths: Sequence[Path], generations: Sequence[str], judge: str, format: Format) -> int:
    """Compare, print, and say with which exit code to end."""
    unreadable: list[Unreadable] = []
    rows = table(_compared(paths, generations, judge, unreadable))
    if not rows and not unreadable:
        raise UsageError(
            "there is no log to compare engines on", remedy="Name captures of SDK runs with --conformance."
        )
    if format is Format.JSON:
        emit(conformance_json(rows))
    else:
        lines = [conformance_text(rows, width=width())] if rows else []
        emit("\n".join([*lines, *(f"unreadable: {one.source}: {one.text}" for one in unreadable)]))
    if unreadable:
        return EXIT_INTERNAL
    return EXIT_CLEAN if all(row.prefixes for row in rows) else EXIT_UNKNOWN


def _compared(
    paths: Sequence[Path], generations: Sequence[str], judge: str, unreadable: list[Unreadable]
) -> Iterator[Agreement]:
    plan = SweepPlan()
    for capture in open_captures(paths):
        if isinstance(capture, Unreadable):
            unreadable.append(capture)
            continue
        scenario, lacks = scenario_of(capture, plan)
        why = f"it needs {lacks}"
        if scenario is not None:
            try:
                real = open_engine(judge, capture, scenario)
            except UsageError:
                raise
            except StormctlError as error:
                why = f"{error}. {error.remedy}"
            else:
                yield from compare(
                    capture, real, [own_engine(name, scenario.workload, scenario.input) for name in generations]
                )
                continue
        for name in generations:
            yield Agreement(capture.log.run_id, capture.source, None, judge, name, 0, 0, why=why)
