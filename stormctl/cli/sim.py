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


ScenarioName = Annotated[
    str | None,
    typer.Argument(
        metavar="SCENARIO", help="One of `stormctl sim list`. Left out: the whole book.", show_default=False
    ),
]
Worlds = Annotated[
    list[str] | None,
    typer.Option(
        "--world",
        metavar="NAME",
        help="A world of `stormctl sim list`, or a storage condition, with switches in brackets: append-only[crash]. "
        "Again for more. Default: mint-ulid, mint-slot and append-only.",
        show_default=False,
    ),
]
StrategyName = Annotated[str, typer.Option("--strategy", metavar="NAME", help="How schedules are chosen.")]
Seeds = Annotated[
    int, typer.Option("--seeds", metavar="N", min=1, max=10_000_000, help="Schedules to try in each world.")
]
Budgets = Annotated[
    str | None,
    typer.Option("--budget", metavar="TIME", help="Stop after so long: 30s, 5m.", show_default="no limit"),
]
GenerationName = Annotated[
    str | None,
    typer.Option(
        "--generation",
        metavar="NAME",
        help="Generation of the replay engine. Default: the scenario's.",
        show_default=False,
    ),
]
SearchSeed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the search.")]


@sim.callback()
def group() -> None:
    """Storms and schedules in virtual time: nothing waits, and one seed is one run.

    Example:  stormctl sim storm configs/quick.yaml
    """


@sim.command("list")
def list_all() -> None:
    """List the scenarios of the book, the worlds, the strategies and the oracles.

    Example:  stormctl sim list
    """
    from stormctl.cli import sim_output

    sim_output.tell_all()


@sim.command()
def run(
    scenario: ScenarioName = None,
    world: Worlds = None,
    strategy: StrategyName = "portfolio",
    seeds: Seeds = 1000,
    budget: Budgets = None,
    generation: GenerationName = None,
    seed: SearchSeed = 0,
    jobs: Jobs = 1,
    report_only: ReportOnly = False,
) -> None:
    """Play the book, or search the schedules of one scenario: what fails is made small, proved minimal and drawn.

    Example:  stormctl sim run fork-hook-wins --world mint-ulid --strategy pos
    """
    from stormctl.cli import sim_output

    if scenario is None:
        raise typer.Exit(sim_output.book(tuple(world or ()), generation, report_only=report_only))
    wanted = sim_output.Search(strategy, seeds, budget, seed, jobs or 1)
    raise typer.Exit(sim_output.search(scenario, tuple(world or ()), generation, wanted, report_only=report_only))


@sim.command()
def replay(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="A schedule, as `stormctl sim run` prints it.")],
    report_only: ReportOnly = False,
) -> None:
    """Play one schedule again, and draw it.

    Example:  stormctl sim replay sw1-4kKWbQVhYkBtaW50LXVsaWQBAg
    """
    from stormctl.cli import sim_output

    raise typer.Exit(sim_output.replay(token, report_only=report_only))


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
