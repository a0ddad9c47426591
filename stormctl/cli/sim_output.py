"""What the commands of ``stormctl sim`` show, and what they exit with."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from stormctl.cli.exit_code import combine
from stormctl.cli.output import emit
from stormctl.cli.run_output import check_engines, codes, console_for_results, show
from stormctl.errors import EXIT_INTERRUPTED
from stormctl.storm.attempt import Attempt
from stormctl.storm.events import AttemptLanded
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan


def storm(plan: Plan, root: Path, jobs: int, *, report_only: bool) -> int:
    """Run the storm in virtual time, sweep its logs, show and keep the results; the exit code."""
    from stormctl.report.live import follow
    from stormctl.storm.after import sweep_storm
    from stormctl.storm.virtually import check, play, target_of

    check(plan)
    check_engines(plan)
    console = console_for_results()
    handler = follow(console)
    folder = StormFolder.create(plan, root)
    attempts: list[Attempt] = []
    try:
        with closing(play(plan, folder, jobs=jobs)) as events:
            for event in events:
                if isinstance(event, AttemptLanded):
                    attempts.append(event.attempt)
                handler.handle(event)
        with closing(sweep_storm(plan, folder, attempts, target_of(plan))) as swept:
            for told in swept:
                handler.handle(told)
    except KeyboardInterrupt:
        handler.close()
        show(folder.path, console, pictures=False)
        emit("interrupted: what landed is kept in the artefact folder")
        return EXIT_INTERRUPTED
    finally:
        handler.close()
    return combine(codes(show(folder.path, console, pictures=True)), report_only=report_only)
