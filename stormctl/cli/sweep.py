"""``stormctl sweep``: parse, call, exit."""

from __future__ import annotations

import typer

from stormctl.cli.options import (
    Captures,
    EngineNames,
    Format,
    OutputFormat,
    Perturb,
    PerturbSeed,
    Picture,
    Prefixes,
    ProfileName,
    ReportOnly,
    WorkloadName,
)
from stormctl.errors import UsageError


def sweep(
    paths: Captures,
    workload: WorkloadName = None,
    engine: EngineNames = None,
    profile: ProfileName = "strict",
    prefixes: Prefixes = "all",
    perturb: Perturb = 0,
    perturb_seed: PerturbSeed = 0,
    picture: Picture = None,
    format: OutputFormat = Format.TABLE,
    report_only: ReportOnly = False,
) -> None:
    """Say what is wrong with captured event logs.

    Example:  stormctl sweep capture.ndjson --workload step-storm --engine nets
    """
    from stormctl.cli import names, pictures, sweep_output
    from stormctl.sweeps import PrefixRange, SweepPlan

    engines = names.engine_names(engine)
    pictures.check_picture(picture, engines)
    if perturb and not engines:
        raise UsageError("there is nothing to perturb without a replay", remedy="Name an engine with --engine.")
    plan = SweepPlan(
        profile=names.profile_name(profile),
        workload=names.workload_name(workload),
        engines=engines,
        prefixes=PrefixRange.parse(prefixes),
        perturb=perturb,
        perturb_seed=perturb_seed,
        maps=bool(engines) and (picture is not None or format is Format.TABLE),
    )
    swept = sweep_output.collect(paths, plan)
    sweep_output.show(swept, format)
    if picture is not None:
        sweep_output.say_pictures(pictures.write_pictures(swept.logs, picture), format)
    raise typer.Exit(swept.exit_code(report_only=report_only))
