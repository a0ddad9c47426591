"""``stormctl run``: parse, call, exit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli.options import ReportOnly

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan, a YAML file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("-P", metavar="key=a,b", help="Lay a value, or several, over the plan. Give it again for more."),
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed of the drivers. Default: the plan's.")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where artefact folders are made.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what the plan would do, and do nothing.")]


def run(
    plan: PlanFile,
    override: Overrides = None,
    seed: Seed = None,
    out: Out = Path(".stormctl"),
    dry_run: DryRun = False,
    report_only: ReportOnly = False,
) -> None:
    """Run a storm: many attempts of a scenario against a real event-log store, captured, swept and counted.

    Example:  stormctl run configs/quick.yaml -P attempts=4 --seed 3
    """
    from stormctl.cli import run_output
    from stormctl.cli.overrides import parse_overrides
    from stormctl.storm.plan import load_plan

    loaded = load_plan(plan, parse_overrides(override or ()), seed)
    if dry_run:
        run_output.describe(loaded)
        raise typer.Exit
    raise typer.Exit(run_output.execute(loaded, out, report_only=report_only))
