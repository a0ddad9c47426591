"""``stormctl drain``: a serving loop that drains events through a view that lags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli import complete
from stormctl.cli.options import ReportOnly

drain = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

Preset = Annotated[
    str,
    typer.Argument(
        metavar="PRESET",
        help=r"A loop of `stormctl drain list`, knobs in brackets: G2\[barrier=off].",
        autocompletion=complete.drain_presets,
    ),
]
Injections = Annotated[
    list[str] | None,
    typer.Option(
        "--inject",
        metavar="WHEN: WHAT",
        help="What is done to it: `A2: fail`, `A3: compact a`, `250ms: park`. Again for more.",
        show_default=False,
    ),
]
Trace = Annotated[
    Path | None,
    typer.Option(
        "--trace", metavar="FILE", help="Write the trace as NDJSON, for `stormctl sweep`.", show_default=False
    ),
]


@drain.callback()
def group() -> None:
    """Serving loops that drain events through a lagging view: ghosts, double effects, a watermark that lies.

    Example:  stormctl drain run G1
    """


@drain.command("list")
def list_all() -> None:
    """List the loops, the scenarios and the situations of a search.

    Example:  stormctl drain list
    """
    from stormctl.cli import drain_output

    drain_output.tell_all()


@drain.command()
def run(
    preset: Preset = "G4",
    inject: Injections = None,
    until: Annotated[
        int, typer.Option("--until", metavar="MS", min=0, max=3_600_000, help="Virtual time at which timers end.")
    ] = 1_000,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="TOKEN", help="Play a schedule that a search printed.", show_default=False),
    ] = None,
    trace: Trace = None,
    report_only: ReportOnly = False,
) -> None:
    r"""Run one loop, with its waves, its counters and its lanes: store, view, loop.

    It begins with W = 1, A on the stream a, B on b, and a second A, unless an injection admits something at the start.

    Example:  stormctl drain run G2 --inject "A2: fail" --trace trace.ndjson
    """
    from stormctl.cli import drain_output

    if token is not None:
        raise typer.Exit(drain_output.replay(token, trace, report_only=report_only))
    raise typer.Exit(drain_output.run(preset, tuple(inject or ()), until, trace, report_only=report_only))


@drain.command()
def explore(
    presets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PRESET",
            help="Loops to search. Default: every generation.",
            show_default=False,
            autocompletion=complete.drain_presets,
        ),
    ] = None,
    situation: Annotated[
        list[str] | None,
        typer.Option(
            "--situation",
            metavar="NAME",
            help="A situation of `stormctl drain list`. Default: all.",
            show_default=False,
            autocompletion=complete.drain_situations,
        ),
    ] = None,
    strategy: Annotated[
        str, typer.Option("--strategy", metavar="NAME", help="How schedules are chosen: see `stormctl sim list`.")
    ] = "random",
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, max=10_000_000, help="Schedules to try of each loop.")
    ] = 14_000,
    budget: Annotated[
        str, typer.Option("--budget", metavar="TIME", help="Stop each loop's search after so long: 30s, 5m.")
    ] = "30s",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the search.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, max=64, help="Processes to share the work.")] = 1,
    shrink: Annotated[
        bool, typer.Option("--shrink/--no-shrink", help="Make the first schedule of each class small.")
    ] = True,
    report_only: ReportOnly = False,
) -> None:
    """Search the interleavings of loops, and name the known failure behind each violation.

    A generation must be caught at what it is known for; what is known of the last one is told apart as residual.

    Example:  stormctl drain explore G2 --situation park --situation park-one
    """
    from stormctl.cli import drain_output

    how = drain_output.Search(tuple(situation or ()), strategy, seeds, budget, seed, jobs, shrink)
    raise typer.Exit(drain_output.explore(tuple(presets or ()), how, report_only=report_only))


@drain.command()
def table(report_only: ReportOnly = False) -> None:
    """Hold the loops against the published results, row by row.

    Example:  stormctl drain table
    """
    from stormctl.cli import drain_output

    raise typer.Exit(drain_output.table(report_only=report_only))


@drain.command()
def show(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENARIO",
            help="Failures to show: F1 to F13b. Default: all.",
            show_default=False,
            autocompletion=complete.drain_scenarios,
        ),
    ] = None,
    report_only: ReportOnly = False,
) -> None:
    """Show the known failures step by step, and the same run under the loop that has it no more.

    Example:  stormctl drain show F6
    """
    from stormctl.cli import drain_output

    raise typer.Exit(drain_output.show(tuple(scenarios or ()), report_only=report_only))


@drain.command()
def latency(
    events: Annotated[int, typer.Option("--events", metavar="N", min=2, max=2_000, help="Events to admit.")] = 200,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the admissions.")] = 0,
    steady: Annotated[
        bool, typer.Option("--steady", help="All events in one space, 1 s apart, not each pair in a space of its own.")
    ] = False,
) -> None:
    """Show how long events wait, in virtual time: with neither barrier nor floor, the floor alone, and both.

    Example:  stormctl drain latency --events 100
    """
    from stormctl.cli import drain_output

    drain_output.latency(events, seed, steady=steady)
