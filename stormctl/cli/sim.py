"""``stormctl sim``: storms and schedules in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli.options import ReportOnly

sim = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan, a YAML file, as `stormctl run` takes it.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("-P", metavar="key=a,b", help="Lay a value, or several, over the plan. Give it again for more."),
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed of the whole storm. Default: the plan's.")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where artefact folders are made.")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", min=1, max=64, help="Processes to share the work. Default: the cores."),
]


@sim.callback()
def group() -> None:
    """Storms and schedules in virtual time: nothing waits, and one seed is one run.

    Example:  stormctl sim storm configs/quick.yaml
    """


@sim.command()
def storm(
    plan: PlanFile,
    override: Overrides = None,
    seed: Seed = None,
    out: Out = Path(".stormctl"),
    jobs: Jobs = None,
    report_only: ReportOnly = False,
) -> None:
    """Run a whole storm in virtual time, on stores in memory. One seed leaves one folder, the same to the byte.

    Example:  stormctl sim storm configs/matrix.yaml -P attempts=6 --seed 3
    """
    import os

    from stormctl.cli import sim_output
    from stormctl.cli.overrides import parse_overrides
    from stormctl.storm.plan import load_plan

    loaded = load_plan(plan, parse_overrides(override or ()), seed)
    raise typer.Exit(sim_output.storm(loaded, out, jobs or os.cpu_count() or 1, report_only=report_only))
