"""``stormctl sim``: storms and schedules in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli.options import Format, PictureFormat, ReportOnly, WorkloadName

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


Cluster = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Search with the workers of this Dask scheduler (tcp://host:8786). Needs stormctl\\[dask].",
    ),
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
        help="A world of `stormctl sim list`, or a storage condition, with switches in brackets: append-only\\[crash]. "
        "Again for more. Default: mint-ulid, mint-slot and append-only.",
        show_default=False,
    ),
]
StrategyName = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="How schedules are chosen. Default: pct:3; of a small model several by turns.",
        show_default=False,
    ),
]
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
ScriptFile = Annotated[
    Path | None,
    typer.Option(
        "--script",
        metavar="FILE",
        help="A script, which says a schedule in words. A search leaves open what it does not say.",
    ),
]
Proof = Annotated[
    int,
    typer.Option(
        "--proof",
        metavar="N",
        min=1,
        max=10_000_000,
        help="Schedules to play at most for the proof that it is minimal.",
    ),
]
Picture = Annotated[PictureFormat, typer.Option("--format", help="How schedules are shown.")]
PictureOut = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write there, and not to the screen.")]
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
    strategy: StrategyName = None,
    seeds: Seeds = 1000,
    budget: Budgets = None,
    generation: GenerationName = None,
    seed: SearchSeed = 0,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, max=64, help="Processes to share the work.")] = 1,
    dask: Cluster = None,
    script: ScriptFile = None,
    shrink: Annotated[
        bool, typer.Option("--shrink/--no-shrink", help="Make what fails small, and prove that it is.")
    ] = True,
    proof: Proof = 2000,
    format: Picture = PictureFormat.TABLE,
    out: PictureOut = None,
    report_only: ReportOnly = False,
) -> None:
    """Play the book, or search the schedules of one scenario: what fails is made small, proved minimal and drawn.

    Example:  stormctl sim run fork-hook-wins --world mint-ulid --strategy pos
    """
    from stormctl.cli import sim_output, sim_schedules

    shown = sim_schedules.Shown(format, out)
    if scenario is None:
        raise typer.Exit(sim_output.book(tuple(world or ()), generation, shown, report_only=report_only))
    wanted = sim_output.Search(strategy, seeds, budget, seed, jobs, dask, script, shrink, proof)
    code = sim_output.search(scenario, tuple(world or ()), generation, wanted, shown, report_only=report_only)
    raise typer.Exit(code)


@sim.command()
def replay(
    token: Annotated[
        str | None, typer.Argument(metavar="TOKEN", help="A schedule, as `stormctl sim run` prints it.")
    ] = None,
    script: ScriptFile = None,
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="NAME", help="The scenario of the script.")
    ] = None,
    world: Annotated[str | None, typer.Option("--world", metavar="NAME", help="The world of the script.")] = None,
    generation: GenerationName = None,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="The log, where the token is of `sim produce`.")
    ] = None,
    format: Picture = PictureFormat.TABLE,
    out: PictureOut = None,
    report_only: ReportOnly = False,
) -> None:
    """Play one schedule again, by its token or by a script, and draw it.

    Example:  stormctl sim replay sw1-4kKWbQVhYkBtaW50LXVsaWQBAg
    """
    from stormctl.cli import sim_schedules
    from stormctl.errors import UsageError

    if (token is None) is (script is None):
        raise UsageError("a token or a script is played", remedy="Give one of the two.")
    if script is not None:
        model, played = sim_schedules.run_of_script(script, scenario, world, generation)
    else:
        model, played = sim_schedules.run_of_token(token or "", log)
    extra = () if log is None else ("--log", str(log))
    shown = sim_schedules.Shown(format, out)
    raise typer.Exit(sim_schedules.replay(model, played, shown, extra=extra, report_only=report_only))


@sim.command()
def shrink(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="A schedule that fails.")],
    proof: Proof = 2000,
    format: Picture = PictureFormat.TABLE,
    out: PictureOut = None,
    report_only: ReportOnly = False,
) -> None:
    """Make a failing schedule as small as can be, and prove that no smaller one fails.

    Example:  stormctl sim shrink sw1-4kKWbQVhYkBtaW50LXVsaWQBAg
    """
    from stormctl.cli import sim_schedules

    shown = sim_schedules.Shown(format, out)
    raise typer.Exit(sim_schedules.shrink(token, shown, proof=proof, report_only=report_only))


@sim.command()
def library(
    bugs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BUG", help="One of the bugs of `stormctl sim list`. Left out: all.", show_default=False
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=1, max=100_000, help="Searches for each bug.")] = 20,
    seed: SearchSeed = 0,
    format: Annotated[Format, typer.Option("--format", help="A table, or data.")] = Format.TABLE,
    report_only: ReportOnly = False,
) -> None:
    """Measure how soon a search finds known bugs from the workflow and its actors alone, and that repaired twins pass.

    Example:  stormctl sim library torn-hook lost-dispatch --seeds 5
    """
    from stormctl.cli import sim_output

    raise typer.Exit(sim_output.library(tuple(bugs or ()), seeds, seed, format, report_only=report_only))


@sim.command()
def produce(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="One log, in any form that `stormctl sweep` reads.")],
    world: Worlds = None,
    preemptions: Annotated[
        int,
        typer.Option("--preemptions", metavar="K", min=0, max=20, help="Try every schedule up to so many."),
    ] = 2,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, max=10_000_000, help="Schedules to try in each world.")
    ] = 5000,
    budget: Budgets = None,
    workload: WorkloadName = None,
    generation: GenerationName = None,
    seed: SearchSeed = 0,
    format: Picture = PictureFormat.TABLE,
    out: PictureOut = None,
    report_only: ReportOnly = False,
) -> None:
    """Search for a schedule that writes a captured log: which worlds can have made it, and how.

    Exits 0 when one can, 1 when none can, 3 when none was found within the bound that is printed.

    Example:  stormctl sim produce run.ndjson --world append-only
    """
    from stormctl.cli import names, sim_schedules
    from stormctl.storm.planfile import parse_duration

    seconds = None if budget is None else parse_duration(budget, "--budget") / 1000
    wanted = sim_schedules.Wanted(
        tuple(world or ()), preemptions, seeds, seconds, seed, names.workload_name(workload), generation
    )
    shown = sim_schedules.Shown(format, out)
    raise typer.Exit(sim_schedules.produce(log, wanted, shown, report_only=report_only))


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
