"""``stormctl run``: parse, call, exit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli import complete
from stormctl.cli.options import Dsn, ReportOnly
from stormctl.storm.outcome import Counted

PlanFile = Annotated[
    Path | None,
    typer.Argument(metavar="PLAN", help="The plan, a YAML file. Left out with --resume.", show_default=False),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "-P",
        metavar="key=a,b",
        help="Lay a value, or several, over the plan. Give it again for more.",
        autocompletion=complete.overrides,
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed of the drivers. Default: the plan's.")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where artefact folders are made.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what the plan would do, and do nothing.")]
CreateSchema = Annotated[
    bool, typer.Option("--create-schema", help="Make the schema `stormctl` in a database that has none.")
]
Resume = Annotated[
    Path | None, typer.Option("--resume", metavar="DIR", help="Go on with the storm in this artefact folder.")
]
UntilResolved = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--until-resolved",
        metavar="OLD NEW",
        help="Run these two arms of the plan in turn, and stop once it is told which has more of the outcome: by a "
        "sequential test that calls equal arms different in at most 5 % of storms.",
        show_default=False,
    ),
]
CountedBy = Annotated[
    Counted | None,
    typer.Option(
        "--outcome", help="What --until-resolved compares the arms by. Default: corrupted.", show_default=False
    ),
]


def run(
    plan: PlanFile = None,
    override: Overrides = None,
    seed: Seed = None,
    out: Out = Path(".stormctl"),
    dsn: Dsn = None,
    create_schema: CreateSchema = False,
    resume: Resume = None,
    until_resolved: UntilResolved = None,
    outcome: CountedBy = None,
    dry_run: DryRun = False,
    report_only: ReportOnly = False,
) -> None:
    """Run a storm: many attempts of a scenario against a real event-log store, captured, swept and counted.

    Example:  stormctl run configs/quick.yaml -P attempts=4 --seed 3
    """
    from stormctl.cli import run_output
    from stormctl.cli.overrides import parse_overrides
    from stormctl.errors import UsageError
    from stormctl.storm.plan import load_plan

    database = run_output.Database(dsn, create_schema)
    if resume is not None:
        if plan is not None or override or seed is not None or dry_run or until_resolved or outcome:
            raise UsageError(
                "--resume takes the plan and seed from its folder",
                remedy="Leave PLAN, -P, --seed, --until-resolved, --outcome and --dry-run out.",
            )
        raise typer.Exit(run_output.go_on(resume, database, report_only=report_only))
    if plan is None:
        raise UsageError("there is no plan to run", remedy="Name one, such as configs/quick.yaml, or use --resume DIR.")
    loaded = load_plan(plan, parse_overrides(override or ()), seed)
    until = None
    if until_resolved is not None:
        from stormctl.storm.until import Arms, Until, full_name, narrowed

        old, new = (full_name(loaded.cells, arm) for arm in until_resolved)
        arms = Arms(old, new, outcome or Counted.CORRUPTED)
        loaded = narrowed(loaded, arms)
        until = Until(loaded, arms)
    elif outcome is not None:
        raise UsageError("--outcome says what --until-resolved compares", remedy="Give both, or neither.")
    if dry_run:
        run_output.check_engines(loaded)
        run_output.describe(loaded)
        raise typer.Exit
    raise typer.Exit(run_output.execute(loaded, out, database, report_only=report_only, until=until))
