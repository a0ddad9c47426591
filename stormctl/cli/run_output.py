"""What ``stormctl run`` shows while a storm runs and after it, and what it exits with."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AbstractContextManager, aclosing, closing, suppress
from dataclasses import dataclass, field
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
from stormctl.storm.resume import Earlier
from stormctl.worlds.open import ServerHandle

if TYPE_CHECKING:
    from stormctl.report.load import Artefact
    from stormctl.storm.subject import Target
    from stormctl.storm.until import Until

_BY_VERDICT = {"clean": EXIT_CLEAN, "violated": EXIT_VIOLATIONS}


def describe(plan: Plan) -> None:
    """Print what the plan would do."""
    from stormctl.storm.describe import describe as description_of

    emit("\n".join(description_of(plan).lines()))


@dataclass(frozen=True, slots=True)
class Database:
    """Which database a person named, if any, and whether the schema may be made there."""

    dsn: str | None = None
    create_schema: bool = False


NO_DATABASE = Database()


def execute(
    plan: Plan, root: Path, database: Database = NO_DATABASE, *, report_only: bool, until: Until | None = None
) -> int:
    """Run the storm, sweep its logs, show and keep the results; the exit code.

    ``until`` ends it once its two arms are told apart. What landed is shown and kept also when Ctrl-C or SIGTERM ends
    the storm early, or when a store or a worker fails; then the failure is raised.
    """
    check_engines(plan)
    with _Interrupts() as interrupts, _server(plan, database) as server:
        folder = StormFolder.create(plan, root, None if server is None else server.shown)
        return _run(_Storm(plan, folder, server=server, until=until), interrupts, report_only=report_only)


def go_on(path: Path, database: Database = NO_DATABASE, *, report_only: bool) -> int:
    """Resume the storm in a folder, as :func:`execute` runs one."""
    from stormctl.storm.resume import resumable
    from stormctl.storm.until import Until, read_until

    found = resumable(path)
    arms = read_until(found.folder.path)
    until = None if arms is None else Until(found.plan, arms, found.earlier.landed)
    check_engines(found.plan)
    with _Interrupts() as interrupts, _server(found.plan, database) as server:
        storm = _Storm(found.plan, found.folder, found.earlier, server, until=until)
        return _run(storm, interrupts, report_only=report_only)


@dataclass(slots=True)
class _Storm:
    """What is run. ``attempts`` are those that landed so far."""

    plan: Plan
    folder: StormFolder
    earlier: Earlier = field(default_factory=Earlier)
    server: ServerHandle | None = None
    attempts: list[Attempt] = field(default_factory=list)
    until: Until | None = None

    def __post_init__(self) -> None:
        self.attempts.extend(self.earlier.landed)


def _server(plan: Plan, database: Database) -> AbstractContextManager[ServerHandle | None]:
    from stormctl.storm.servers import server_for

    return server_for(plan, database.dsn, create_schema=database.create_schema)


def _run(storm: _Storm, interrupts: _Interrupts, *, report_only: bool) -> int:
    from stormctl.report.live import follow

    console = console_for_results()
    handler = follow(console)
    path = storm.folder.path
    try:
        _until_swept(storm, handler, interrupts)
    except (KeyboardInterrupt, asyncio.CancelledError):
        handler.close()
        show(path, console, pictures=False)
        emit("interrupted: what landed is kept in the artefact folder")
        return EXIT_INTERRUPTED
    except StormctlError:
        handler.close()
        if storm.attempts:
            with suppress(StormctlError):  # the first failure is the one to tell
                show(path, console, pictures=False)
        raise
    finally:
        handler.close()
    found = codes(show(path, console, pictures=True))
    if storm.until is not None:
        found.append({0: EXIT_UNKNOWN, -1: EXIT_VIOLATIONS}.get(storm.until.standing.sign, EXIT_CLEAN))
    return combine(found, report_only=report_only)


def check_engines(plan: Plan) -> None:
    """PlanError when a real engine that the plan's logs are to be replayed by is not there."""
    if plan.real_engines:
        from stormctl.targets.sdk.replay.storms import checked

        checked(plan.real_engines)


def target_of(plan: Plan, server: ServerHandle | None) -> Target:
    """What the plan's target names."""
    from stormctl.storm import sdk_plan, url_plan

    if plan.target == sdk_plan.TARGET:
        from stormctl.targets.sdk.target import SdkTarget

        return SdkTarget(server, replays=plan.real_engines)
    if plan.target == url_plan.TARGET:
        from stormctl.targets.url.target import UrlTarget

        return UrlTarget(plan.apps, replays=plan.real_engines)
    from stormctl.storm.embedded import Embedded

    return Embedded(server)


def _until_swept(storm: _Storm, handler: Handler, interrupts: _Interrupts) -> None:
    from stormctl.storm.after import sweep_storm

    target = target_of(storm.plan, storm.server)
    asyncio.run(_storm(storm, target, handler, interrupts))
    interrupts.check()
    with closing(sweep_storm(storm.plan, storm.folder, storm.attempts, target)) as swept:
        for event in swept:
            handler.handle(event)
            interrupts.check()


async def _storm(storm: _Storm, target: Target, handler: Handler, interrupts: _Interrupts) -> None:
    from stormctl.storm.driver import run_storm

    interrupts.task = asyncio.current_task()
    running = run_storm(storm.plan, storm.folder, earlier=storm.earlier, target=target, until=storm.until)
    async with aclosing(running) as events:
        async for event in events:
            if isinstance(event, AttemptLanded):
                storm.attempts.append(event.attempt)
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
            from stormctl.report.pictures import write_plots

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

    One for each attempt that says something and for each log that was swept; unknown for each cell in which nothing
    could be judged, and for whatever failed where a control did; internal when a log of ours cannot be read. An attempt
    without pressure, or a vacuous one, is never clean.
    """
    suspect = {cell for cell in artefact.cells if artefact.suspect(cell)}
    cell_of = {attempt.run_id: attempt.cell for attempt in artefact.attempts}
    found = [
        EXIT_UNKNOWN if attempt.cell in suspect else EXIT_VIOLATIONS
        for attempt in artefact.attempts
        if attempt.outcome.gates
    ]
    for log in artefact.logs:
        code = _BY_VERDICT.get(log.verdict, EXIT_UNKNOWN)
        found.append(EXIT_UNKNOWN if code == EXIT_VIOLATIONS and cell_of.get(log.run_id) in suspect else code)
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


def console_for_results() -> Console:
    """Where results are printed: as wide as the terminal, or as the user says."""
    return _Console(width=None if Console().is_terminal else width(), highlight=False, soft_wrap=False)
