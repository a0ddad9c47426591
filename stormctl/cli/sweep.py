"""``stormctl sweep``: parse, call, exit."""

from __future__ import annotations

import typer

from stormctl.cli.options import (
    Captures,
    DaskAddress,
    Earlier,
    EngineNames,
    Inputs,
    Jobs,
    MapName,
    NoCache,
    Only,
    Perturb,
    PerturbSeed,
    Picture,
    Prefixes,
    ProfileName,
    ReaderName,
    ReportOnly,
    ShowPayloads,
    SweepFormat,
    SweepOutput,
    WorkloadName,
)
from stormctl.errors import UsageError


def sweep(
    paths: Captures,
    reader: ReaderName = None,
    table_map: MapName = None,
    workload: WorkloadName = None,
    engine: EngineNames = None,
    profile: ProfileName = "auto",
    earlier: Earlier = None,
    only: Only = None,
    prefixes: Prefixes = "all",
    inputs: Inputs = False,
    no_cache: NoCache = False,
    perturb: Perturb = 0,
    perturb_seed: PerturbSeed = 0,
    picture: Picture = None,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    format: SweepOutput = SweepFormat.TABLE,
    show_payloads: ShowPayloads = False,
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
        read_as=names.reading(reader, table_map),
        show_payloads=show_payloads,
        profile=names.profile_name(profile),
        earlier=earlier,
        only=names.sweep_names(only),
        workload=names.workload_name(workload),
        engines=engines,
        prefixes=PrefixRange.parse(prefixes),
        perturb=perturb,
        perturb_seed=perturb_seed,
        include_input_only=inputs,
        open=names.opener(engines),
        memory=None if no_cache else names.memory(engines),
        maps=bool(engines) and (picture is not None or format is SweepFormat.TABLE),
    )
    items = sweep_output.collect(paths, plan, jobs=jobs, dask=dask)
    swept = sweep_output.show(items, format, keep=picture is not None)
    if picture is not None:
        sweep_output.say_pictures(pictures.write_pictures(swept.logs, picture), format)
    raise typer.Exit(swept.exit_code(report_only=report_only))
