"""``stormctl sweep``: parse, call, exit."""

from __future__ import annotations

import typer

from stormctl.cli.options import (
    Captures,
    EngineNames,
    Format,
    OutputFormat,
    Prefixes,
    ProfileName,
    ReportOnly,
    WorkloadName,
)


def sweep(
    paths: Captures,
    workload: WorkloadName = None,
    engine: EngineNames = None,
    profile: ProfileName = "strict",
    prefixes: Prefixes = "all",
    format: OutputFormat = Format.TABLE,
    report_only: ReportOnly = False,
) -> None:
    """Say what is wrong with captured event logs.

    Example:  stormctl sweep capture.ndjson --workload step-storm --engine nets
    """
    from stormctl.cli import names, sweep_output
    from stormctl.sweeps import PrefixRange, SweepPlan

    plan = SweepPlan(
        profile=names.profile_name(profile),
        workload=names.workload_name(workload),
        engines=names.engine_names(engine),
        prefixes=PrefixRange.parse(prefixes),
    )
    swept = sweep_output.collect(paths, plan)
    sweep_output.show(swept, format)
    raise typer.Exit(swept.exit_code(report_only=report_only))
