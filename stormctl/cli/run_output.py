"""What ``stormctl run`` shows while a storm runs and after it, and what it exits with."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import aclosing, closing, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console

from stormctl.cli.exit_code import combine
from stormctl.cli.output import emit, width
from stormctl.errors import (
    EXIT_CLEAN,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_UNKNOWN,
    EXIT_VIOLATIONS,
    StoreFailure,
    StormctlError,
)
from stormctl.storm.attempt import Attempt
from stormctl.storm.events import AttemptLanded, Handler
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import Plan

if TYPE_CHECKING:
    from stormctl.report.load import Artefact

_BY_VERDICT = {"clean": EXIT_CLEAN, "violated": EXIT_VIOLATIONS}


def describe(plan: Plan) -> None:
    """Print what the plan would do."""
    from stormctl.storm.describe import describe as description_of

    emit("\n".join(description_of(plan).lines()))


def execute(plan: Plan, root: Path, *, report_only: bool) -> int:
    """Run the storm, sweep its logs, show and keep the results; the exit code.

    What landed is shown and kept also when Ctrl-C or SIGTERM ends the storm early, or when a store or a worker fails;
    then the failure is raised.
    """
    from stormctl.report.live import follow

    console = _console()
    folder = StormFolder.create(plan, root)
    attempts: list[Attempt] = []
    handler = follow(console)
    try:
        _until_swept(plan, folder, handler, attempts)
    except (KeyboardInterrupt, asyncio.CancelledError):
        handler.close()
        show(folder.path, console, pictures=False)
        emit("interrupted: what landed is kept in the artefact folder")
        return EXIT_INTERRUPTED
    except StormctlError:
        handler.close()
        if attempts:
            with suppress(StormctlError):  # the first failure is the one to tell
                show(folder.path, console, pictures=False)
        raise
    finally:
        handler.close()
    return combine(codes(show(folder.path, console, pictures=True)), report_only=report_only)


def _until_swept(plan: Plan, folder: StormFolder, handler: Handler, attempts: list[Attempt]) -> None:
    from stormctl.storm.after import sweep_storm

    with _Interrupts() as interrupts:
        asyncio.run(_storm(plan, folder, handler, attempts, interrupts))
        interrupts.check()
        with closing(sweep_storm(plan, folder, attempts)) as swept:
            for event in swept:
                handler.handle(event)
                interrupts.check()


async def _storm(
    plan: Plan, folder: StormFolder, handler: Handler, attempts: list[Attempt], interrupts: _Interrupts
) -> None:
    from stormctl.storm.driver import run_storm

    interrupts.task = asyncio.current_task()
    async with aclosing(run_storm(plan, folder)) as events:
        async for event in events:
            if isinstance(event, AttemptLanded):
                attempts.append(event.attempt)
            handler.handle(event)


class _Interrupts:
    """Ctrl-C and SIGTERM: the first cancels the storm while that runs, any other interrupts what does.

    An interrupt that is raised inside a finalizer is lost there; :meth:`check` raises it again.
    """

    def __init__(self) -> None:
        self.task: asyncio.Task[Any] | None = None
        self._asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:  # as a shell has it for what it starts in the background
                self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def check(self) -> None:
        """KeyboardInterrupt when one was asked for."""
        if self._asked:
            raise KeyboardInterrupt

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        again, self._asked = self._asked, True
        if again or self.task is None or self.task.done():
            raise KeyboardInterrupt
        self.task.get_loop().call_soon_threadsafe(self.task.cancel)


def show(path: Path, console: Console, *, pictures: bool) -> Artefact:
    """Print a storm's results and write its summary, and its pictures unless somebody is in a hurry.

    StoreFailure, after the results were printed, when the disk takes no summary or pictures.
    """
    from stormctl.report.load import load_artefact
    from stormctl.report.storm import render_storm
    from stormctl.report.summary import write_summary

    artefact = load_artefact(path)
    failed: OSError | None = None
    try:
        write_summary(artefact)
        if pictures and artefact.attempts:
            from stormctl.report.histogram import write_plots

            write_plots(artefact)
    except OSError as bad:
        failed = bad
    render_storm(artefact, console)
    if failed is not None:
        raise StoreFailure(
            f"the summary of the storm could not be written to {path}: {failed.strerror or failed}",
            remedy="Make room on the disk; the attempts and their logs are kept.",
        )
    return artefact


def codes(artefact: Artefact) -> list[int]:
    """The exit codes of a storm's parts.

    One for each attempt and for each log that was swept; unknown for each cell in which nothing could be judged;
    internal when a log of ours cannot be read.
    """
    found = [EXIT_VIOLATIONS if attempt.outcome.gates else EXIT_CLEAN for attempt in artefact.attempts]
    found += [_BY_VERDICT.get(log.verdict, EXIT_UNKNOWN) for log in artefact.logs]
    judged = {one.cell for one in artefact.attempts if one.outcome is not Outcome.INFRA and not one.flags}
    if not artefact.cells or set(artefact.cells) - judged:
        found.append(EXIT_UNKNOWN)
    if artefact.unreadable:
        found.append(EXIT_INTERNAL)
    return found


class _Console(Console):
    """A console whose reader may go away, as ``head`` does, without ending the storm."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _console() -> Console:
    return _Console(width=None if Console().is_terminal else width(), highlight=False, soft_wrap=False)
