"""What ``stormctl run`` shows while a storm runs and after it, and what it exits with."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from rich.console import Console

from stormctl.cli.exit_code import combine
from stormctl.cli.output import emit, width
from stormctl.errors import EXIT_CLEAN, EXIT_INTERRUPTED, EXIT_UNKNOWN, EXIT_VIOLATIONS
from stormctl.storm.attempt import Attempt
from stormctl.storm.events import AttemptLanded, Handler
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import Plan


def describe(plan: Plan) -> None:
    """Print what the plan would do."""
    from stormctl.storm.describe import describe as description_of

    emit("\n".join(description_of(plan).lines()))


def execute(plan: Plan, root: Path, *, report_only: bool) -> int:
    """Run the storm, sweep its logs, show and keep the results; the exit code."""
    from stormctl.report.live import follow
    from stormctl.storm.after import sweep_storm

    console = Console(width=None if Console().is_terminal else width(), highlight=False, soft_wrap=False)
    folder = StormFolder.create(plan, root)
    attempts: list[Attempt] = []
    handler = follow(console)
    interrupted = False
    try:
        try:
            asyncio.run(_storm(plan, folder, handler, attempts))
        except (KeyboardInterrupt, asyncio.CancelledError):
            interrupted = True
        if not interrupted:
            for event in sweep_storm(plan, folder, attempts):
                handler.handle(event)
    finally:
        handler.close()
    show(folder.path, console, pictures=not interrupted)
    if interrupted:
        emit("interrupted: what landed is kept in the artefact folder")
        return EXIT_INTERRUPTED
    return combine(_codes(attempts), report_only=report_only)


async def _storm(plan: Plan, folder: StormFolder, handler: Handler, attempts: list[Attempt]) -> None:
    from stormctl.storm.driver import run_storm

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async for event in run_storm(plan, folder):
        if isinstance(event, AttemptLanded):
            attempts.append(event.attempt)
        handler.handle(event)


def show(path: Path, console: Console, *, pictures: bool) -> None:
    """Print a storm's results and write its summary, and its pictures unless somebody is in a hurry."""
    from stormctl.report.load import load_artefact
    from stormctl.report.storm import render_storm
    from stormctl.report.summary import write_summary

    artefact = load_artefact(path)
    write_summary(artefact)
    if pictures and artefact.attempts:
        from stormctl.report.histogram import write_plots

        write_plots(artefact)
    render_storm(artefact, console)


def _codes(attempts: list[Attempt]) -> list[int]:
    """One code per attempt, and unknown for a cell in which nothing could be judged."""
    codes = [EXIT_VIOLATIONS if attempt.outcome.gates else EXIT_CLEAN for attempt in attempts]
    by_cell: dict[object, list[Attempt]] = {}
    for attempt in attempts:
        by_cell.setdefault(attempt.cell, []).append(attempt)
    judged = [any(a.outcome is not Outcome.INFRA and not a.flags for a in group) for group in by_cell.values()]
    if not all(judged) or not by_cell:
        codes.append(EXIT_UNKNOWN)
    return codes
